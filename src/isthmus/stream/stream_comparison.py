"""Runs a stream with several recipes on a modelled device or a GPU: what each of them moves for the same updates.
Answers must agree.
"""

from __future__ import annotations

import importlib
import os
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isthmus.checks import path_of
from isthmus.devices.choose import device_named
from isthmus.devices.residency import Transfer
from isthmus.errors import OptionError
from isthmus.graph.graph import Graph
from isthmus.memory import format_size
from isthmus.policies.stream_recipes import RECIPES, stream_recipe
from isthmus.runtime.plan.comparison import DisagreementError, names_of
from isthmus.runtime.results.agreement import difference
from isthmus.runtime.results.result import Result
from isthmus.runtime.session import check_graph
from isthmus.runtime.trace.provenance import now, origin
from isthmus.stream.batch_report import BatchReport
from isthmus.stream.live import Live

COLUMNS = ("changes", "bytes", "requests", "hit_edges", "miss_edges", "upkeep_bytes", "modelled")  # of a batch


@dataclass
class StreamRun:
    """All batches of a stream by one recipe. `by_batch`: columns with an entry for each."""

    recipe: str
    words: str = ""  # what the recipe does
    batches: int = 0
    changes: int = 0
    affected: int = 0  # vertices whose value was corrected or improved, over all programs and batches
    edges_read: int = 0
    transfer: Transfer = field(default_factory=Transfer)
    opening: Transfer = field(default_factory=Transfer)  # of the first answers
    edge_bytes: int = 0  # of the graph at the end
    near_peak: int = 0
    seconds: float = 0.0  # of this machine
    by_batch: dict[str, array[float]] = field(default_factory=lambda: {name: array("d") for name in COLUMNS})

    def take(self, report: BatchReport) -> None:
        """Add a batch."""
        moved = report.transfer or Transfer()
        self.batches, self.changes = self.batches + 1, self.changes + report.changes
        self.affected += sum(effort["affected"] for effort in report.programs.values())
        self.edges_read += sum(effort["edges_read"] for effort in report.programs.values())
        self.seconds += report.seconds["total"]
        self.transfer.add(moved)
        for name, column in self.by_batch.items():
            column.append(report.changes if name == "changes" else getattr(moved, name))

    @property
    def hits(self) -> float:
        """The share of the edges read that were near."""
        read = self.transfer.hit_edges + self.transfer.miss_edges
        return self.transfer.hit_edges / read if read else 0.0

    def as_dict(self) -> dict[str, Any]:
        return {
            "recipe": self.recipe,
            "words": self.words,
            "batches": self.batches,
            "changes": self.changes,
            "affected": self.affected,
            "edges_read": self.edges_read,
            "transfer": self.transfer.as_dict(),
            "opening": self.opening.as_dict(),
            "ratio": self.transfer.bytes / self.edge_bytes if self.edge_bytes else 0.0,
            "hits": self.hits,
            "near_peak": self.near_peak,
            "seconds": {"modelled": self.transfer.modelled, "total": self.seconds},
            "by_batch": {name: [as_whole(value) for value in column] for name, column in self.by_batch.items()},
        }


def as_whole(value: float) -> float | int:
    """Counts as whole numbers."""
    return int(value) if value == int(value) else value


