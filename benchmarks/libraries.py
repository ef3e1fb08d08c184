"""What the contestants run: Isthmus and the graph libraries of PyPI, one class each, a method per algorithm it offers.

    python benchmarks/libraries.py NAME STORE ALGORITHM [REFERENCE]

is a contestant in a process of its own: it builds its graph, then answers questions {"source", "tol"} on its input,
one JSON object per line, with {"seconds"} and then {"answer"}. A method returns the work, which alone is timed, and a
function that turns what the work returned into the answer: distances (-1: unreached), labels, or scores.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from check import ALPHA, UNREACHED, Array, digest, pagerank_error, smallest_members

import isthmus as ist
from isthmus.graph.graph import Graph
from isthmus.graph.store.store import MemoryStore
from isthmus.programs.algorithms.bfs import BFS
from isthmus.programs.algorithms.pagerank import PageRank
from isthmus.programs.algorithms.sssp import SSSP
from isthmus.programs.algorithms.weakly_connected_components import Components
from isthmus.programs.program import Program

THREADS = 2
MOST_ITERATIONS = 1000
Job = tuple[Callable[[], Any], Callable[[Any], Array]]


class Library:
    """A library with a graph built in it. `weighted`: for shortest paths."""

    module = ""  # what has to be installed
    tunable = True  # PageRank stops at a tolerance

    def __init__(self, graph: ist.Graph, weighted: bool) -> None: ...


def whole(distances: Array, unreached: Array) -> Array:
    return np.where(unreached, UNREACHED, distances).astype(np.int64)


def near(graph: ist.Graph) -> ist.Graph:
    """The graph with all its edges in memory."""
    return Graph(
        MemoryStore(graph.store.manifest, {name: graph.store.read(name) for name in graph.store.manifest.sections})
    )


def seconds_of(program: Program, graph: ist.Graph, **how: Any) -> tuple[float, Any]:
    """Seconds of a run without what other kernels' times leave out as well: opening, loading, compiling."""
    begin, taken = program.begin, 0.0

    def clocked(facts: Any) -> Any:
        nonlocal taken
        start = time.perf_counter()
        state = begin(facts)
        taken = time.perf_counter() - start
        return state

    program.begin = clocked  # type: ignore[method-assign]
    result = ist.run(program, graph, threads=THREADS, **how)
    seconds = result.summary()["seconds"]
    return taken + seconds["total"] - seconds["set_up"] - seconds["load"], result


class Isthmus(Library):
    module = "isthmus"

    def __init__(self, graph: ist.Graph, weighted: bool) -> None:
        self._graph = near(graph)

    def _job(self, program: Program) -> Job:
        return lambda: seconds_of(program, self._graph), lambda result: result.filled()

    def bfs(self, source: int) -> Job:
        work, _ = self._job(BFS(self._user(source)))
        return work, lambda result: whole(result.filled(), result.filled() == np.iinfo(np.int64).max)

    def sssp(self, source: int) -> Job:
        work, _ = self._job(SSSP(self._user(source)))
        return work, lambda result: whole(result.filled(), result.filled() == np.iinfo(np.int64).max)

    def _user(self, source: int) -> Any:
        return self._graph.ids.users(np.array([source]))[0]

    def wcc(self) -> Job:
        return self._job(Components())

    def pagerank(self, tol: float) -> Job:
        return self._job(PageRank(ALPHA, tol))


def single_edges(graph: ist.Graph, weighted: bool) -> tuple[Array, Array, Array | None]:
    """Sources, targets and weights, an undirected edge once."""
    offsets = graph.store.read("out.offsets")
    sources = np.repeat(np.arange(graph.vertices, dtype=np.uint32), np.diff(offsets))
    targets = graph.store.read("out.targets")
    weights = graph.store.read("out.weights") if weighted else None
    if graph.directed:
        return sources, targets, weights
    once = sources < targets
    return sources[once], targets[once], weights[once] if weights is not None else None


class NetworKit(Library):
    module = "networkit"

    def __init__(self, graph: ist.Graph, weighted: bool) -> None:
        import networkit

        self._nk = networkit
        networkit.setNumberOfThreads(THREADS)
        sources, targets, weights = single_edges(graph, weighted)
        ends = (sources.astype(np.uint64), targets.astype(np.uint64))
        data = (weights.astype(np.float64), ends) if weights is not None else ends
        self._graph = networkit.GraphFromCoo(data, n=graph.vertices, weighted=weighted, directed=graph.directed)

    def bfs(self, source: int) -> Job:
        return self._distances(self._nk.distance.BFS(self._graph, source, storePaths=False))

    def sssp(self, source: int) -> Job:
        return self._distances(self._nk.distance.Dijkstra(self._graph, source, storePaths=False))

    def _distances(self, search: Any) -> Job:
        def answer(_: Any) -> Array:
            distances = np.array(search.getDistances())
            return whole(distances, distances > 1e300)

        return search.run, answer

    def wcc(self) -> Job:
        kinds = self._nk.components
        search = (kinds.WeaklyConnectedComponents if self._graph.isDirected() else kinds.ParallelConnectedComponents)(
            self._graph
        )
        return search.run, lambda _: np.array(search.getPartition().getVector())

    def pagerank(self, tol: float) -> Job:
        sinks = self._nk.centrality.SinkHandling.DistributeSinks
        ranking = self._nk.centrality.PageRank(self._graph, damp=ALPHA, tol=tol, distributeSinks=sinks)
        ranking.norm = self._nk.centrality.Norm.L1_NORM
        ranking.maxIterations = MOST_ITERATIONS
        return ranking.run, lambda _: np.array(ranking.scores())


