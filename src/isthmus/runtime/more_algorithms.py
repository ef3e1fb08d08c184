"""More algorithms as functions; see `algorithms` for what their arguments have in common."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.errors import BudgetError, OptionError
from isthmus.graph.graph import Graph
from isthmus.programs.betweenness import Betweenness
from isthmus.programs.core_number import CoreNumber
from isthmus.programs.declared import as_sources
from isthmus.programs.katz import Katz
from isthmus.programs.label_propagation import LabelPropagation
from isthmus.programs.local_clustering import LocalClustering
from isthmus.programs.multi_source_bfs import MultiSourceBFS
from isthmus.programs.pagerank import Strengths
from isthmus.programs.personalized_pagerank import PersonalizedPageRank
from isthmus.programs.php import PHP
from isthmus.programs.spanning_forest import SpanningForest
from isthmus.programs.strong_components import StrongComponents
from isthmus.programs.triangles import TriangleCount
from isthmus.programs.widest_path import WidestPath
from isthmus.runtime.algorithms import NOTHING, merged, must_fit, weakly_connected_components, would_fit
from isthmus.runtime.checkpoint import checkpointed
from isthmus.runtime.edge_result import EdgeResult
from isthmus.runtime.execute import execute
from isthmus.runtime.result import Result


def widest_path(graph: Graph, source: Any, **how: Any) -> Result:
    """The width of the widest path from `source`: the largest smallest weight. Without weights every edge counts as 1."""
    result = execute(WidestPath(source), graph, **how)
    say_unweighted(result, graph)
    return result


def say_unweighted(result: Result, graph: Graph) -> None:
    if not graph.weighted:
        result.trace.notes.append("the graph has no weights: every edge counts as 1")


def katz(
    graph: Graph, alpha: float = 0.1, beta: float = 1.0, max_iter: int = 1000, tol: float = 1e-6, normalized: bool = True,
    weight: bool = False, **how: Any,
) -> Result:  # fmt: skip
    """Katz centrality, every entry with a relative error of at most `tol` before it is normalized to length 1."""
    need_weights(graph, weight, "katz")
    program = Katz(alpha, beta, tol, max_iter, weight, graph.has_in_edges)
    result = execute(program, graph, **how)
    if not program.converged:
        reached = f"relative errors are bounded by {program.error_bound:.3g}, not by tol = {tol:g}"
        result.trace.notes.append(f"stopped after {max_iter} iterations; {reached}")
    scores = result._columns["katz_centrality"]
    highest = result._facts["result"]["highest"]
    if normalized and highest > 0:
        scores /= highest  # whose squares stay finite
        length = float(np.linalg.norm(scores))
        scores /= length
        result._facts["result"]["highest"] = 1 / length
    return result


@checkpointed
def php(graph: Graph, source: Any, alpha: float = 0.8, tol: float = 1e-6, weight: bool = False, **how: Any) -> Result:
    """Penalised hitting probability from `source`, with an L1 error of at most `tol`."""
    need_weights(graph, weight, "php")
    if not weight:
        return execute(PHP(source, alpha, tol), graph, **how)
    must_fit(PHP(source, alpha, tol, np.empty(0)), graph, how)
    strengths = execute(Strengths(), graph, **how)
    return merged(execute(PHP(source, alpha, tol, strengths._columns["strength"]), graph, **how), strengths)


def need_weights(graph: Graph, weight: bool, name: str) -> None:
    if weight and not graph.weighted:
        raise OptionError(f"weight: {graph} has no weights")
    if weight and graph.store.manifest.negative_weights:
        raise OptionError(f"{name} needs weights of at least 0, and {graph} has negative ones")


def multi_source_bfs(graph: Graph, sources: Any, **how: Any) -> Result:
    """Distances in edges from each of up to 64 `sources`, in columns `distance_<id>`; all of them share every read."""
    return execute(MultiSourceBFS(as_sources(sources)), graph, **how)


@checkpointed
def personalized_pagerank(
    graph: Graph, sources: Any, alpha: float = 0.85, max_iter: int = 1000, tol: float = 1e-6, weight: bool = False, **how: Any
) -> Result:
    """PageRank for each of up to 64 `sources` alone, in columns `pagerank_<id>`; all of them share every read.

    Teleports and whoever stands on a vertex without edges go back to the source. `tol` bounds the L1 error of each column.
    """
    need_weights(graph, weight, "personalized_pagerank")
    given, pulls = (as_sources(sources), alpha, tol, max_iter), graph.has_in_edges
    program, strengths = PersonalizedPageRank(*given, NOTHING if weight else None, pulls), None
    try:
        if weight:
            must_fit(program, graph, how)
            strengths = execute(Strengths(), graph, **how)
            program.strengths = strengths._columns["strength"]
        result = execute(program, graph, **how)
    except BudgetError as error:
        raise BudgetError(f"{error}, or fewer sources: each takes 16 bytes per vertex") from None
    if not program.converged:
        reached = f"errors are bounded by {program.error_bound:.3g}, not by tol = {tol:g}"
        result.trace.notes.append(f"stopped after {max_iter} iterations; {reached}")
    return result if strengths is None else merged(result, strengths)


@checkpointed
def betweenness_centrality(
    graph: Graph, k: int | None = None, normalized: bool = True, endpoints: bool = False, seed: int = 1, sources: Any = None, **how: Any
) -> Result:
    """The share of shortest paths that lead through each vertex, or an estimate from `k` sampled sources or from `sources`."""
    numbers = chosen_sources(graph, k, seed, sources)
    return execute(in_batches(graph, numbers, normalized, endpoints, how), graph, **how)


def chosen_sources(graph: Graph, k: int | None, seed: int, sources: Any) -> Sequence[int]:
    """Vertex numbers: of `sources`, of `k` vertices that NetworkX would draw, or of all."""
    n = graph.vertices
    if sources is not None:
        if k is not None:
            raise OptionError("expected k or sources, got both")
        numbers = [graph.ids.number(source) for source in as_sources(sources)]
        if not numbers or len(set(numbers)) < len(numbers):
            raise OptionError(f"sources: expected at least one vertex, each once, got {sources}")
        return numbers
    if k is None:
        return range(n)
    if not hasattr(k, "__index__") or not 1 <= k <= n:
        raise OptionError(f"k: expected a number of vertices from 1 to {n}, got {k}")
    places = np.array(random.Random(seed).sample(range(n), k))
    drawn: list[int] = graph.ids.numbers_of_natural(places).tolist()
    return drawn


def in_batches(graph: Graph, sources: Sequence[int], normalized: bool, endpoints: bool, how: dict[str, Any]) -> Betweenness:
    """As many sources at once as fit the budget beside all edges, or if these do not fit, at all."""
    fitting: list[Betweenness] = []
    for batch in sizes.now.betweenness_batches:
        program = Betweenness(sources, batch, normalized, endpoints)
        try:
            near = would_fit(program, graph, how)
        except BudgetError:
            if batch == sizes.now.betweenness_batches[-1]:
                raise
            continue
        if near.resident:
            return program
        fitting.append(program)
    return fitting[0]


def label_propagation(graph: Graph, max_iter: int = 10, **how: Any) -> Result:
    """Communities by `max_iter` synchronous rounds of label propagation (LDBC's CDLP); looks both ways."""
    return execute(LabelPropagation(max_iter, graph.directed), graph, **how)


def core_number(graph: Graph, **how: Any) -> Result:
    """The largest k for which a vertex is in the k-core; edges count whatever their direction, self loops do not."""
    return execute(CoreNumber(graph.directed, graph.store.manifest.self_loops > 0), graph, **how)


def strongly_connected_components(graph: Graph, **how: Any) -> Result:
    """For every vertex the smallest vertex id that it reaches and that reaches it."""
    if not graph.directed:
        return weakly_connected_components(graph, **how)
    return execute(StrongComponents(graph.store.manifest.self_loops > 0), graph, **how)


def minimum_spanning_forest(graph: Graph, **how: Any) -> EdgeResult:
    """The edges of a tree of least weight for every component; ties go to the smaller ends. Directions do not count."""
    result = EdgeResult.of(execute(SpanningForest(graph.directed), graph, **how))
    say_unweighted(result, graph)
    return result


def triangle_count(graph: Graph, **how: Any) -> Result:
    """How many triangles each vertex is in, whatever the edges' direction."""
    return execute(TriangleCount(graph.directed), graph, **how)


def local_clustering_coefficient(graph: Graph, **how: Any) -> Result:
    """How many of a vertex's neighbours are joined, of all pairs that could be (LDBC's LCC)."""
    return execute(LocalClustering(graph.directed), graph, **how)
