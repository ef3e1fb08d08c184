"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Keep(StrEnum):
    keep = "keep"
    drop = "drop"


class Parallel(StrEnum):
    keep = "keep"
    drop = "drop"
    first = "first"
    min = "min"
    sum = "sum"


class Missing(StrEnum):
    error = "error"
    skip = "skip"


class Order(StrEnum):
    natural = "natural"
    hub = "hub"


class WeightType(StrEnum):
    int32 = "int32"
    int64 = "int64"
    float32 = "float32"
    float64 = "float64"


class Preset(StrEnum):
    graph500 = "graph500"
    parmat = "parmat"


class IdKind(StrEnum):
    auto = "auto"
    int = "int"
    string = "string"


RUNNING = "Running"  # the help panel of options that do not change the answer

StorePath = Annotated[Path, typer.Argument(metavar="STORE", help="A store, NAME.isthmus.", show_default=False)]
Output = Annotated[Path, typer.Option("-o", "--output", help="The store to write: NAME.isthmus.", show_default=False)]
SelfLoops = Annotated[Keep, typer.Option(help="Keep or drop edges from a vertex to itself.")]
InEdges = Annotated[bool, typer.Option("--in-edges/--no-in-edges", help="Keep in-edges of a directed graph as well.")]
OrderOption = Annotated[Order, typer.Option(help="Vertex order; hub puts the top 8 % by out-degree x in-degree first.")]
WeightOption = Annotated[
    WeightType | None,
    typer.Option("--weight-type", help="How weights are stored. Default: int32 or int64 for integers, else float64."),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory limit, such as 512MB. Default: 60 % of the available memory.",
        rich_help_panel=RUNNING,
    ),
]
Threads = Annotated[
    int | None, typer.Option(min=1, help="Threads to use. Default: all cores.", rich_help_panel=RUNNING)
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace an existing store, in one step at the end.", rich_help_panel=RUNNING),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object instead of a table.", rich_help_panel=RUNNING)
]
Top = Annotated[
    int,
    typer.Option(metavar="N", min=0, help="Show the N vertices with the largest values, or the N largest components."),
]
Ascending = Annotated[bool, typer.Option("--ascending", help="With --top: the smallest values.")]
ResultOutput = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="Write the result: NAME.parquet, .csv or .npy; - for CSV on standard output."),
]