class Igraph(Library):
    module = "igraph"
    tunable = False  # PRPACK solves to a precision of its own

    def __init__(self, graph: ist.Graph, weighted: bool) -> None:
        import igraph

        sources, targets, weights = single_edges(graph, weighted)
        edges = np.stack([sources, targets], axis=1).astype(np.int64)
        self._graph = igraph.Graph(n=graph.vertices, edges=edges, directed=graph.directed)
        self._weights = weights.tolist() if weights is not None else None

    def bfs(self, source: int) -> Job:
        return self._distances(source, None)

    def sssp(self, source: int) -> Job:
        return self._distances(source, self._weights)

    def _distances(self, source: int, weights: Any) -> Job:
        def answer(lists: Any) -> Array:
            distances = np.array(lists[0], np.float64)
            return whole(distances, np.isinf(distances))

        return lambda: self._graph.distances(source=source, weights=weights, mode="out"), answer

    def wcc(self) -> Job:
        return lambda: self._graph.connected_components(mode="weak"), lambda found: np.array(found.membership)

    def pagerank(self, tol: float) -> Job:
        return lambda: self._graph.pagerank(damping=ALPHA, implementation="prpack"), np.array


def matrix(graph: ist.Graph, side: str, weighted: bool) -> Any:
    """The arcs of a side as a SciPy matrix; float64, so that csgraph does not convert it at every call."""
    from scipy.sparse import csr_matrix

    side = side if graph.directed else "out"
    offsets, targets = graph.store.read(f"{side}.offsets"), graph.store.read(f"{side}.targets")
    small = np.int32 if graph.arcs < 1 << 31 else np.int64
    weights = graph.store.read(f"{side}.weights").astype(np.float64) if weighted else np.ones(graph.arcs)
    return csr_matrix((weights, targets.astype(small), offsets.astype(small)), shape=(graph.vertices, graph.vertices))


class SciPy(Library):
    module = "scipy"

    def __init__(self, graph: ist.Graph, weighted: bool) -> None:
        self._graph, self._weighted, self._matrices = graph, weighted, dict[str, Any]()

    def _matrix(self, side: str) -> Any:
        """Made outside the timed work, and once."""
        if side not in self._matrices:
            self._matrices[side] = matrix(self._graph, side, self._weighted)
        return self._matrices[side]

    def bfs(self, source: int) -> Job:
        from scipy.sparse.csgraph import breadth_first_order

        edges = self._matrix("out")
        return lambda: breadth_first_order(edges, source), lambda found: levels(*found)

    def sssp(self, source: int) -> Job:
        from scipy.sparse.csgraph import dijkstra

        edges = self._matrix("out")
        return lambda: dijkstra(edges, indices=source), lambda distances: whole(distances, np.isinf(distances))

    def wcc(self) -> Job:
        from scipy.sparse.csgraph import connected_components

        edges = self._matrix("out")
        return lambda: connected_components(edges, connection="weak")[1], np.asarray

    def pagerank(self, tol: float) -> Job:
        """Power iteration: SciPy has the product, not the algorithm."""
        edges, n = self._matrix("in"), self._graph.vertices
        degrees = np.diff(self._graph.store.read("out.offsets"))
        ends = degrees == 0
        factors = ALPHA / np.maximum(degrees, 1)

        def work() -> Array:
            ranks = np.full(n, 1 / n)
            for _ in range(MOST_ITERATIONS):
                before = ranks
                ranks = edges @ (before * factors)
                ranks += (1 - ALPHA + ALPHA * before[ends].sum()) / n
                if np.abs(ranks - before).sum() <= tol:
                    break
            return ranks

        return work, np.asarray


def levels(order: Array, predecessors: Array) -> Array:
    """Distances from a breadth-first order: a vertex is one further than its predecessor, which stands before it."""
    distances = np.full(predecessors.size, UNREACHED)
    places = np.empty(predecessors.size, np.int64)
    places[order] = np.arange(order.size)
    parents = places[predecessors[order[1:]]]
    distances[order[0]], begin, level = 0, 1, 0
    while begin < order.size:
        level += 1
        end = 1 + int(np.searchsorted(parents, begin))
        distances[order[begin:end]] = level
        begin = end
    return distances


