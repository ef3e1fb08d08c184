"""Commands that look at parts of a stored graph: path, degrees, subgraph, ego-graph."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer

from isthmus.cli import help_lists
from isthmus.cli.shared_options import Ascending, Json, Memory, Output, Overwrite, ResultOutput, StorePath, Top
from isthmus.cli.signatures import command_of
from isthmus.errors import OptionError
from isthmus.runtime.options import SessionOptions

if TYPE_CHECKING:
    from isthmus.graph.graph import Graph

VertexA = Annotated[str, typer.Argument(metavar="SOURCE", help="The vertex where the path begins.", show_default=False)]
VertexB = Annotated[str, typer.Argument(metavar="TARGET", help="The vertex where it ends.", show_default=False)]
WeightFlag = Annotated[bool, typer.Option("--weight", help="Smallest sum of weights. Default: fewest edges.")]
Center = Annotated[
    str, typer.Argument(metavar="VERTEX", help="The vertex whose neighbourhood is written.", show_default=False)
]
VertexOption = Annotated[
    list[str] | None, typer.Option("--vertex", metavar="VERTEX", help="A vertex to keep; may be repeated.")
]
VerticesOption = Annotated[
    Path | None, typer.Option("--vertices", metavar="FILE", help="A file with a vertex per line; - for standard input.")
]
RadiusOption = Annotated[float, typer.Option(min=0, help="Largest distance from VERTEX, in edges.")]
ByWeight = Annotated[bool, typer.Option("--weight", help="Distances are sums of weights. Default: numbers of edges.")]
BothWays = Annotated[bool, typer.Option("--undirected", help="Follow directed edges in both directions.")]


def register(app: typer.Typer) -> None:
    app.command(cls=help_lists.Command)(command_of(path))
    app.command(cls=help_lists.Command)(degrees)
    app.command(cls=help_lists.Command)(subgraph)
    app.command("ego-graph", cls=help_lists.Command)(ego_graph)


def path(
    store: StorePath,
    source: VertexA,
    target: VertexB,
    weight: WeightFlag = False,
    json: Json = False,
    **options: Unpack[SessionOptions],
) -> None:
    """Find a shortest path between two vertices."""
    from isthmus.cli.console import Watch, counted, say, show_json, summary, warn
    from isthmus.graph.graph import open_graph
    from isthmus.runtime.results.shortest_path import found_path
    from isthmus.runtime.session import Session

    graph = open_graph(store)
    with Watch("path") as watch, Session(graph, **options) as session:
        ends = graph.ids.parse(source), graph.ids.parse(target)
        found = found_path(session, *ends, weight, watch=watch.seen, say=watch.say)
    if weight and not graph.weighted:
        warn("the graph has no weights: every edge counts as 1")
    if json:
        show_json({"path": found.vertices, "length": found.length, "run": found.result.summary()})
        return
    for vertex in found.vertices:
        say(str(vertex))
    edges = counted(len(found.vertices) - 1, "edge")
    words = f"{edges}, weight {found.length:g}" if weight and graph.weighted else edges
    unused = "; --weight finds the path with the smallest weight" if graph.weighted and not weight else ""
    summary(f"{words}{unused}", [], error=True)


def degrees(
    store: StorePath,
    output: ResultOutput = None,
    top: Top = 10,
    ascending: Ascending = False,
    memory: Memory = None,
    json: Json = False,
) -> None:
    """Show the vertices with the most edges, or write the degrees of all vertices."""
    from isthmus.cli.console import show_json, summary
    from isthmus.cli.outputs import check_output, first, save, show_first
    from isthmus.graph.graph import open_graph
    from isthmus.runtime.results.degrees import degrees as count

    check_output(output, json)
    graph = open_graph(store)
    result = count(graph, memory)
    if output is not None:
        save(result, output)
    if json:
        show_json(
            {"path": str(store), "vertices": graph.vertices, "edges": graph.edges, "top": first(result, top, ascending)}
        )
    elif output is None:
        show_first(result, top, ascending)
    elif str(output) != "-":
        summary("", [("written", str(output))])
    if output is None and not json and top < graph.vertices:
        summary(f"{top:,} of {graph.vertices:,} vertices; -o FILE writes all", [], error=True)


def subgraph(
    store: StorePath,
    output: Output,
    vertex: VertexOption = None,
    vertices: VerticesOption = None,
    memory: Memory = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Write the graph of some vertices and all edges between them into a store."""
    from isthmus.graph.export.subgraph import subgraph as part_of
    from isthmus.graph.graph import open_graph

    if vertex is None and vertices is None:
        raise OptionError(
            "subgraph: expected the vertices to keep: --vertex VERTEX, which may be repeated, or --vertices FILE"
        )
    graph = open_graph(store)
    chosen = [graph.ids.parse(word) for word in [*(vertex or []), *lines_of(vertices)]]
    write_part(part_of(graph, chosen, memory), output, overwrite, json)


def ego_graph(
    store: StorePath,
    vertex: Center,
    output: Output,
    radius: RadiusOption = 1,
    weight: ByWeight = False,
    undirected: BothWays = False,
    memory: Memory = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Write the neighbourhood of a vertex, and all edges in it, into a store."""
    from isthmus.graph.export.subgraph import ego_graph as around
    from isthmus.graph.graph import open_graph

    graph, how = open_graph(store), "weight" if weight else None
    far = int(radius) if radius.is_integer() else radius
    write_part(
        around(graph, graph.ids.parse(vertex), far, undirected=undirected, distance=how, memory=memory),
        output,
        overwrite,
        json,
    )


def lines_of(path: Path | None) -> list[str]:
    """The lines of a file, or of standard input, that are not empty."""
    if path is None:
        return []
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except OSError as error:
        raise OptionError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError:
        raise OptionError(f"{path}: expected text in UTF-8 with a vertex per line") from None
    return [line for line in text.splitlines() if line.strip()]


def write_part(part: Graph, output: Path, overwrite: bool, as_json: bool) -> None:
    from isthmus.cli.console import show_json, summary
    from isthmus.cli.graph_summary import rows_of
    from isthmus.cli.graph_summary import summary as as_dict
    from isthmus.graph.ingest.build import store_again

    stored: Any = store_again(part, output, overwrite)
    if as_json:
        show_json(as_dict(stored))
    else:
        summary(str(output), rows_of(stored))
