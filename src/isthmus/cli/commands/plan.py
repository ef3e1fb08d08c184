"""`isthmus plan ALGORITHM STORE`: the memory that a run would need and the cost of one pass over the edges."""

from __future__ import annotations

from typing import Any, Unpack

import typer

from isthmus.cli.algorithms import AlgorithmCall, group
from isthmus.cli.shared_options import Json, StorePath
from isthmus.runtime.options import SessionOptions


def plan(call: AlgorithmCall, store: StorePath, json: Json = False, **options: Unpack[SessionOptions]) -> None:
    from isthmus.cli.console import facts, say, show_json, warn
    from isthmus.graph.graph import open_graph
    from isthmus.runtime.plan.plan import plan as run

    graph = open_graph(store)
    found = run(call.function, graph, **call.arguments(graph), **options)
    summary = found.summary()
    if json:
        show_json(summary)
        return
    facts(f"{summary['algorithm']} on {store}, {summary['policy']}", found.describe())
    say("")
    say("One pass over all edges", "bold")
    show(summary["pass"])
    for note in summary["notes"]:
        warn(note)


def show(costs: dict[str, dict[str, Any]]) -> None:
    """One row for each engine."""
    from rich.table import Table

    from isthmus.cli.console import out
    from isthmus.memory import format_size

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan")
    for title in ("engine", "bytes", "requests", "seconds"):
        table.add_column(title, justify="left" if title == "engine" else "right", no_wrap=True)
    for engine, cost in costs.items():
        table.add_row(
            engine.replace("_", "-"), format_size(cost["bytes"]), f"{cost['requests']:,}", f"{cost['seconds']:.3g}"
        )
    out.print(table)


def register(app: typer.Typer) -> None:
    app.add_typer(group("Show the memory and the cost per pass of a run, without running it.", plan), name="plan")
