"""The figures of a page, and the notes that explain missing ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isthmus.programs.algorithm import Rows
from isthmus.report import draw
from isthmus.report.answer import distribution, first, of_groups
from isthmus.report.series import UNKNOWN, Series, choice_map, series
from isthmus.report.template import as_text
from isthmus.runtime.results.result import Result
from isthmus.runtime.trace.trace import Trace

Panel = dict[str, Any]  # title, text, svg, legend


def panel(title: str, text: str, svg: str, legend: Mapping[str, Any]) -> Panel:
    from markupsafe import Markup

    marks = [(draw.plain(name), *swatch(mark)) for name, mark in legend.items()]
    return {"title": title, "text": text, "svg": Markup(svg), "legend": marks}


def swatch(mark: Any) -> tuple[str, str]:
    """How a legend shows a colour, or a line in the page's own colour: (colour, dash)."""
    if isinstance(mark, str):
        return mark, ""
    return "", "dashed" if mark[1] == "--" else "solid"


def answer_of(name: str, run: Any) -> dict[str, Any] | None:
    """The answer on a page: a table of the first vertices, and the distribution. None without vertices."""
    if not isinstance(run, Result) or run.rows is not Rows.VERTICES:
        return None
    head, rows = first(run)
    title = f"Largest {run.group_words[1]}" if run.has_groups else "Top vertices"
    table = as_text({"title": title, "head": list(head), "rows": [list(row) for row in rows]})
    return {**table, "panels": answer(name, run)}


def answer(name: str, result: Any) -> list[Panel]:
    """How the values of an answer are distributed; nothing if none is known."""
    if result.has_groups:
        group, many = result.group_words
        found, what, rows, text = (
            of_groups(result),
            f"vertices of a {group}",
            many,
            f"How many {many} there are of each size.",
        )
    else:
        what, rows = result.main.replace("_", " "), "vertices"
        found, text = (
            distribution(result.raw(result.main), result.declared(result.main)),
            f"How many vertices have which {what}.",
        )
    if found is None:
        return []
    for count, why in ((found.missing, "no value"), (found.zeros, "the value 0")):
        text += f" {count:,} with {why} are left out." if count else ""
    return [panel("Distribution", text, draw.spread(f"{name}-answer", what, rows, found), {})]


def figures(name: str, trace: Trace, several: bool) -> list[Panel]:
    """The figures of one run. With `several` runs, only those that cannot be drawn in shared axes."""
    data = series(trace)
    if not data.iterations:
        return []
    found = [*choices(name, trace, data), *cache(name, data)]
    return found if several else [*found, *progress(name, data), *transfer(name, data)]


def choices(name: str, trace: Trace, data: Series) -> list[Panel]:
    """Which engine brought what."""
    if not data.partitions:
        return []
    shares = data.shares()
    colors = draw.engine_colors(shares)
    found = [
        panel(
            "Execution path",
            f"Share of the active partitions that each engine brought.{binned(data)}",
            draw.stacked(f"{name}-path", "partitions", data, shares, colors, "%"),
            colors,
        )
    ]
    chosen = choice_map(trace, data.step)
    if chosen is not None:
        rows = (
            ""
            if chosen.row_step == 1
            else f" A row is {chosen.row_step} partitions, in the colour of the commonest engine."
        )
        lost = " Pale: not recorded." if (chosen.codes == UNKNOWN).any() else ""
        text = f"Which engine brought each of {chosen.partitions:,} partitions; blank: not active.{lost}{rows}"
        found.append(panel("Partitions", text, draw.partition_map(f"{name}-map", data, chosen), colors))
    return found


def cache(name: str, data: Series) -> list[Panel]:
    if not data.hit_edges.any():
        return []
    text = f"Share of the active edges that were near already.{binned(data)}"
    return [panel("Cache hits", text, draw.hit_rate(f"{name}-hits", data), {})]


def progress(name: str, data: Series) -> list[Panel]:
    """Active vertices and edges, and seconds."""
    times = {what: values for what, values in data.seconds.items() if values.any()}
    clock, colors = ("Modelled seconds", draw.MODELLED_SECONDS) if data.modelled else ("Seconds", draw.SECONDS)
    return [
        panel(
            "Active",
            f"Active vertices and their edges.{binned(data)}",
            draw.active(f"{name}-active", data),
            draw.ACTIVE,
        ),
        panel(
            "Time",
            f"{clock} in each iteration.{binned(data)}",
            draw.stacked(f"{name}-time", "time", data, times, colors, "s"),
            {what: colors[what] for what in times},
        ),
    ]


def transfer(name: str, data: Series) -> list[Panel]:
    """Bytes that moved over the link."""
    if not data.moved.any():
        return []
    moved = {engine: values for engine, values in data.bytes.items() if values.any()}
    colors = draw.engine_colors(moved)
    return [
        panel(
            "Transfer",
            f"Bytes moved in each iteration, by engine.{binned(data)}",
            draw.stacked(f"{name}-bytes", "bytes", data, moved, colors, "B"),
            colors,
        ),
        panel(
            "Transfer so far",
            "Bytes moved since the start.",
            draw.growing(f"{name}-sum", "bytes", {name: (data, data.moved)}, "B"),
            {},
        ),
    ]


def together(runs: dict[str, tuple[Series, dict[str, Any]]]) -> list[Panel]:
    """Figures with one line for each run."""
    going = {policy: (data, summary) for policy, (data, summary) in runs.items() if data.iterations}
    if not going:
        return []
    ratio = {
        policy: (data, data.moved / max(1, summary["graph"]["edge_bytes"])) for policy, (data, summary) in going.items()
    }
    clock = "Modelled seconds" if any(data.modelled for data, _ in going.values()) else "Seconds"
    spent = {policy: (data, sum(data.seconds.values()) * data.sizes) for policy, (data, _) in going.items()}
    return [
        panel(
            "Transfer so far",
            "Bytes moved since the start ÷ bytes of all edges.",
            draw.growing("all-moved", "moved ÷ edges", ratio, ""),
            {},
        ),
        panel("Time so far", f"{clock} since the first iteration.", draw.growing("all-time", "time", spent, "s"), {}),
    ]


def missing(trace: Trace, several: bool) -> list[str]:
    """Why some of the figures are missing."""
    data = series(trace)
    if not data.iterations:
        return ["No iteration was needed."]
    if not data.moved.any():
        return ["All edges were in near memory, so no bytes moved and no engine was chosen."]
    return [] if data.hit_edges.any() or several else ["No cache hits."]


def binned(data: Series) -> str:
    return "" if data.step == 1 else f" Columns are means of {data.step:,} iterations."


def table(trace: Trace) -> list[dict[str, Any]]:
    """The figures as numbers, bin by bin."""
    data = series(trace)
    ends = data.sizes.cumsum()
    return [
        {
            "first": int(ends[k] - data.sizes[k] + 1),
            "last": int(ends[k]),
            "vertices": round(float(data.active_vertices[k])),
            "edges": round(float(data.active_edges[k])),
            "seconds": float(sum(values[k] for values in data.seconds.values())) * int(data.sizes[k]),
            "bytes": int(data.moved[k]),
            "requests": int(data.requested[k]),
            "hits": 100 * float(data.hit_rate[k]),
        }
        for k in range(data.sizes.size)
    ]
