"""`isthmus generate KIND`: synthetic graphs.

A function here has the options of one kind and returns them for `isthmus.generate`; `compose` adds the shared ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from isthmus.cli import help_lists
from isthmus.cli.shared_options import (
    InEdges,
    Json,
    Keep,
    Memory,
    Order,
    OrderOption,
    Output,
    Overwrite,
    Preset,
    SelfLoops,
    Threads,
    WeightOption,
)
from isthmus.cli.signatures import compose

Shape = dict[str, Any]  # the kind of a graph, and the options that only this kind has
Vertices = Annotated[int, typer.Option(min=0, help="Number of vertices.")]
Repeats = Annotated[Keep, typer.Option("--parallel", help="Keep or drop repeated edges.")]
Weights = Annotated[
    str | None,
    typer.Option(metavar="LOW:HIGH", help="Uniformly random weights: 1:255 for integers, 0.0:1.0 for reals."),
]
Chance = Annotated[
    float | None, typer.Option(min=0, max=1, help="Probability of a quadrant; give --a, --b and --c together.")
]


@dataclass
class SharedOptions:
    """The options that all kinds share."""

    seed: Annotated[int, typer.Option(help="The same seed gives the same graph, whatever the number of threads.")] = 1
    directed: Annotated[bool, typer.Option("--directed/--undirected", help="Whether edges have a direction.")] = False
    weights: Weights = None
    weight_dtype: WeightOption = None
    in_edges: InEdges = True
    order: OrderOption = Order.natural
    memory: Memory = None
    threads: Threads = None
    overwrite: Overwrite = False


def rmat(
    scale: Annotated[int, typer.Option(min=0, max=32, help="2**scale vertices.")],
    edge_factor: Annotated[float, typer.Option(help="Edges per vertex, before cleaning.")] = 16,
    preset: Annotated[
        Preset, typer.Option(help="graph500: a, b, c = 0.57, 0.19, 0.19; parmat: 0.5, 0.2, 0.2.")
    ] = Preset.graph500,
    a: Chance = None,
    b: Chance = None,
    c: Chance = None,
    permute: Annotated[bool, typer.Option("--permute", help="Shuffle the vertex ids.")] = False,
    self_loops: SelfLoops = Keep.drop,
    parallel: Repeats = Keep.drop,
) -> Shape:
    """Recursive-matrix graph (Graph500's Kronecker graphs): skewed degrees, short paths."""
    shape: Shape = {
        "kind": "rmat",
        "scale": scale,
        "edge_factor": edge_factor,
        "permute": permute,
        "self_loops": self_loops,
        "parallel": parallel,
    }
    if a is None and b is None and c is None:
        return {**shape, "preset": preset.value}
    if a is None or b is None or c is None:
        from isthmus.errors import OptionError

        raise OptionError("give --a, --b and --c together; the fourth quadrant has the remaining probability")
    return {**shape, "probabilities": (a, b, c)}


def uniform(
    vertices: Vertices,
    edges: Annotated[int, typer.Option(min=0, help="Edges drawn, before cleaning.")],
    self_loops: SelfLoops = Keep.drop,
    parallel: Repeats = Keep.drop,
) -> Shape:
    """Edges between uniformly random vertices (Erdős-Rényi)."""
    return {"kind": "uniform", "vertices": vertices, "edges": edges, "self_loops": self_loops, "parallel": parallel}


def grid(
    rows: Annotated[int, typer.Option(min=1, help="Number of rows.")],
    columns: Annotated[int, typer.Option(min=1, help="Number of columns.")],
) -> Shape:
    """A rows x columns grid: small degrees and long paths, like a road network."""
    return {"kind": "grid", "rows": rows, "columns": columns}


def path(vertices: Vertices) -> Shape:
    """0 - 1 - 2 - ...: the longest possible diameter."""
    return {"kind": "path", "vertices": vertices}


def star(vertices: Vertices) -> Shape:
    """Vertex 0 joined to all others: one hub."""
    return {"kind": "star", "vertices": vertices}


def complete(vertices: Vertices) -> Shape:
    """Every pair of vertices joined."""
    return {"kind": "complete", "vertices": vertices}


def make(shape: Shape, output: Output, options: SharedOptions, json: Json = False) -> None:
    from isthmus.cli.graph_summary import built
    from isthmus.graph.ingest.build import generate

    built(lambda bar: generate(path=output, progress=bar, **shape, **vars(options)), json, "made")


def register(app: typer.Typer) -> None:
    kinds = typer.Typer(cls=help_lists.Group, no_args_is_help=True, help="Generate a graph.")
    for shape in (rmat, uniform, grid, path, star, complete):
        kinds.command(cls=help_lists.Command)(compose(shape, make))
    app.add_typer(kinds, name="generate")
