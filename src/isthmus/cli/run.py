"""`isthmus run ALGORITHM STORE`: an algorithm's own options change the answer, the shared ones only its speed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from isthmus.cli import listing, signals
from isthmus.cli.compose import compose
from isthmus.cli.options import Json, StorePath, Threads

Answer = dict[str, Any]
Source = Annotated[str | None, typer.Option(help="The vertex to start from, by its own id. Default: the one with the most out-edges.")]
PredecessorOption = Annotated[bool, typer.Option("--predecessors", help="Also find a shortest-path tree (a second pass).")]
Budget = Annotated[
    str | None,
    typer.Option(help="Near memory: 2GB, or 10% for vertex state plus that share of the edges. Default: 60 % of what is available."),
]
PolicyOption = Annotated[str, typer.Option(metavar="RECIPE", help=f"How edges are brought near: {listing.RECIPES}.")]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, or model:NAME for a modelled GPU.")]
WithoutOption = Annotated[
    str | None, typer.Option(metavar="PART,PART...", help="Parts of a recipe to switch off, such as cache. Answers stay the same.")
]
OutputOption = Annotated[Path | None, typer.Option("-o", "--output", help="Write the result: NAME.parquet, .csv or .npy.")]
ReportOption = Annotated[Path | None, typer.Option(help="Write a page about the run: NAME.html.")]
VerifyOption = Annotated[bool, typer.Option("--verify", help="Compare every block that is read with its checksum.")]
CheckpointOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Keep checkpoints here; the same command, given again, goes on from the last.")
]
EveryOption = Annotated[float, typer.Option(metavar="MINUTES", min=0, help="Minutes between two checkpoints.")]
RestartOption = Annotated[bool, typer.Option("--restart", help="Remove the checkpoints that are there, and begin anew.")]
SharesOption = Annotated[list[str] | None, typer.Option(metavar="VERTEX=SHARE", help="May be given several times.")]
NUMBERS = {"personalization": "SHARE", "dangling": "SHARE", "fixed": "VOLTS", "currents": "AMPERES"}  # options of VERTEX=NUMBER


def shared(
    store: StorePath,
    memory: Budget = None, policy: PolicyOption = "auto", without: WithoutOption = None, device: DeviceOption = "auto",
    threads: Threads = None, verify: VerifyOption = False, output: OutputOption = None, report: ReportOption = None,
    checkpoint: CheckpointOption = None, checkpoint_every: EveryOption = 5.0, restart: RestartOption = False, json: Json = False,
) -> None:  # fmt: skip
    """The options of every algorithm, as a signature."""


def bfs(
    source: Source = None,
    depth_limit: Annotated[int | None, typer.Option(min=0, help="How far to go.")] = None,
    predecessors: PredecessorOption = False,
) -> Answer:
    """Distances in edges from a source."""
    return {"source": source, "depth_limit": depth_limit, "predecessors": predecessors}


def sssp(
    source: Source = None,
    cutoff: Annotated[float | None, typer.Option(min=0, help="Longest distance that counts.")] = None,
    predecessors: PredecessorOption = False,
) -> Answer:
    """Shortest distances by weight from a source."""
    return {"source": source, "cutoff": cutoff, "predecessors": predecessors}


def weakly_connected_components() -> Answer:
    """For every vertex the smallest vertex it is connected with."""
    return {}


def pagerank(
    alpha: Annotated[float, typer.Option(help="Damping: the chance of following an edge.")] = 0.85,
    tol: Annotated[float, typer.Option(help="Bound on the L1 error of the result.")] = 1e-6,
    max_iter: Annotated[int, typer.Option(min=1, help="Iterations after which to stop short of the bound.")] = 1000,
    iterations: Annotated[int | None, typer.Option(min=0, help="Exactly this many rounds, as LDBC Graphalytics defines them.")] = None,
    weight: Annotated[bool, typer.Option("--weight", help="Follow edges in proportion to their weights.")] = False,
    personalization: SharesOption = None,
    dangling: SharesOption = None,
) -> Answer:
    """Importance by random walk, with a guaranteed error bound."""
    return {
        "alpha": alpha, "tol": tol, "max_iter": max_iter, "iterations": iterations, "weight": weight,
        "personalization": personalization, "dangling": dangling,
    }  # fmt: skip


def widest_path(source: Source = None) -> Answer:
    """Widths of the widest paths from a source."""
    return {"source": source}


def katz(
    alpha: Annotated[float, typer.Option(help="What a step of a walk costs; below 1 / the largest eigenvalue.")] = 0.1,
    beta: Annotated[float, typer.Option(help="What every vertex starts with.")] = 1.0,
    max_iter: Annotated[int, typer.Option(min=1, help="Iterations after which to stop short of the bound.")] = 1000,
    tol: Annotated[float, typer.Option(help="Bound on the relative error of every entry.")] = 1e-6,
    normalized: Annotated[bool, typer.Option(help="Scale the scores to length 1.")] = True,
    weight: Annotated[bool, typer.Option("--weight", help="Count a walk as the product of its weights.")] = False,
) -> Answer:
    """Importance by the number of walks that end at a vertex."""
    return {"alpha": alpha, "beta": beta, "max_iter": max_iter, "tol": tol, "normalized": normalized, "weight": weight}


def php(
    source: Source = None,
    alpha: Annotated[float, typer.Option(help="The chance of going on after every step.")] = 0.8,
    tol: Annotated[float, typer.Option(help="Bound on the L1 error of the result.")] = 1e-6,
    weight: Annotated[bool, typer.Option("--weight", help="Follow edges in proportion to their weights.")] = False,
) -> Answer:
    """Nearness to a source by penalised hitting probability."""
    return {"source": source, "alpha": alpha, "tol": tol, "weight": weight}


def multi_source_bfs(
    sources: Annotated[list[str], typer.Option("--source", help="A vertex to start from; give it up to 64 times.", show_default=False)],
) -> Answer:
    """Distances in edges from many sources at once."""
    return {"sources": sources}


def personalized_pagerank(
    sources: Annotated[list[str], typer.Option("--source", help="A vertex to return to; give it up to 64 times.", show_default=False)],
    alpha: Annotated[float, typer.Option(help="Damping: the chance of following an edge.")] = 0.85,
    tol: Annotated[float, typer.Option(help="Bound on the L1 error of each column.")] = 1e-6,
    max_iter: Annotated[int, typer.Option(min=1, help="Iterations after which to stop short of the bound.")] = 1000,
    weight: Annotated[bool, typer.Option("--weight", help="Follow edges in proportion to their weights.")] = False,
) -> Answer:
    """Importance for each of many sources by random walks that return to it, with a guaranteed error bound."""
    return {"sources": sources, "alpha": alpha, "tol": tol, "max_iter": max_iter, "weight": weight}


def betweenness_centrality(
    k: Annotated[int | None, typer.Option(min=1, help="Estimate from this many sampled sources. Default: all vertices.")] = None,
    sources: Annotated[list[str] | None, typer.Option("--source", help="Estimate from these sources; give it several times.")] = None,
    normalized: Annotated[bool, typer.Option(help="Shares of all pairs of vertices, or numbers of paths.")] = True,
    endpoints: Annotated[bool, typer.Option("--endpoints", help="A path also leads through its ends.")] = False,
    seed: Annotated[int, typer.Option(help="Of the sample.")] = 1,
) -> Answer:
    """The share of shortest paths that lead through each vertex."""
    given = {"sources": sources} if sources else {}
    return {"k": k, "normalized": normalized, "endpoints": endpoints, "seed": seed, **given}


def label_propagation(
    max_iter: Annotated[int, typer.Option(min=0, help="Rounds.")] = 10,
) -> Answer:
    """Communities by synchronous label propagation (LDBC's CDLP)."""
    return {"max_iter": max_iter}


def core_number() -> Answer:
    """The largest k for which a vertex is in the k-core."""
    return {}


def strongly_connected_components() -> Answer:
    """For every vertex the smallest vertex that it reaches and that reaches it."""
    return {}


def minimum_spanning_forest() -> Answer:
    """The edges of a tree of least weight for every component."""
    return {}


def triangle_count() -> Answer:
    """How many triangles each vertex is in."""
    return {}


def local_clustering_coefficient() -> Answer:
    """How many of a vertex's neighbours are joined, of all that could be (LDBC's LCC)."""
    return {}


def circuit(
    fixed: Annotated[list[str], typer.Option("--fix", metavar="VERTEX=VOLTS", help="Hold a vertex; give it several times.",
                                             show_default=False)],
    currents: Annotated[list[str] | None, typer.Option("--current", metavar="VERTEX=AMPERES", help="Inject a current.")] = None,
    resistances: Annotated[bool, typer.Option("--resistances", help="Weights are resistances, not conductances.")] = False,
    tol: Annotated[float, typer.Option(help="Bound on the error of every voltage, relative to the spread of all.")] = 1e-6,
    max_iter: Annotated[int, typer.Option(min=1, help="Iterations after which to stop short of the bound.")] = 10_000,
) -> Answer:  # fmt: skip
    """Voltages of a resistor network, with a guaranteed error bound."""
    return {"fixed": fixed, "currents": currents, "resistances": resistances, "tol": tol, "max_iter": max_iter}


def nn_inference(
    inputs: Annotated[Path, typer.Option(help="NAME.npy: a row per input, a column per input neuron.", show_default=False)],
    biases: Annotated[
        Path | None, typer.Option(help="NAME.npz with `biases`, one per vertex in ascending order, and perhaps `layers`.")
    ] = None,
    layers: Annotated[
        str | None, typer.Option(metavar="SIZE,SIZE...", help="Sizes of the layers, which vertices fill in ascending order.")
    ] = None,
    activation: Annotated[str, typer.Option(help="Of hidden neurons: identity, relu, tanh or sigmoid.")] = "relu",
    output_activation: Annotated[str, typer.Option(help="Of output neurons: softmax or any of those.")] = "softmax",
) -> Answer:
    """What a layered neural network says to many inputs at once."""
    from isthmus.cli.arrays import read_array, read_arrays, read_sizes

    network = read_arrays(biases, "biases", "layers") if biases is not None else {}
    if layers is not None:
        network["layers"] = read_sizes(layers)
    return {"inputs": read_array(inputs), **network, "activation": activation, "output_activation": output_activation}


def parse_numbers(texts: list[str] | None, graph: Any, what: str) -> dict[Any, float] | None:
    """VERTEX=NUMBER words to a dictionary by vertex id."""
    from isthmus.errors import OptionError

    if not texts:
        return None
    numbers: dict[Any, float] = {}
    for text in texts:
        vertex, _, number = text.rpartition("=")
        try:
            size = float(number) if "=" in text else None
        except ValueError:
            size = None
        if size is None:
            raise OptionError(f"expected VERTEX={what} such as 7=0.5, got {text!r}")
        number = graph.ids.parse(vertex)
        if number in numbers:
            raise OptionError(f"expected every vertex once, got {vertex} twice")
        numbers[number] = size
    return numbers


def parsed(answer: Answer, graph: Any) -> Answer:
    """Options as an algorithm takes them: words that name vertices become vertex ids."""
    found = dict(answer)
    if "source" in answer:
        found["source"] = start_from(answer["source"], graph)
    if "sources" in answer:
        found["sources"] = [graph.ids.parse(source) for source in answer["sources"]]
    for option, what in NUMBERS.items():
        if option in answer:
            found[option] = parse_numbers(answer[option], graph, what)
    return found


def start_from(word: str | None, graph: Any) -> Any:
    """The vertex that was named, or else the busiest, which is said."""
    from isthmus.cli.console import warn

    if word is not None:
        return graph.ids.parse(word)
    source = graph.busiest()
    warn(f"no --source was given: from vertex {source}, which has the most edges ({graph.out_degree(source):,})")
    return source


def names(text: str | None) -> tuple[str, ...]:
    """Names between commas."""
    return tuple(name.strip() for name in text.split(",")) if text is not None else ()


def act(
    name: str, answer: Answer, store: Path, memory: str | None, policy: str, without: str | None, device: str, threads: int | None,
    verify: bool, output: Path | None, report: Path | None, checkpoint: Path | None, checkpoint_every: float, restart: bool, json: bool,
) -> None:  # fmt: skip
    import isthmus
    from isthmus.cli.console import Watch, facts, show_json, warn
    from isthmus.errors import OptionError
    from isthmus.graph.graph import open_graph
    from isthmus.runtime.checkpoint import clear

    if output is not None and output.suffix.lower() not in (".parquet", ".csv", ".npy"):
        raise OptionError(f"{output}: expected a name that ends in .parquet, .csv or .npy")
    if output is not None and not output.absolute().parent.is_dir():
        raise OptionError(f"{output.parent}: no such folder")
    if report is not None:
        from isthmus.report import page

        page.check(report)
    graph = open_graph(store)
    if checkpoint is not None:
        signals.checkpoints.append(checkpoint)
    with Watch(name) as watch:
        result = getattr(isthmus, name)(
            graph, **parsed(answer, graph), memory=memory, policy=policy, without=names(without), device=device, threads=threads,
            verify=verify, watch=watch.seen, say=watch.say,
            checkpoint=checkpoint, checkpoint_every=checkpoint_every, restart=restart, keep_checkpoint=True,
        )  # fmt: skip
    if output is not None:
        result.save(output)
    if report is not None:
        result.report(report)
    if checkpoint is not None:
        clear(checkpoint)  # not before the result is saved
    if json:
        show_json(result.summary())
        return
    summary = result.summary()
    written = [("written", str(path)) for path in (output, report) if path is not None]
    facts(f"{summary['algorithm']} on {store}, {summary['policy']}", result.describe() + written)
    for note in result.trace.notes:
        warn(note)


def add_algorithms(group: typer.Typer, shared: Callable[..., None], act: Callable[..., None]) -> None:
    """A command for every algorithm, with its own options and those that the group shares."""
    more = (widest_path, katz, php, multi_source_bfs, personalized_pagerank, betweenness_centrality, label_propagation,
            core_number, strongly_connected_components, minimum_spanning_forest, triangle_count, local_clustering_coefficient, circuit,
            nn_inference)  # fmt: skip
    for algorithm in (bfs, sssp, weakly_connected_components, pagerank, *more):
        group.command(algorithm.__name__, cls=listing.Command)(compose(algorithm, shared, act))
    group.command("wcc", hidden=True, cls=listing.Command)(compose(weakly_connected_components, shared, act))


def register(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, help="Run an algorithm on a store.")
    add_algorithms(group, shared, act)
    app.add_typer(group, name="run")