class GraphBlas(Library):
    module = "graphblas"
    pull_share = 50  # a frontier of more than a 50th of the vertices is looked for rather than followed

    def __init__(self, graph: ist.Graph, weighted: bool) -> None:
        import graphblas

        self._gb, self._n = graphblas, graph.vertices
        graphblas.ss.config["nthreads"] = THREADS
        self._degrees = np.diff(graph.store.read("out.offsets"))
        self._out = self._matrix(graph, "out")
        self._in = self._matrix(graph, "in") if graph.directed else self._out

    def _matrix(self, graph: ist.Graph, side: str) -> Any:
        offsets, targets = (graph.store.read(f"{side}.{what}").astype(np.uint64) for what in ("offsets", "targets"))
        return self._gb.Matrix.from_csr(offsets, targets, True, nrows=graph.vertices, ncols=graph.vertices, dtype=bool)

    def bfs(self, source: int) -> Job:
        any_pair, vector = self._gb.semiring.any_pair, self._gb.Vector

        def work() -> Any:
            found, front, level = vector(int, self._n), vector(bool, self._n), 0
            front[source] = True
            while front.nvals:
                found(front.S) << level
                pull = front.nvals * self.pull_share > self._n
                front(~found.S, replace=True) << any_pair(self._in @ front if pull else front @ self._out)
                level += 1
            return found

        return work, lambda found: found.to_dense(fill_value=UNREACHED)

    def pagerank(self, tol: float) -> Job:
        """Power iteration: GraphBLAS has the product, not the algorithm."""
        gb, n = self._gb, self._n
        plus, times, minus = gb.monoid.plus, gb.binary.times, gb.binary.minus
        ends = gb.Vector.from_dense((self._degrees == 0).astype(float))
        factors = gb.Vector.from_dense(ALPHA / np.maximum(self._degrees, 1))

        def work() -> Any:
            ranks = gb.Vector.from_scalar(1 / n, n, dtype=float)
            for _ in range(MOST_ITERATIONS):
                before = ranks
                lost = before.ewise_mult(ends, times).reduce(plus).new().value
                ranks = gb.Vector.from_scalar((1 - ALPHA + ALPHA * lost) / n, n, dtype=float)
                ranks(gb.binary.plus) << gb.semiring.plus_second(self._in @ before.ewise_mult(factors, times).new())
                if ranks.ewise_mult(before, minus).apply(gb.unary.abs).new().reduce(plus).new().value <= tol:
                    break
            return ranks

        return work, lambda ranks: ranks.to_dense()


class ScikitNetwork(Library):
    module = "sknetwork"

    def __init__(self, graph: ist.Graph, weighted: bool) -> None:
        self._matrix = matrix(graph, "out", weighted)
        # It lets a dangling vertex keep its whole share of teleports; these shares make up for that where no edge
        # enters one.
        self._teleports = np.where(np.diff(self._matrix.indptr) > 0, 1 / (1 - ALPHA), 1)

    def bfs(self, source: int) -> Job:
        from sknetwork.path import get_distances

        return lambda: get_distances(self._matrix, source=source), np.asarray

    def wcc(self) -> Job:
        from sknetwork.topology import get_connected_components

        return lambda: get_connected_components(self._matrix), np.asarray

    def pagerank(self, tol: float) -> Job:
        from sknetwork.ranking import PageRank as Ranking

        ranking = Ranking(damping_factor=ALPHA, n_iter=MOST_ITERATIONS, tol=tol)
        return lambda: ranking.fit_predict(self._matrix, self._teleports), np.asarray


LIBRARIES: dict[str, type[Library]] = {
    "isthmus": Isthmus,
    "networkit": NetworKit,
    "igraph": Igraph,
    "scipy": SciPy,
    "graphblas": GraphBlas,
    "scikit-network": ScikitNetwork,
}


def main(name: str, store: str, algorithm: str, reference: str = "") -> None:
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a library prints is no reply
    library = LIBRARIES[name](ist.open(store), algorithm == "sssp")
    expected = np.load(reference) if reference else None
    replies.write(json.dumps({"tunable": library.tunable}) + "\n")
    for line in sys.stdin:
        question = json.loads(line)
        asked = {"bfs": ["source"], "sssp": ["source"], "wcc": [], "pagerank": ["tol"]}[algorithm]
        work, answer = getattr(library, algorithm)(*(question[name] for name in asked))
        start = time.perf_counter()
        done = work()
        seconds = time.perf_counter() - start
        if isinstance(library, Isthmus):
            seconds, done = done
        replies.write(json.dumps({"seconds": seconds}) + "\n")
        found = answer(done)
        if algorithm == "pagerank":
            assert expected is not None
            said: Any = pagerank_error(found, expected)
        else:
            said = digest(smallest_members(found) if algorithm == "wcc" else found)
        replies.write(json.dumps({"answer": said}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
