"""Commands about graphs themselves: generate, ingest, info, verify."""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from isthmus.graph.graph import Graph

Output = Annotated[Path, typer.Option("-o", "--output", help="The store to write: NAME.isthmus.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
Memory = Annotated[str | None, typer.Option(help="Most memory to use, such as 512MB. Default: 60 % of what is available.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads to use. Default: all cores.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing store, in one step at the end.")]
StorePath = Annotated[Path, typer.Argument(metavar="STORE", help="A store, NAME.isthmus.")]


class Keep(StrEnum):
    keep = "keep"
    drop = "drop"


class Parallel(StrEnum):
    keep = "keep"
    drop = "drop"
    first = "first"
    min = "min"
    sum = "sum"


class Order(StrEnum):
    natural = "natural"
    hub = "hub"


class WeightType(StrEnum):
    int32 = "int32"
    float32 = "float32"
    float64 = "float64"


class Preset(StrEnum):
    graph500 = "graph500"
    parmat = "parmat"


class IdKind(StrEnum):
    auto = "auto"
    int = "int"
    string = "string"


OrderOption = Annotated[Order, typer.Option(help="Vertex order; hub puts the top 8 % by out-degree x in-degree first.")]
InEdges = Annotated[bool, typer.Option("--in-edges/--no-in-edges", help="Keep in-edges of a directed graph as well.")]


def register(app: typer.Typer) -> None:
    kinds = typer.Typer(no_args_is_help=True, help="Make a graph by formula.")
    for command in (rmat, uniform, grid, path, star, complete):
        kinds.command()(command)
    app.add_typer(kinds, name="generate")
    for command in (ingest, info, verify):
        app.command()(command)


# Options that every generator has, as typer wants them: spelt out once, shared by name.
Seed = Annotated[int, typer.Option(help="The same seed gives the same graph, whatever the number of threads.")]
Directed = Annotated[bool, typer.Option("--directed/--undirected", help="Whether edges have a direction.")]
Weights = Annotated[str | None, typer.Option(help="Weights drawn evenly: 1:255 for integers, 0.0:1.0 for reals.")]
Loops = Annotated[Keep, typer.Option(help="What becomes of edges from a vertex to itself.")]
Repeats = Annotated[Keep, typer.Option("--parallel", help="What becomes of repeated edges.")]
WeightOption = Annotated[WeightType | None, typer.Option(help="How weights are stored. Default: int32 for integers, else float64.")]


def rmat(
    output: Output, scale: Annotated[int, typer.Option(help="2**scale vertices.")], edge_factor: Annotated[float, typer.Option(help="Edges per vertex, before cleaning.")] = 16,
    preset: Annotated[Preset, typer.Option(help="graph500: 0.57, 0.19, 0.19; parmat: 0.5, 0.2, 0.2.")] = Preset.graph500,
    a: Annotated[float | None, typer.Option(help="Chance of the upper left quadrant; needs --b and --c.")] = None, b: float | None = None, c: float | None = None,
    permute: Annotated[bool, typer.Option("--permute", help="Shuffle the vertex ids.")] = False,
    seed: Seed = 1, directed: Directed = False, weights: Weights = None, weight_type: WeightOption = None,
    self_loops: Loops = Keep.drop, parallel: Repeats = Keep.drop, in_edges: InEdges = True, order: OrderOption = Order.natural,
    memory: Memory = None, threads: Threads = None, overwrite: Overwrite = False, json: Json = False,
) -> None:  # fmt: skip
    """Recursive-matrix graph (Graph500's Kronecker graphs): skewed degrees, short paths."""
    shape: dict[str, Any] = {"scale": scale, "edge_factor": edge_factor, "permute": permute, "preset": preset.value}
    if any(x is not None for x in (a, b, c)):
        from isthmus.errors import OptionError

        if a is None or b is None or c is None:
            raise OptionError("--a, --b and --c go together")
        shape["probabilities"] = (a, b, c)
    make("rmat", shape, locals())


def uniform(
    output: Output, vertices: Annotated[int, typer.Option(min=0)], edges: Annotated[int, typer.Option(min=0, help="Edges drawn, before cleaning.")],
    seed: Seed = 1, directed: Directed = False, weights: Weights = None, weight_type: WeightOption = None,
    self_loops: Loops = Keep.drop, parallel: Repeats = Keep.drop, in_edges: InEdges = True, order: OrderOption = Order.natural,
    memory: Memory = None, threads: Threads = None, overwrite: Overwrite = False, json: Json = False,
) -> None:  # fmt: skip
    """Edges between vertices drawn evenly (Erdős–Rényi)."""
    make("uniform", {"vertices": vertices, "edges": edges}, locals())


def grid(
    output: Output, rows: Annotated[int, typer.Option(min=1)], columns: Annotated[int, typer.Option(min=1)],
    seed: Seed = 1, directed: Directed = False, weights: Weights = None, weight_type: WeightOption = None,
    in_edges: InEdges = True, order: OrderOption = Order.natural,
    memory: Memory = None, threads: Threads = None, overwrite: Overwrite = False, json: Json = False,
) -> None:  # fmt: skip
    """A rows x columns grid: small degrees and long paths, like a road network."""
    make("grid", {"rows": rows, "columns": columns}, locals())


def path(
    output: Output, vertices: Annotated[int, typer.Option(min=0)],
    seed: Seed = 1, directed: Directed = False, weights: Weights = None, weight_type: WeightOption = None,
    in_edges: InEdges = True, order: OrderOption = Order.natural,
    memory: Memory = None, threads: Threads = None, overwrite: Overwrite = False, json: Json = False,
) -> None:  # fmt: skip
    """0 - 1 - 2 - ...: the longest diameter there is."""
    make("path", {"vertices": vertices}, locals())


def star(
    output: Output, vertices: Annotated[int, typer.Option(min=0)],
    seed: Seed = 1, directed: Directed = False, weights: Weights = None, weight_type: WeightOption = None,
    in_edges: InEdges = True, order: OrderOption = Order.natural,
    memory: Memory = None, threads: Threads = None, overwrite: Overwrite = False, json: Json = False,
) -> None:  # fmt: skip
    """Vertex 0 joined to all others: one hub."""
    make("star", {"vertices": vertices}, locals())


def complete(
    output: Output, vertices: Annotated[int, typer.Option(min=0)],
    seed: Seed = 1, directed: Directed = False, weights: Weights = None, weight_type: WeightOption = None,
    in_edges: InEdges = True, order: OrderOption = Order.natural,
    memory: Memory = None, threads: Threads = None, overwrite: Overwrite = False, json: Json = False,
) -> None:  # fmt: skip
    """Every pair of vertices joined."""
    make("complete", {"vertices": vertices}, locals())


SHARED = ("seed", "directed", "weights", "self_loops", "parallel", "in_edges", "order", "memory", "threads", "overwrite")


def make(kind: str, shape: dict[str, Any], given: dict[str, Any]) -> None:
    """Run a generator with the options that all of them share."""
    from isthmus.graph.build import generate

    shared = {name: given[name] for name in SHARED if name in given}
    built(lambda bar: generate(kind, given["output"], weight_dtype=given["weight_type"], progress=bar, **shared, **shape), given["json"])


def ingest(
    input: Annotated[Path, typer.Argument(metavar="INPUT", help="A file, a folder of parts, or a store.")],
    output: Output,
    format: Annotated[str | None, typer.Option(help="text, parquet, arrow, graphalytics, adjacency, gapbs or isthmus. Default: by the ending.")] = None,
    directed: Annotated[bool | None, typer.Option("--directed/--undirected", help="Undirected edges are stored both ways. Default: as the input says, else directed.")] = None,
    source: Annotated[str | None, typer.Option(help="Column of the source: a number from 1, or a name.")] = None,
    target: Annotated[str | None, typer.Option(help="Column of the target.")] = None,
    weight: Annotated[str | None, typer.Option(help="Column of the weight. Without it, weights are taken only where the format has them.")] = None,
    header: Annotated[bool, typer.Option("--header", help="The first line of a text file names the columns.")] = False,
    ids: Annotated[IdKind, typer.Option(help="What vertex ids are.")] = IdKind.auto,
    vertices: Annotated[int | None, typer.Option(min=0, help="Ids are 0 .. N-1, and all of them are vertices.")] = None,
    comments: Annotated[str, typer.Option(help="Characters that start a comment line.")] = "#%",
    self_loops: Loops = Keep.keep,
    parallel: Annotated[Parallel, typer.Option(help="Repeated edges: keep them, drop all but the first, or merge weights by min or sum.")] = Parallel.keep,
    in_edges: InEdges = True,
    weight_type: WeightOption = None,
    allow_negative: Annotated[bool, typer.Option("--allow-negative", help="Admit negative weights; shortest paths will refuse the graph.")] = False,
    max_expansion: Annotated[float, typer.Option(min=1, help="A compressed file may grow by this factor (or to 1 GiB).")] = 200,
    order: OrderOption = Order.natural,
    memory: Memory = None, threads: Threads = None, overwrite: Overwrite = False, json: Json = False,
) -> None:  # fmt: skip
    """Read a graph into a store."""
    from isthmus.graph.build import ingest as run

    built(
        lambda bar: run(
            input, output, order=order, overwrite=overwrite, memory=memory, threads=threads, progress=bar,
            format=format, directed=directed, source=source, target=target, weight=weight, header=header, ids=ids,
            vertices=vertices, comments=comments, self_loops=self_loops, parallel=parallel, in_edges=in_edges,
            weight_dtype=weight_type, allow_negative=allow_negative, max_expansion=max_expansion,
        ),
        json,
    )  # fmt: skip


def built(build: Callable[[Any], Graph], as_json: bool) -> None:
    """Build a graph with a progress bar, then say what came of it."""
    from isthmus.cli.console import Bar, facts, people, show_json, warn

    start = time.perf_counter()
    with Bar(not as_json) as bar:
        graph = build(bar)
    seconds = time.perf_counter() - start
    report = graph.report
    assert report is not None
    if as_json:
        show_json({**summary(graph), "report": report.as_dict(), "seconds": seconds})
        return
    rows = rows_of(graph)
    rows.append(("read", f"{report.edges_read:,} edges in {seconds:.2f} s ({people(report.edges_read / seconds)} edges/s)"))
    if report.self_loops_seen:
        rows.append(("self loops", f"{report.self_loops_seen:,} {'dropped' if report.self_loops_dropped else 'kept'}"))
    if report.parallel_merged:
        rows.append(("repeated", f"{report.parallel_merged:,} merged"))
    if report.spilled:
        rows.append(("memory", "spilled to disk to stay within the budget"))
    facts(str(graph.path), rows)
    for text in report.warnings:
        warn(text)
    if report.reader.get("columns_ignored"):
        warn(f"{report.reader['columns_ignored']} further column(s) ignored; --weight N uses column N as the weight")


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
        ("edge bytes", f"{graph.edge_bytes:,} ({format_size(graph.edge_bytes)})"),
        ("ids, order", f"{info['ids']}, {graph.order}"),
    ]


def info(store: StorePath, json: Json = False) -> None:
    """Say what a store holds."""
    from isthmus.cli.console import facts, show_json
    from isthmus.graph.build import open_graph
    from isthmus.memory import format_size

    graph = open_graph(store)
    details = graph.info()
    if json:
        show_json(details)
        return
    rows = rows_of(graph)
    rows.append(("self loops", f"{details['self_loops']:,}"))
    rows.append(("on disk", format_size(details["store_bytes"])))
    facts(str(store), rows)
    facts("sections", [(name, f"{part['count']:,} x {part['type']}, {format_size(part['bytes'])}") for name, part in details["sections"].items()])


def verify(store: StorePath, threads: Threads = None, json: Json = False) -> None:
    """Check every block of a store against its checksum, and the arrays against each other."""
    from isthmus.cli.console import Bar, err, escape, out, show_json
    from isthmus.graph.verify import verify as run
    from isthmus.memory import format_size

    start = time.perf_counter()
    with Bar(not json) as bar:
        verdict = run(store, threads=threads, progress=bar)
    seconds = time.perf_counter() - start
    if json:
        show_json({"path": str(store), "ok": verdict.ok, "blocks": verdict.blocks, "bytes": verdict.bytes, "problems": verdict.problems, "seconds": seconds})
    elif verdict.ok:
        out.print(f"[green]{escape(str(store))} is sound[/green]: {verdict.blocks:,} blocks, {format_size(verdict.bytes)}, in {seconds:.2f} s")
    for problem in () if json else verdict.problems:
        err.print(f"[red]{escape(str(store))}: {escape(problem)}[/red]", soft_wrap=True)
    if not verdict.ok:
        raise typer.Exit(4)
