"""A comparison of streams as one HTML page: bytes moved by each recipe for the same batches, and advice."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from isthmus.report import draw
from isthmus.report.page import figures_of, leaves
from isthmus.report.panels import Panel, answer_of, panel
from isthmus.report.series import BINS
from isthmus.report.template import as_text, check, rendered, written
from isthmus.runtime.results.result import Result

Array = np.ndarray[Any, Any]
FIGURES = {  # column of a batch: title, what it shows, unit
    "modelled": ("Time", "Modelled seconds of a batch, on a logarithmic axis.", "s"),
    "bytes": (
        "Transfer",
        "Bytes that a batch moved, on a logarithmic axis. A recipe that moved none has no line.",
        "B",
    ),
    "requests": (
        "Requests",
        "Requests or page migrations of a batch, on a logarithmic axis. A recipe with none has no line.",
        "",
    ),
    "hits": ("Hits", "Share of the edges read by a batch that were near already. A recipe with none has no line.", "%"),
}


def write(
    path: str | Path, summary: dict[str, Any], lines: dict[str, tuple[str, str]], answers: Mapping[str, Result]
) -> None:
    """Write the page of a comparison, whole or not at all. `lines`: colour and dash of every recipe.

    `answers`: by program, those on which all recipes agree.
    """
    path = check(path)
    written(path, render(summary, lines, answers))


def render(summary: dict[str, Any], lines: dict[str, tuple[str, str]], answers: Mapping[str, Result]) -> str:
    """The page as text."""
    facts = as_text(summary)
    binned = {run["recipe"]: bins(run["by_batch"]) for run in facts["runs"]}
    drawn = {recipe: (draw.shade(colour), dash) for recipe, (colour, dash) in lines.items()}
    path, batches = facts["graph"]["path"], facts["runs"][0]["batches"]
    totals = {run["recipe"]: {key: value for key, value in run.items() if key != "by_batch"} for run in facts["runs"]}
    return rendered(
        "streams.html",
        facts=facts,
        name=Path(path).name if path else "a graph in memory",
        rows=rows_of(facts["runs"]),
        figures=figures(binned, drawn) if batches else [],
        tables=[(recipe, by_batch(each)) for recipe, each in binned.items()] if batches else [],
        answers=[(as_text(program), *shown_of(at, result)) for at, (program, result) in enumerate(answers.items())],
        repeat=to_repeat(facts),
        leaves={recipe: leaves(each) for recipe, each in totals.items()},
    )


def shown_of(at: int, result: Result) -> tuple[list[tuple[str, str]], dict[str, Any] | None]:
    """The part of the page about an answer: its figures, the vertices that come first, and the distribution."""
    return figures_of(as_text(result.summary()["result"])), answer_of(f"answer-{at}", result)


def bins(columns: dict[str, list[float]]) -> dict[str, Array]:
    """Columns by batch in at most BINS bins of equal size: means per batch; `sizes` has the batches of each."""
    count = len(columns["changes"])
    starts = np.arange(0, count, max(1, -(-count // BINS)))
    sizes = np.diff(np.append(starts, count))

    def means(values: list[float]) -> Array:
        return np.add.reduceat(np.asarray(values, np.float64), starts) / sizes if count else np.zeros(0)

    binned = {name: means(values) for name, values in columns.items()}
    read = binned["hit_edges"] + binned["miss_edges"]
    return {
        **binned,
        "hits": np.divide(binned["hit_edges"], read, out=np.zeros(read.size), where=read > 0),
        "sizes": sizes,
    }


def figures(runs: dict[str, dict[str, Array]], drawn: dict[str, tuple[str, str]]) -> list[Panel]:
    """The cost of batches, one line for each recipe."""
    panels = []
    for column, (title, text, unit) in FIGURES.items():
        sizes = next(iter(runs.values()))["sizes"]
        bounds = np.concatenate([[0], np.cumsum(sizes)]) + 0.5
        lines = {recipe: (bounds, each[column], *drawn[recipe]) for recipe, each in runs.items()}
        if not any(each[column].any() for each in runs.values()):
            continue
        count, step = int(bounds[-1]), int(sizes[0])
        text += "" if step == 1 else f" Columns are means of {step:,} batches."
        panels.append(panel(title, text, draw.by_batch(f"streams-{column}", title.lower(), count, lines, unit), {}))
    return panels


def by_batch(columns: dict[str, Array]) -> list[dict[str, Any]]:
    """The figures as numbers, bin by bin."""
    ends = np.cumsum(columns["sizes"])
    firsts = ends - columns["sizes"] + 1
    return [
        {"first": int(firsts[k]), "last": int(ends[k]), **{name: float(values[k]) for name, values in columns.items()}}
        for k in range(ends.size)
    ]


def rows_of(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The comparison as a table; `best` marks the least of every column, `bar` is the share of the longest time."""
    columns = {name: [run["transfer"][name] for run in runs] for name in ("modelled", "bytes", "requests")}
    longest = max(columns["modelled"])
    return [
        {
            "run": run,
            "bar": 100 * columns["modelled"][at] / longest if longest else 0.0,
            "best": {name: values[at] == min(values) for name, values in columns.items()},
        }
        for at, run in enumerate(runs)
    ]


def to_repeat(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Facts that repeat the comparison, as rows."""
    repeat = facts["repeat"]
    graph = repeat["graph"]
    command = [("command", repeat["command"])] if repeat["command"] else []
    return [
        *command,
        ("programs", ", ".join(facts["programs"]) or "none"),
        ("updates", facts["updates"]),
        ("device", f"{facts['device']}, memory {facts['memory']}"),
        (
            "store",
            f"{graph['path']}, checksum {graph['checksum']}" if graph["path"] else "none: the graph was in memory",
        ),
        ("isthmus", repeat["isthmus"]),
        ("date", repeat["date"]),
    ]
