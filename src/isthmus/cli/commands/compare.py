"""`isthmus compare ALGORITHM STORE`: the same algorithm with several recipes, side by side."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isthmus.cli.algorithms import Given, group, names, read
from isthmus.cli.commands.run import Budget, DeviceOption, VerifyOption, WithoutOption
from isthmus.cli.shared_options import RUNNING, Json, StorePath, Threads

if TYPE_CHECKING:
    from isthmus.programs.algorithm import Algorithm

PoliciesOption = Annotated[
    str | None, typer.Option(metavar="NAME,NAME...", help="Recipes to compare. Default: all of them.")
]
RoundsOption = Annotated[int, typer.Option(min=1, help="Runs of each recipe; the median is shown.")]
ReportOption = Annotated[
    Path | None, typer.Option(help="Write an HTML report of the runs: NAME.html.", rich_help_panel=RUNNING)
]


def shared(
    store: StorePath,
    memory: Budget = None,
    policies: PoliciesOption = None,
    without: WithoutOption = None,
    device: DeviceOption = "auto",
    rounds: RoundsOption = 3,
    threads: Threads = None,
    verify: VerifyOption = True,
    report: ReportOption = None,
    json: Json = False,
) -> None:
    """The options of every comparison, as a signature."""


def act(
    algorithm: Algorithm,
    given: Given,
    store: Path,
    memory: str | None,
    policies: str | None,
    without: str | None,
    device: str,
    rounds: int,
    threads: int | None,
    verify: bool,
    report: Path | None,
    json: bool,
) -> None:
    from isthmus.cli.console import Watch, fail, say, show_json, warn
    from isthmus.graph.graph import open_graph
    from isthmus.runtime.plan.comparison import compare
    from isthmus.runtime.public import function_of
    from isthmus.runtime.trace.provenance import from_shell

    name = algorithm.name
    if report is not None:
        from isthmus.report import page

        page.check(report)
    graph = open_graph(store)
    chosen = None if policies is None else names(policies)
    with Watch(name) as watch, from_shell(sys.argv[1:]):
        found = compare(
            function_of(algorithm),
            graph,
            **read(algorithm, given, graph),
            policies=chosen,
            rounds=rounds,
            memory=memory,
            device=device,
            without=names(without),
            threads=threads,
            verify=verify,
            watch=watch.seen,
            say=watch.say,
            begin=lambda recipe, number: watch.begin(
                f"{name} by {recipe}, {f'round {number} of {rounds}' if number else 'warming up'}"
            ),
        )
    if report is not None:
        found.report(report)
    summary = found.summary()
    if json:
        show_json(summary)
    else:
        say(f"{name} on {store}, {found.runs[found.fastest].summary()['device']}", "bold")
        show(summary)
        say(f"Answers agree. Fastest: {found.fastest}.", "bold green")
        if report is not None:
            say(f"written  {report}")
    for note in dict.fromkeys(note for run in summary["runs"] for note in run["notes"]):
        warn(note)
    if all(run["policy"] == "resident" for run in summary["runs"]):
        warn("all edges fit in near memory, so no recipe moved any; give a smaller --memory to compare recipes")
    for recipe, error in found.errors.items():
        fail(f"{recipe}: {error}")
    if found.errors:
        raise typer.Exit(next(iter(found.errors.values())).exit_code)


def show(summary: dict[str, Any]) -> None:
    """One row for each recipe; the fastest in green."""
    from rich.table import Table

    from isthmus.cli.console import out, short_count
    from isthmus.runtime.plan.comparison import hits, mix, seconds_of

    table = Table(box=None, padding=(0, 1, 0, 0), header_style="cyan")
    modelled = any("modelled" in run["seconds"] for run in summary["runs"])
    for title in (
        "recipe",
        "modelled s" if modelled else "seconds",
        "x edges",
        "requests",
        "iterations",
        "hits",
        "engines by bytes",
    ):
        table.add_column(
            title,
            justify="left" if title in ("recipe", "engines by bytes") else "right",
            no_wrap=title != "engines by bytes",
        )
    for run in summary["runs"]:
        table.add_row(
            run["recipe"],
            f"{seconds_of(run):.{6 if modelled else 3}f}",
            f"{run['transfer']['ratio']:.2f}",
            short_count(run["transfer"]["requests"]),
            f"{run['iterations']:,}",
            hits(run),
            mix(run),
            style="green" if run["recipe"] == summary["fastest"] else "",
        )
    out.print(table)


def register(app: typer.Typer) -> None:
    app.add_typer(group("Run an algorithm with several recipes and compare them.", shared, act), name="compare")
