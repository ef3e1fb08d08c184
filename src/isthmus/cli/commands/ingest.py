"""`isthmus ingest INPUT`: read a graph into a store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

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
    Threads,
    WeightOption,
)
from isthmus.cli.signatures import command_of
from isthmus.errors import OptionError

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
SourceColumn = Annotated[str | None, typer.Option(help="Column of the source: a number from 1, or a name.")]
HeaderOption = Annotated[bool, typer.Option("--header", help="The first line of a text file names the columns.")]
VerticesOption = Annotated[int | None, typer.Option(min=0, help="Number of vertices; their ids are 0 .. N-1.")]
NegativeOption = Annotated[
    bool, typer.Option("--allow-negative", help="Allow negative weights; shortest paths then refuse the graph.")
]
ExpansionOption = Annotated[
    float, typer.Option(min=1, help="Largest expansion factor of a compressed file beyond 1 GiB.")
]
MissingOption = Annotated[
    Missing, typer.Option(help="Rows or lines without a source or target: an error, or skip them.")
]


@dataclass
class IngestOptions:
    """How to read an input and what to keep of it, as `isthmus.ingest` takes it."""

    format: FormatOption = None
    directed: DirectedOption = None
    source: SourceColumn = None
    target: Annotated[str | None, typer.Option(help="Column of the target.")] = None
    weight: WeightColumn = None
    header: HeaderOption = False
    ids: Annotated[IdKind, typer.Option(help="Type of the vertex ids.")] = IdKind.auto
    vertices: VerticesOption = None
    comments: Annotated[str, typer.Option(help="Characters that start a comment line.")] = "#%"
    self_loops: SelfLoops = Keep.keep
    parallel: ParallelOption = Parallel.keep
    in_edges: InEdges = True
    weight_dtype: WeightOption = None
    allow_negative: NegativeOption = False
    max_expansion: ExpansionOption = 200
    missing: MissingOption = Missing.error
    order: OrderOption = Order.natural
    memory: Memory = None
    threads: Threads = None
    overwrite: Overwrite = False


def ingest(
    input: InputPath, output: Output, options: IngestOptions, format_option: OwnOption = None, json: Json = False
) -> None:
    """Read a graph into a store."""
    from isthmus.cli.graph_summary import built
    from isthmus.graph.ingest.build import ingest as run

    if str(input) == "-":
        raise OptionError(
            "ingest: expected a file, as some inputs are read twice, got standard input; write it to a file first"
        )
    own = own_options(format_option)
    built(lambda bar: run(input, output, progress=bar, **vars(options), **own), json, "read")


def own_options(texts: list[str] | None) -> dict[str, Any]:
    """NAME=VALUE words by name. Options that all formats share are options of the command and refused here."""
    found: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise OptionError(f"--format-option: expected NAME=VALUE, got {text!r}")
        if name in found or name in {*vars(IngestOptions()), "own", "progress"}:
            why = "was given twice" if name in found else "is an option of the command, not of a format"
            raise OptionError(f"--format-option: {name} {why}")
        found[name] = value
    return found


def register(app: typer.Typer) -> None:
    app.command(cls=help_lists.Command)(command_of(ingest))
