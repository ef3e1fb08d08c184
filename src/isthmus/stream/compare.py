"""Runs a stream with several recipes on a modelled device: what each of them moves for the same updates. Their answers must agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isthmus.errors import OptionError
from isthmus.graph.graph import Graph
from isthmus.runtime.agree import difference
from isthmus.runtime.compare import DisagreementError, names_of
from isthmus.runtime.device import device_of, name_of, refuse_gpu
from isthmus.runtime.session import check_graph
from isthmus.stream.live import Live
from isthmus.stream.reads import Transfer
from isthmus.stream.recipes import RECIPES, stream_recipe


@dataclass
class StreamRun:
    """All batches of a stream by one recipe."""

    recipe: str
    batches: int = 0
    changes: int = 0
    affected: int = 0  # vertices whose value was corrected or improved, over all programs and batches
    edges_read: int = 0
    transfer: Transfer = field(default_factory=Transfer)
    opening: Transfer = field(default_factory=Transfer)  # of the first answers
    edge_bytes: int = 0  # of the graph at the end
    near_peak: int = 0
    seconds: float = 0.0  # of this machine

    @property
    def hits(self) -> float:
        """The share of the edges read that were near."""
        read = self.transfer.hit_edges + self.transfer.miss_edges
        return self.transfer.hit_edges / read if read else 0.0

    def as_dict(self) -> dict[str, Any]:
        return {
            "recipe": self.recipe, "batches": self.batches, "changes": self.changes, "affected": self.affected,
            "edges_read": self.edges_read, "transfer": self.transfer.as_dict(), "opening": self.opening.as_dict(),
            "ratio": self.transfer.bytes / self.edge_bytes if self.edge_bytes else 0.0, "hits": self.hits, "near_peak": self.near_peak,
            "seconds": {"modelled": self.transfer.modelled, "total": self.seconds},
        }  # fmt: skip


@dataclass
class StreamComparison:
    """Runs by recipe, in the order in which they ran."""

    device: str
    runs: dict[str, StreamRun] = field(default_factory=dict)

    @property
    def fastest(self) -> str:
        """The recipe with the least modelled time."""
        return min(self.runs, key=lambda name: self.runs[name].transfer.modelled)

    def summary(self) -> dict[str, Any]:
        """What `isthmus stream compare --json` prints."""
        return {"device": self.device, "runs": [run.as_dict() for run in self.runs.values()], "fastest": self.fastest}


def compare_streams(
    graph: Graph, programs: Sequence[Any], updates: Any, *, device: str, memory: str | int | None = "10%",
    policies: Sequence[str] | None = None, begin: Callable[[str], None] = lambda recipe: None, threads: int | None = None, **how: Any,
) -> StreamComparison:  # fmt: skip
    """Apply updates to a stream on `device` with each of `policies` (default: every recipe of streams), and add up what they move.

    `updates`, and the options in `how`, are as for `live.follow`; what can be read once only, such as a pipe, is refused.
    """
    check_graph("compare_streams", graph)
    refuse_gpu(device, "streams do")
    model = device_of(device)
    if model is None:
        raise OptionError(f"device: expected a modelled device, such as model:rtx2080ti, got {device!r}: on this machine nothing moves")
    if isinstance(updates, str) and updates == "-":
        raise OptionError("updates: expected a file, as every recipe reads them again, got a pipe")
    names = list(dict.fromkeys(names_of(RECIPES if policies is None else policies)))
    if not names:
        raise OptionError("policies: expected at least one recipe, got none")
    for name in names:
        stream_recipe(name)
    found = StreamComparison(name_of(device, model))
    answers: dict[str, Any] = {}
    for name in names:
        begin(name)
        with Live(graph, programs, device=device, memory=memory, policy=name, threads=threads) as live:
            found.runs[name] = followed(live, name, updates, how)
            for program in live:
                result = live[program].result()
                if where := difference(answers.setdefault(program, result), result):
                    raise DisagreementError(f"{program}: {names[0]} and {name} disagree: {where}; please report this")
    return found


def followed(live: Live, recipe: str, updates: str | Path | Any, how: dict[str, Any]) -> StreamRun:
    run = StreamRun(recipe, near_peak=live.near_peak, opening=live.opened or Transfer())
    for report in live.follow(updates, **how):
        run.batches, run.changes = run.batches + 1, run.changes + report.changes
        run.affected += sum(effort["affected"] for effort in report.programs.values())
        run.edges_read += sum(effort["edges_read"] for effort in report.programs.values())
        run.seconds += report.seconds["total"]
        run.transfer.add(report.transfer or Transfer())
    run.edge_bytes = live.graph.edge_bytes
    return run
