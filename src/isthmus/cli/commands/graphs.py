"""Commands about stored graphs: ingest, info, verify."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isthmus.cli import help_lists
from isthmus.cli.shared_options import (
    IdKind,
    InEdges,
    Json,
    Keep,
    Memory,
    Missing,
    Order,
    OrderOption,
    Output,
    Overwrite,
    Parallel,
    SelfLoops,
    StorePath,
    Threads,
    WeightOption,
)
from isthmus.errors import OptionError, StoreError

if TYPE_CHECKING:
    from isthmus.graph.graph import Graph
    from isthmus.graph.ingest.ingest import Report


def register(app: typer.Typer) -> None:
    app.command(cls=help_lists.Command)(ingest)
    app.command(cls=help_lists.Command)(info)
    app.command(cls=help_lists.Command)(verify)


FormatOption = Annotated[str | None, typer.Option(help=f"One of {help_lists.FORMATS}. Default: from the file name.")]
InputPath = Annotated[
    Path,
    typer.Argument(
        metavar="INPUT",
        help="A file, a folder of parts, a pattern such as 'edges-*.csv', or a store.",
        show_default=False,
    ),
]
OwnOption = Annotated[
    list[str] | None,
    typer.Option("--format-option", metavar="NAME=VALUE", help="An option that only this format has; may be repeated."),
]
DirectedOption = Annotated[
    bool | None,
    typer.Option(
        "--directed/--undirected", help="Undirected: stored both ways. Default: as the input says, else directed."
    ),
]
WeightColumn = Annotated[
    str | None,
    typer.Option(help="Column of the weight, or none. Default: as the format defines, or a column named weight."),
]
ParallelOption = Annotated[
    Parallel, typer.Option(help="Repeated edges: keep all, drop all but the first, or merge weights by min or sum.")
]
NegativeOption = Annotated[
    bool, typer.Option("--allow-negative", help="Allow negative weights; shortest paths then refuse the graph.")
]


def ingest(
    input: InputPath,
    output: Output,
    format: FormatOption = None,
    format_option: OwnOption = None,
    directed: DirectedOption = None,
    source: Annotated[str | None, typer.Option(help="Column of the source: a number from 1, or a name.")] = None,
    target: Annotated[str | None, typer.Option(help="Column of the target.")] = None,
    weight: WeightColumn = None,
    header: Annotated[bool, typer.Option("--header", help="The first line of a text file names the columns.")] = False,
    ids: Annotated[IdKind, typer.Option(help="Type of the vertex ids.")] = IdKind.auto,
    vertices: Annotated[int | None, typer.Option(min=0, help="Number of vertices; their ids are 0 .. N-1.")] = None,
    comments: Annotated[str, typer.Option(help="Characters that start a comment line.")] = "#%",
    self_loops: SelfLoops = Keep.keep,
    parallel: ParallelOption = Parallel.keep,
    in_edges: InEdges = True,
    weight_type: WeightOption = None,
    allow_negative: NegativeOption = False,
    max_expansion: Annotated[
        float, typer.Option(min=1, help="Largest expansion factor of a compressed file beyond 1 GiB.")
    ] = 200,
    missing: Annotated[
        Missing, typer.Option(help="Rows or lines without a source or target: an error, or skip them.")
    ] = Missing.error,
    order: OrderOption = Order.natural,
    memory: Memory = None,
    threads: Threads = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Read a graph into a store."""
    from isthmus.graph.ingest.build import ingest as run

    if str(input) == "-":
        raise OptionError(
            "ingest: expected a file, as some inputs are read twice, got standard input; write it to a file first"
        )
    own = own_options(format_option)
    built(
        lambda bar: run(
            input,
            output,
            order=order,
            overwrite=overwrite,
            memory=memory,
            threads=threads,
            progress=bar,
            format=format,
            directed=directed,
            source=source,
            target=target,
            weight=weight,
            header=header,
            ids=ids,
            vertices=vertices,
            comments=comments,
            self_loops=self_loops,
            parallel=parallel,
            in_edges=in_edges,
            weight_dtype=weight_type,
            allow_negative=allow_negative,
            max_expansion=max_expansion,
            missing=missing,
            **own,
        ),
        json,
        "read",
    )


def own_options(texts: list[str] | None) -> dict[str, str]:
    """NAME=VALUE words by name. Options that all formats share are options of the command and refused here."""
    from isthmus.graph.ingest.build import CLEANING, READING

    found: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise OptionError(f"--format-option: expected NAME=VALUE, got {text!r}")
        if name in found or name in READING | CLEANING | {"order", "overwrite", "memory", "threads", "progress"}:
            why = "was given twice" if name in found else "is an option of the command, not of a format"
            raise OptionError(f"--format-option: {name} {why}")
        found[name] = value
    return found


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


StoreOrNone = Annotated[
    Path | None, typer.Argument(metavar="[STORE]", help="A store, NAME.isthmus.", show_default=False)
]
DevicesOption = Annotated[
    bool, typer.Option("--devices", help="List the devices, and why some of them cannot be used.")
]


def info(store: StoreOrNone = None, devices: DevicesOption = False, json: Json = False) -> None:
    """Show a store's contents, or the devices that there are."""
    if devices == (store is not None):
        raise OptionError("info: expected a store, such as graph.isthmus, or --devices")
    if store is None:
        show_devices(json)
    else:
        show_store(store, json)


def show_devices(as_json: bool) -> None:
    from isthmus.cli.console import facts, show_json
    from isthmus.devices.choose import listed

    found = listed()
    if as_json:
        show_json({"devices": [each.as_dict() for each in found]})
        return
    facts("devices", [(each.device, str(each)) for each in found])


def show_store(store: Path, as_json: bool) -> None:
    from isthmus.cli.console import facts, show_json
    from isthmus.graph.graph import open_graph
    from isthmus.memory import format_size

    graph = open_graph(store)
    details = graph.info()
    if as_json:
        show_json(details)
        return
    rows = rows_of(graph)
    rows.append(("self loops", f"{details['self_loops']:,}"))
    rows.append(("on disk", format_size(details["store_bytes"])))
    rows += [
        (name, f"{part['count']:,} x {part['type']}, {format_size(part['bytes'])}")
        for name, part in details["sections"].items()
    ]
    facts(str(store), rows)


def verify(store: StorePath, threads: Threads = None, json: Json = False) -> None:
    """Check every block of a store against its checksum, and the arrays against each other."""
    from isthmus.cli import verbosity
    from isthmus.cli.console import Bar, counted, fail, say, show_json
    from isthmus.graph.store.verify import verify as run
    from isthmus.memory import format_size

    start = time.perf_counter()
    with Bar() as bar:
        verdict = run(store, threads=threads, progress=bar)
    seconds = time.perf_counter() - start
    if json:
        found = {"ok": verdict.ok, "blocks": verdict.blocks, "bytes": verdict.bytes, "problems": verdict.problems}
        show_json({"path": str(store), **found, "seconds": seconds})
    elif verdict.ok and not verbosity.quiet:
        say(
            f"{store} is sound: {counted(verdict.blocks, 'block')}, {format_size(verdict.bytes)}, in {seconds:.2f} s",
            "green",
        )
    for problem in () if json else verdict.problems:
        fail(f"{store}: {problem}")
    if not verdict.ok:
        raise typer.Exit(StoreError.exit_code)
