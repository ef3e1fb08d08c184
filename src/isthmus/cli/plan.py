"""`isthmus plan ALGORITHM STORE`: what a run would take, without running it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from isthmus.cli.options import Json, StorePath, Threads
from isthmus.cli.run import Answer, Budget, DeviceOption, PolicyOption, add_algorithms, parsed


def shared(
    store: StorePath,
    memory: Budget = None, policy: PolicyOption = "auto", device: DeviceOption = "auto", threads: Threads = None, json: Json = False,
) -> None:  # fmt: skip
    """The options of every plan, as a signature."""


def act(
    name: str, answer: Answer, store: Path, memory: str | None, policy: str, device: str, threads: int | None, json: bool
) -> None:
    import isthmus
    from isthmus.cli.console import facts, say, show_json, warn
    from isthmus.graph.graph import open_graph
    from isthmus.runtime.plan import plan

    graph = open_graph(store)
    found = plan(getattr(isthmus, name), graph, **parsed(answer, graph), memory=memory, policy=policy, device=device, threads=threads)
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
        table.add_row(engine.replace("_", "-"), format_size(cost["bytes"]), f"{cost['requests']:,}", f"{cost['seconds']:.3g}")
    out.print(table)


def register(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, help="Say what a run would take, without running it.")
    add_algorithms(group, shared, act)
    app.add_typer(group, name="plan")