@dataclass
class StreamComparison:
    """Runs by recipe, in the order in which they ran."""

    device: str
    runs: dict[str, StreamRun] = field(default_factory=dict)
    # of what was compared: graph, programs, updates, memory, repeat.
    facts: dict[str, Any] = field(default_factory=dict)
    bandwidth: float = 0.0  # of the device's link, bytes per second
    # by program, after the last batch; all recipes have the same.
    answers: dict[str, Result] = field(default_factory=dict)

    @property
    def fastest(self) -> str:
        """The recipe with the least modelled time."""
        return min(self.runs, key=lambda name: self.runs[name].transfer.modelled)

    @property
    def advice(self) -> str:
        """Which recipe to take, and why."""
        best = self.runs[self.fastest]
        others = sorted((run for run in self.runs.values() if run is not best), key=lambda run: run.transfer.modelled)
        if not best.batches or not others:
            return "There was nothing to compare: no batches." if others else f"Only {best.recipe} was run."
        second = others[0]
        less = 100 * (1 - best.transfer.modelled / second.transfer.modelled) if second.transfer.modelled else 0.0
        first = f"Take {best.recipe}: {milliseconds(best)} modelled, {less:.0f} % less than {second.recipe}, the next"
        if not less:
            first = f"Take {best.recipe}: {milliseconds(best)} modelled, as long as {second.recipe}"
        return f"{first}. {self._reason(best)}"

    def _reason(self, best: StreamRun) -> str:
        fewest = min(self.runs.values(), key=lambda run: run.transfer.bytes)
        if best.transfer.bytes <= fewest.transfer.bytes:
            near = f", as {100 * best.hits:.0f} % of the edges that it reads are near" if best.hits else ""
            return f"It also moves the fewest bytes, {format_size(best.transfer.bytes)}{near}."
        fewer = 100 * (1 - fewest.transfer.bytes / best.transfer.bytes)
        share = 100 * fewest.transfer.bytes / self.bandwidth / max(fewest.transfer.modelled, 1e-12)
        part = f"{share:.0f} %" if share >= 1 else "less than 1 %"
        return (
            f"{fewest.recipe} moves {fewer:.0f} % fewer bytes, but at the link's full rate its bytes would take "
            f"{part} of its time. The "
            "rest goes to launches and short requests, and lists that stay near need launches of their own."
        )

    @property
    def agreement(self) -> str:
        """In what answers agree; otherwise `compare_streams` would have raised an error."""
        names = ", ".join(self.facts.get("programs", ()))
        return f"Answers agree: after the last batch all recipes have the same {names or 'graph'}."

    def summary(self) -> dict[str, Any]:
        """What `isthmus stream compare --json` prints."""
        return {
            "device": self.device,
            **self.facts,
            "runs": [run.as_dict() for run in self.runs.values()],
            "fastest": self.fastest,
            "advice": self.advice,
            "agreement": self.agreement,
            "answers": {program: result.summary()["result"] for program, result in self.answers.items()},
        }

    def report(self, path: str | Path) -> None:
        """Write an HTML report of the comparison."""
        page = importlib.import_module("isthmus.report.stream_page")  # it is slow to load, and only runs know reports
        lines = {name: (stream_recipe(name).colour, stream_recipe(name).dash) for name in self.runs}
        page.write(path_of("report", path), self.summary(), lines, self.answers)


def milliseconds(run: StreamRun) -> str:
    return f"{1e3 * run.transfer.modelled:.3g} ms"


def compare_streams(
    graph: Graph,
    programs: Sequence[Any],
    updates: Any,
    *,
    device: str,
    memory: str | int | None = "10%",
    policies: Sequence[str] | None = None,
    begin: Callable[[str], None] = lambda recipe: None,
    threads: int | None = None,
    **how: Any,
) -> StreamComparison:
    """Apply updates to a stream on `device` with each of `policies` (default: every recipe of streams), and add up what
    they move.

    `updates`, and the options in `how`, are as for `live.follow`; what can be read once only, such as a pipe, is
    refused.
    """
    check_graph("compare_streams", graph)
    on = device_named(device)
    if not on.counts_reads:
        raise OptionError(
            f"device: expected a modelled device or a GPU, such as model:rtx2080ti, got {device!r}, on which "
            f"nothing moves"
        )
    if isinstance(updates, str) and updates == "-":
        raise OptionError("updates: expected a file, as every recipe reads them again, got a pipe")
    names = list(dict.fromkeys(names_of(list(RECIPES) if policies is None else policies)))
    if not names:
        raise OptionError("policies: expected at least one recipe, got none")
    for name in names:
        stream_recipe(name)
    facts = facts_of(graph, updates, memory)
    found = StreamComparison(on.name, facts=facts, bandwidth=on.profile(graph.snapshot).bandwidth)
    for name in names:
        begin(name)
        with Live(graph, programs, device=device, memory=memory, policy=name, threads=threads) as live:
            found.runs[name] = followed(live, name, updates, how)
            facts["programs"] = list(live)
            for program in live:
                result = live[program].result()
                if where := difference(found.answers.setdefault(program, result), result):
                    raise DisagreementError(f"{program}: {names[0]} and {name} disagree: {where}; please report this")
    return found


def facts_of(graph: Graph, updates: Any, memory: str | int | None) -> dict[str, Any]:
    """What is compared, as JSON knows it."""
    path = str(graph.path) if graph.path else None
    info = {"path": path, "vertices": graph.vertices, "edges": graph.edges, "edge_bytes": graph.edge_bytes}
    named = str(updates) if isinstance(updates, str | os.PathLike) else f"a table ({type(updates).__name__})"
    how_much = "of the whole device" if memory is None else str(memory)
    return {
        "graph": info,
        "updates": named,
        "memory": how_much,
        "programs": [],
        "repeat": origin(graph.snapshot, now()),
    }


def followed(live: Live, recipe: str, updates: str | Path | Any, how: dict[str, Any]) -> StreamRun:
    run = StreamRun(recipe, stream_recipe(recipe).words, near_peak=live.near_peak, opening=live.opened or Transfer())
    for report in live.follow(updates, **how):
        run.take(report)
    run.edge_bytes = live.graph.edge_bytes
    return run
