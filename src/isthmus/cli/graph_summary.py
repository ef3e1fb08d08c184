"""A summary of a stored graph, for commands that make or show one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isthmus.graph.graph import Graph
    from isthmus.graph.ingest.cleaning import Report


def built(build: Callable[[Any], Graph], as_json: bool, verb: str) -> None:
    """Build a graph with a progress bar, then print a summary of it."""
    from isthmus.cli.console import Bar, show_json, warn
    from isthmus.cli.console import summary as show

    start = time.perf_counter()
    with Bar() as bar:
        graph = build(bar)
    seconds = time.perf_counter() - start
    report = graph.report
    assert report is not None
    if as_json:
        show_json({**summary(graph), "report": report.as_dict(), "seconds": seconds})
        return
    show(os.path.relpath(graph.path or ""), rows_of(graph) + rows_of_report(report, verb, seconds))
    for text in report.warnings:
        warn(text)


def summary(graph: Graph) -> dict[str, Any]:
    info = graph.info()
    info.pop("sections")
    return info


def rows_of(graph: Graph) -> list[tuple[str, str]]:
    from isthmus.memory import format_size

    kind = "directed" if graph.directed else "undirected"
    info = graph.info()
    return [
        ("vertices", f"{graph.vertices:,}"),
        ("edges", f"{graph.edges:,} {kind}{', weighted (' + info['weight_type'] + ')' if graph.weighted else ''}"),
        ("arcs stored", f"{graph.arcs:,}{' and as many in-edges' if graph.directed and graph.has_in_edges else ''}"),
        ("edge bytes", exact_size(graph.edge_bytes, format_size)),
        ("ids, order", f"{info['ids']}, {graph.order}"),
    ]


def rows_of_report(report: Report, verb: str, seconds: float) -> list[tuple[str, str]]:
    from isthmus.cli.console import counted, rate

    compiling = report.seconds.get("compile", 0.0)
    speed = f" ({rate(report.edges_read / (seconds - compiling), 'edges')})" if report.edges_read else ""
    rows = [(verb, f"{counted(report.edges_read, 'edge')} in {seconds:.2f} s{speed}")]
    if compiling:
        rows.append(("compiling", f"{compiling:.2f} s of it, not in the rate"))
    if report.self_loops_seen:
        rows.append(("self loops", f"{report.self_loops_seen:,} {'dropped' if report.self_loops_dropped else 'kept'}"))
    if report.parallel_merged:
        rows.append(("repeated", f"{report.parallel_merged:,} merged"))
    if report.spilled:
        rows.append(("memory", "spilled to disk to stay within the budget"))
    return rows


def exact_size(count: int, format_size: Callable[[float], str]) -> str:
    return f"{count:,} ({format_size(count)})" if count >= 1000 else format_size(count)
