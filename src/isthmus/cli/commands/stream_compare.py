"""`isthmus stream compare STORE`: the same updates with several recipes of streams, side by side."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from isthmus.cli.shared_options import RUNNING, Json, StorePath, Threads
from isthmus.cli.stream_updates import Updates

DeviceOption = Annotated[str, typer.Option(help="A modelled GPU: model:NAME.", show_default=True)]
NearOption = Annotated[
    str, typer.Option(help="Near memory of the device, or for lists that stay near a share of the edges: 10%.")
]
PoliciesOption = Annotated[
    str | None, typer.Option(metavar="NAME,NAME...", help="Recipes of streams to compare. Default: all of them.")
]

ReportOption = Annotated[
    Path | None, typer.Option(help="Write an HTML report of the comparison: NAME.html.", rich_help_panel=RUNNING)
]


def show(summary: dict[str, Any]) -> None:
    """One row for each recipe; the fastest in green."""
    from rich.table import Table

    from isthmus.cli.console import out, short_count
    from isthmus.memory import format_size

    table = Table(box=None, padding=(0, 1, 0, 0), header_style="cyan")
    for title in ("recipe", "modelled s", "bytes", "x edges", "requests", "hits", "affected", "edges read"):
        table.add_column(title, justify="left" if title == "recipe" else "right", no_wrap=True)
    for run in summary["runs"]:
        moved = run["transfer"]
        table.add_row(
            run["recipe"],
            f"{moved['modelled']:.6f}",
            format_size(moved["bytes"]),
            f"{run['ratio']:.4f}",
            short_count(moved["requests"]),
            f"{100 * run['hits']:.1f} %" if run["hits"] else "-",
            f"{run['affected']:,}",
            short_count(run["edges_read"]),
            style="green" if run["recipe"] == summary["fastest"] else "",
        )
    out.print(table)


def compare(
    store: StorePath,
    updates: Updates,
    device: DeviceOption = "model:rtx2080ti",
    memory: NearOption = "10%",
    policies: PoliciesOption = None,
    threads: Threads = None,
    report: ReportOption = None,
    json: Json = False,
) -> None:
    """Compare recipes of streams on a modelled device or a GPU: what each of them moves for the same changes."""
    from isthmus.cli.console import err, say, show_json
    from isthmus.cli.follower import batches, notes_about
    from isthmus.cli.program_texts import parse
    from isthmus.cli.shell_options import names
    from isthmus.graph.graph import open_graph
    from isthmus.runtime.trace.provenance import from_shell
    from isthmus.stream.stream_comparison import compare_streams

    if report is not None:
        from isthmus.report import template

        template.check(report)
    with open_graph(store) as graph, from_shell(sys.argv[1:]):
        requests = [parse(text, graph) for text in updates.program or []]
        notes_about(requests, graph)
        chosen = None if policies is None else names(policies)
        with err.status("opening") as status:
            found = compare_streams(
                graph,
                requests,
                updates.updates,
                device=device,
                memory=memory,
                policies=chosen,
                threads=threads,
                begin=lambda recipe: status.update(f"updates by {recipe}"),
                **updates.reading(),
            )
    if report is not None:
        found.report(report)
    summary = found.summary()
    if json:
        show_json(summary)
        return
    run = summary["runs"][0]
    say(
        f"{updates.updates} on {store}, {summary['device']}: {batches(run['batches'])}, {run['changes']:,} changes",
        "bold",
    )
    show(summary)
    say(f"Answers agree. Fastest: {found.fastest}.", "bold green")
    say(found.advice)
    if report is not None:
        say(f"written  {report}")
