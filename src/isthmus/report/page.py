"""Runs of one algorithm, with one or several recipes, as one HTML page without scripts or external files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from isthmus.memory import format_size
from isthmus.report import panels
from isthmus.report.advice import advice
from isthmus.report.draw import SECONDS
from isthmus.report.series import series
from isthmus.report.template import as_text, check, rendered, written
from isthmus.report.time_parts import time_parts
from isthmus.runtime.plan.comparison import hits, mix, seconds_of
from isthmus.runtime.results.result import Result, shown
from isthmus.runtime.trace.trace import Trace

__all__ = ["check", "render", "write"]


class Run(Protocol):
    """The data of a page; a Result has it."""

    trace: Trace

    def summary(self) -> dict[str, Any]: ...


def write(
    path: str | Path, runs: Mapping[str, Run], failed: Mapping[str, str] | None = None, answer: Result | None = None
) -> None:
    """Write the page of runs by recipe, whole or not at all. `failed` maps recipes that failed to their errors.

    `answer` is the one on which all runs agree, if they do not have it themselves.
    """
    path = check(path)
    written(path, render(runs, failed or {}, answer))


def render(runs: Mapping[str, Run], failed: Mapping[str, str], answer: Result | None = None) -> str:
    """The page as text. Every string from outside is escaped by the template."""
    clean = {recipe: as_text(run.summary()) for recipe, run in runs.items()}
    several = len(runs) > 1 or bool(failed)
    one = next(iter(clean.values()))
    name = Path(one["graph"]["path"]).name if one["graph"]["path"] else "a graph in memory"
    lines = {recipe: (series(run.trace), clean[recipe]) for recipe, run in runs.items()}
    return rendered(
        "page.html",
        mix=mix,
        hits=hits,
        seconds_of=seconds_of,
        first=one,
        name=name,
        several=several,
        failed=as_text(dict(failed)),
        runs=[section(recipe, run.trace, clean[recipe], several) for recipe, run in runs.items()],
        rows=rows_of(clean),
        together=panels.together(lines) if several else [],
        advice=advice(clean),
        given=given(one["repeat"]),
        found=panels.answer_of("answer", answer or next(iter(runs.values()))),
    )


def given(facts: dict[str, Any]) -> str:
    """The options of a run, without those that have no value and those that are shown elsewhere."""
    run = {name: facts["run"][name] for name in ("memory", "without", "threads") if facts["run"].get(name)}
    return ", ".join(f"{name} {value}" for name, value in {**facts["options"], **run}.items() if value is not None)


def section(recipe: str, trace: Trace, summary: dict[str, Any], several: bool) -> dict[str, Any]:
    """The part of the page about one run."""
    return {
        "summary": summary,
        "recipe": recipe,
        "cards": cards(summary),
        "figures": panels.figures(recipe, trace, several),
        "memory": memory(summary["memory"]),
        "time": time_rows(summary["seconds"], trace),
        "notes": panels.missing(trace, several) + summary.get("notes", []),
        "result": figures_of(summary["result"]),
        "iterations": [] if several else panels.table(trace),
        "repeat": to_repeat(summary["repeat"]),
        "leaves": leaves(summary),
    }


def figures_of(result: dict[str, Any]) -> list[tuple[str, str]]:
    """The figures of an answer, as rows."""
    return [(name.replace("_", " "), shown(value)) for name, value in result.items()]


def cards(summary: dict[str, Any]) -> list[tuple[str, str, str]]:
    """The figures that matter most: name, value, what it means."""
    seconds, transfer, memory = summary["seconds"], summary["transfer"], summary["memory"]
    near = f"of a budget of {format_size(memory['budget'])}"
    modelled = (
        [("modelled", f"{seconds['modelled'] * 1e3:.3f} ms", f"on {summary['device']}")]
        if "modelled" in seconds
        else []
    )
    return [
        *modelled,
        ("time", f"{seconds['total']:.3f} s", "in the parts below"),
        (
            "iterations",
            f"{summary['iterations']:,}",
            f"{summary['graph']['vertices']:,} vertices, {summary['graph']['edges']:,} edges",
        ),
        ("moved", format_size(transfer["bytes"]), f"in {transfer['requests']:,} requests"),
        ("moved ÷ edges", f"{transfer['ratio']:.2f}", f"of {format_size(summary['graph']['edge_bytes'])} of edges"),
        ("near memory", format_size(memory["near_peak"]), near),
    ]


def time_rows(seconds: dict[str, float], trace: Trace) -> list[tuple[str, str, float, float]]:
    """The time by activity: part, colour, seconds, percent of the total. The parts add up to it."""
    total = seconds["total"] or 1.0
    return [
        (name, SECONDS[name], spent, 100 * spent / total)
        for name, spent in time_parts(seconds, trace).items()
        if spent > 0
    ]


def memory(facts: dict[str, Any]) -> list[tuple[str, int, float]]:
    """How the budget was split: purpose, bytes, percent."""
    budget = facts["budget"]
    split = {name: size for name, size in facts["split"].items() if name != "budget" and type(size) is int}
    if not facts["split"].get("resident"):
        split = {"staging buffers" if name == "edges" else name: size for name, size in split.items()}
    split["rest"] = max(0, budget - sum(split.values()))
    return [(name, size, 100 * size / budget if budget else 0.0) for name, size in split.items()]


def to_repeat(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Facts that repeat a run, as rows."""
    graph, given = facts["graph"], {**facts["options"], **facts["run"]}
    return [
        ("command", facts["command"]),
        ("options", ", ".join(f"{name} = {value}" for name, value in given.items())),
        (
            "store",
            f"{graph['path']}, checksum {graph['checksum']}" if graph["path"] else "none: the graph was in memory",
        ),
        ("isthmus", facts["isthmus"]),
        ("date", facts["date"]),
    ]


def rows_of(summaries: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """A comparison as a table; `best` marks the least of every column, `bar` is the share of the longest time."""
    columns = {
        "seconds": [seconds_of(s) for s in summaries.values()],
        "moved": [s["transfer"]["bytes"] for s in summaries.values()],
        "requests": [s["transfer"]["requests"] for s in summaries.values()],
        "iterations": [s["iterations"] for s in summaries.values()],
    }
    least = {name: min(values) for name, values in columns.items()}
    longest = max(columns["seconds"])
    return [
        {
            "recipe": recipe,
            "summary": summary,
            "bar": 100 * columns["seconds"][at] / longest if longest else 0.0,
            "best": {name: values[at] == least[name] for name, values in columns.items()},
        }
        for at, (recipe, summary) in enumerate(summaries.items())
    ]


def leaves(value: Any, name: str = "") -> list[tuple[str, str]]:
    """Every figure of a summary, with its path: ("seconds.total", "1.25")."""
    if isinstance(value, dict):
        return [leaf for key, inner in value.items() for leaf in leaves(inner, f"{name}.{key}" if name else str(key))]
    if isinstance(value, list):
        return [leaf for at, inner in enumerate(value) for leaf in leaves(inner, f"{name}.{at}")]
    return [(name, str(value))]
