"""`isthmus stream make-workload`: changes to try a stream with."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from isthmus.cli.shared_options import Json

Input = Annotated[
    Path,
    typer.Argument(
        metavar="INPUT",
        help="A store, NAME.isthmus, or a list of edges with times (text, Parquet, Arrow).",
        show_default=False,
    ),
]
OutputOption = Annotated[
    Path,
    typer.Option("-o", "--output", help="The file to write: NAME.parquet, .arrow, .csv or .jsonl.", show_default=False),
]
InitialOption = Annotated[
    Path | None,
    typer.Option(metavar="STORE", help="Write the graph that the changes apply to. Default: they apply to the store."),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,NAME...",
        help="Columns of a text without a header: op, source, target, weight, time, - for others.",
    ),
]


def make_workload(
    input: Input,
    output: OutputOption,
    batches: Annotated[int, typer.Option(min=1, help="Number of batches.")] = 10,
    size: Annotated[int, typer.Option(min=1, help="Changes per batch.")] = 100_000,
    ratio: Annotated[
        float, typer.Option(min=0, max=1, help="Share of inserts; the others are deletes. For a store.")
    ] = 0.5,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same changes. For a store.")] = 1,
    initial: InitialOption = None,
    rate: Annotated[
        float | None, typer.Option(help="Add a column time, with this many changes per second. For a store.")
    ] = None,
    columns: ColumnsOption = None,
    directed: Annotated[
        bool, typer.Option("--directed/--undirected", help="Whether edges of a list have a direction.")
    ] = True,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False,
    json: Json = False,
) -> None:
    """Make changes to try a stream with.

    From a store, edges are inserted and deleted at random: deletes are edges that it has, inserts edges that it lacks.
    With --initial all are edges that it has, and the graph without those to be inserted is written. From a list of
    edges with times, the latest rows are the changes, and --initial gets the graph of the earlier ones.
    """
    from isthmus.cli.console import show_json, summary
    from isthmus.cli.shell_options import names
    from isthmus.stream.workload.make import make_workload as make

    start = time.perf_counter()
    found = make(
        input,
        output,
        batches=batches,
        size=size,
        ratio=ratio,
        seed=seed,
        initial=initial,
        rate=rate,
        columns=names(columns) or None,
        directed=directed,
        overwrite=overwrite,
    )
    seconds = time.perf_counter() - start
    if json:
        show_json({**found, "seconds": seconds})
        return
    cut = f"in {batches:,} batch{'' if batches == 1 else 'es'}"
    rows = [("changes", f"{found['changes']:,}: {found['inserts']:,} inserts, {found['deletes']:,} deletes, {cut}")]
    if found.get("arrival_rate"):
        rows.append(("arrival", f"{found['arrival_rate']:.4g} changes/s by their times"))
    rows += [("starts from", found["initial"] or str(input)), ("time", f"{seconds:.2f} s")]
    summary(str(output), rows)
