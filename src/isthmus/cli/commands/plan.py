"""`isthmus plan ALGORITHM STORE`: the memory that a run would need and the cost of one pass over the edges, without
running it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from isthmus.cli.algorithms import Given, group, read
from isthmus.cli.commands.run import Budget, DeviceOption, PolicyOption
from isthmus.cli.shared_options import Json, StorePath, Threads

if TYPE_CHECKING:
    from isthmus.programs.algorithm import Algorithm


def shared(
    store: StorePath,
    memory: Budget = None,
    policy: PolicyOption = "auto",
    device: DeviceOption = "auto",
    threads: Threads = None,
    json: Json = False,
) -> None:
    """The options of every plan, as a signature."""


def act(
    algorithm: Algorithm,
    given: Given,
    store: Path,
    memory: str | None,
    policy: str,
    device: str,
    threads: int | None,
    json: bool,
) -> None:
    from isthmus.cli.console import facts, say, show_json, warn
    from isthmus.graph.graph import open_graph
    from isthmus.runtime.plan.plan import plan
    from isthmus.runtime.public import function_of

    graph = open_graph(store)
    own = read(algorithm, given, graph)
    found = plan(function_of(algorithm), graph, policy=policy, device=device, memory=memory, threads=threads, **own)
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
    app.add_typer(
        group("Show the memory and the cost per pass of a run, without running it.", shared, act), name="plan"
    )
