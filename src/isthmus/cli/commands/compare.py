"""`isthmus compare ALGORITHM STORE`: the same algorithm with several recipes, side by side."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Unpack

import typer

from isthmus.cli.algorithms import AlgorithmCall, group
from isthmus.cli.shared_options import RUNNING, Json, StorePath
from isthmus.cli.shell_options import names
from isthmus.runtime.options import SessionOptions

PoliciesOption = Annotated[
    str | None, typer.Option(metavar="NAME,NAME...", help="Recipes to compare. Default: all of them.")
]
RoundsOption = Annotated[int, typer.Option(min=1, help="Runs of each recipe; the median is shown.")]
ReportOption = Annotated[
    Path | None, typer.Option(help="Write an HTML report of the runs: NAME.html.", rich_help_panel=RUNNING)
]


def compare(
    call: AlgorithmCall,
    store: StorePath,
    policies: PoliciesOption = None,
    rounds: RoundsOption = 3,
    report: ReportOption = None,
    json: Json = False,
    **options: Unpack[SessionOptions],
) -> None:
    from isthmus.cli.console import Watch, fail, say, show_json, warn
    from isthmus.graph.graph import open_graph
    from isthmus.runtime.plan.comparison import compare as run_all
    from isthmus.runtime.trace.provenance import from_shell

    if report is not None:
        from isthmus.report import page

        page.check(report)
    graph = open_graph(store)
    chosen = None if policies is None else names(policies)

    def begin(recipe: str, number: int) -> None:
        watch.begin(f"{call.name} by {recipe}, {f'round {number} of {rounds}' if number else 'warming up'}")

    with Watch(call.name) as watch, from_shell(sys.argv[1:]):
        how: dict[str, Any] = {
            "policies": chosen,
            "rounds": rounds,
            "begin": begin,
            "watch": watch.seen,
            "say": watch.say,
        }
        found = run_all(call.function, graph, **call.arguments(graph), **how, **options)
    if report is not None:
        found.report(report)
    summary = found.summary()
    if json:
        show_json(summary)
    else:
        say(f"{call.name} on {store}, {found.runs[found.fastest].summary()['device']}", "bold")
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
    app.add_typer(
        group("Run an algorithm with several recipes and compare them.", compare, without=("policy",)), name="compare"
    )
