"""`isthmus export STORE -o FILE`: the edges of a store in another format."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from isthmus.cli import help_lists
from isthmus.cli.shared_options import Memory, StorePath

OutputOption = Annotated[
    str,
    typer.Option(
        "-o",
        "--output",
        help="The file to write; its ending gives the format. - for standard output.",
        show_default=False,
    ),
]
FormatOption = Annotated[
    str | None, typer.Option(help="The format, or an ending such as csv. Default: from the file name; tsv for -.")
]
WeightsOption = Annotated[bool, typer.Option("--weights/--no-weights", help="Write the weights of a weighted graph.")]
HeaderOption = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header", help="Begin text with a line of names. Default: only .csv.", show_default=False
    ),
]


def export(
    store: StorePath,
    output: OutputOption,
    format: FormatOption = None,
    weights: WeightsOption = True,
    header: HeaderOption = None,
    memory: Memory = None,
) -> None:
    """Write the edges of a store to a file: text, Parquet, Arrow, Matrix Market and other formats."""
    from isthmus.cli.console import Bar, facts, warn
    from isthmus.errors import OptionError
    from isthmus.graph.export.export import exported
    from isthmus.graph.graph import open_graph
    from isthmus.graph.store.files import refuse_address

    to_stdout = output == "-"
    if not to_stdout and not Path(output).absolute().parent.is_dir():
        refuse_address(output, "a graph")
        raise OptionError(f"{Path(output).parent}: no such folder")
    with open_graph(store) as graph, Bar() as bar:
        notes = exported(
            graph,
            sys.stdout.buffer if to_stdout else output,
            format,
            weights=weights,
            header=header,
            memory=memory,
            progress=bar,
        )
        counts = f"{graph.vertices:,} vertices, {graph.edges:,} edges"
    if to_stdout:
        sys.stdout.buffer.flush()  # here, where an error of a closed pipe is still handled
    else:
        facts(str(store), [("written", output), ("graph", counts)])
    for note in notes:
        warn(note)


def register(app: typer.Typer) -> None:
    app.command(cls=help_lists.Command)(export)
