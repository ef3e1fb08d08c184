"""The project's conscience: program × recipe × far memory × budget × threads × order × graph gives one answer.

Small graphs go through a few ways of the product each, chosen so that all pairs of choices meet somewhere, and every
program with every recipe on every far memory. Least sizes are then made tiny, so that lists span blocks, partitions and
buffers; and one graph of half a million arcs goes through everything at its real sizes.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sparse
from scipy.sparse import csgraph
from tests import cases as kinds
from tests.checks import check_distances, check_tree
from tests.covering import covering, missed

import isthmus as ist

INT_MAX = 2**63 - 1
CASES = {case.name: case for case in kinds.cases()}
PROGRAMS = {program.name: program for program in kinds.PROGRAMS}
WAYS_EACH, TIGHT_EACH = 5, 3  # ways of a graph and a program
ENGINES = {
    "filter": {"filter"},
    "subway": {"compaction"},
    "emogi": {"zero_copy"},
    "unified": {"unified"},
    "grus": {"unified"},
    "scaph": {"filter", "compaction", "cache"},
    "hytgraph": {"filter", "compaction", "zero_copy", "cache"},
}


@pytest.fixture(scope="module")
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A graph, ingested once for the whole module."""
    made = CASES[request.param]
    if not made.graphs:
        made.build(tmp_path_factory.mktemp("stores"))
    return made


def pairs() -> list[tuple[str, str]]:
    """Graphs and the programs that can run on them."""
    return [(c.name, p.name) for c in CASES.values() for p in PROGRAMS.values() if c.weighted or not p.weights]


def assert_same(result: Any, program: kinds.Program, case: kinds.Case) -> None:
    values = result.filled()
    expected = kinds.expected_values(program, case, values.dtype)
    if program.tol:
        assert np.abs(values - np.array(expected)).sum() <= program.tol
    else:
        assert values.tolist() == expected
    if "predecessor" in result.columns:
        check_answer(result, case)


def check_answer(result: Any, case: kinds.Case) -> None:
    """Graph500's checks on distances and tree."""
    weighted = result.algorithm == "sssp" and case.weighted
    none = INT_MAX if result.filled().dtype.kind == "i" else np.inf
    distance = {v: d for v, d in zip(case.oracle.ids, result.filled().tolist(), strict=True) if d != none}
    tree = dict(zip(case.oracle.ids, result["predecessor"].tolist(), strict=True))
    check_distances(case.oracle, case.source, distance, weighted, 2 if result.algorithm == "bfs" else 6.5)
    check_tree(case.oracle, case.source, distance, tree, weighted)


def assert_moved(result: Any, way: kinds.Way) -> None:
    """The engine that was asked for worked, and the bytes it reports are not none."""
    recipe, far, budget, _, _ = way
    facts = result.summary()
    moving = far != "memory" and budget is not None and recipe != "auto"
    active = sum(iteration.active_edges for iteration in result.trace)
    if moving:
        assert facts["policy"] == recipe
        used = set(facts["engines"])
        assert (
            used <= ENGINES[recipe]
            if recipe in ("scaph", "hytgraph", "grus")
            else used == (ENGINES[recipe] if active else set())
        )
        # Which prefetches.
        assert facts["transfer"]["bytes"] > 0 if active else recipe == "grus" or not facts["transfer"]["bytes"]
        if recipe in ("filter", "subway", "emogi"):  # with others edges may be near
            assert facts["transfer"]["requests"] >= sum(1 for iteration in result.trace if iteration.active_edges)
    elif budget is None:
        assert facts["policy"] == "resident"
        if far == "model" and len(result.trace):  # all edges cross once for every pass
            assert facts["transfer"]["bytes"] >= facts["graph"]["edge_bytes"]
        else:
            assert facts["transfer"]["bytes"] == 0


@pytest.mark.parametrize(("case", "name"), pairs(), indirect=["case"])
def test_every_way_gives_the_oracles_answer(case: Any, name: str) -> None:
    program = PROGRAMS[name]
    for way in chosen()[case.name, name]:
        assert_way(program, case, way)


def assert_way(program: kinds.Program, case: kinds.Case, way: kinds.Way) -> None:
    try:
        result = kinds.run(program, case, way)
        assert_same(result, program, case)
        assert_moved(result, way)
        kinds.assert_device(result, way)
    except Exception as error:
        error.add_note(f"{program.name} on {case.name}, {way}")
        raise


@functools.cache
def chosen() -> dict[Any, list[kinds.Way]]:
    return covering(pairs(), kinds.ways(), WAYS_EACH, [kinds.PROGRAM_RECIPE_FAR])


TIGHT = [(case, name) for case in ("star", "skewed", "skewed-real", "no-in-edges") for name in PROGRAMS]
TIGHT_WAYS = [way for way in kinds.ways() if way[1] != "memory" and way[2] in ("1%", "10%")]


@functools.cache
def chosen_tight() -> dict[Any, list[kinds.Way]]:
    return covering(TIGHT, TIGHT_WAYS, TIGHT_EACH)


def test_all_pairs_of_choices_meet() -> None:
    assert missed(pairs(), kinds.ways(), chosen(), [kinds.PROGRAM_RECIPE_FAR]) == set()
    assert missed(TIGHT, TIGHT_WAYS, chosen_tight()) == set()


@pytest.fixture
def tight(sized: Any) -> None:
    """Least sizes so small that a small graph has many partitions, buffers are shorter than lists and threads share."""
    sized(smallest_partition=4096, least_buffer=1024, few_edges=16, alone=64, piece=300, smallest_queue=3)


@pytest.mark.usefixtures("tight")
@pytest.mark.parametrize(("case", "name"), TIGHT, indirect=["case"])
def test_lists_that_span_blocks_partitions_and_buffers(case: Any, name: str) -> None:
    for way in chosen_tight()[case.name, name]:
        assert_way(PROGRAMS[name], case, way)


@pytest.mark.usefixtures("tight")
@pytest.mark.parametrize("case", ["star"], indirect=True)
def test_the_small_sizes_really_are_small(case: Any) -> None:
    """Otherwise the test above would show nothing: a hub's list takes several deliveries, partitions are many."""
    result = ist.sssp(case.graphs["natural store"], 0, policy="filter", memory="1%", far="ram")
    hub = next(iteration for iteration in result.trace if iteration.active_vertices == 1)
    assert hub.engines["filter"]["tasks"] > 3
    assert hub.requests > 50
    zero_copy = ist.sssp(case.graphs["natural store"], 0, policy="emogi", memory="1%", far="ram")
    hub = next(iteration for iteration in zero_copy.trace if iteration.active_vertices == 1)
    assert hub.engines["zero_copy"]["tasks"] == 1
    assert hub.requests > 50


def test_no_vertex(tmp_path: Any) -> None:
    none = np.empty(0, np.int64)
    for graph in (ist.ingest((none, none), tmp_path / "g.isthmus"), ist.read((none, none))):
        for how in (
            {},
            {"memory": "10%", "policy": "filter", "far": "ram"},
            {"memory": "10%", "policy": "emogi", "far": "ram"},
        ):
            assert ist.weakly_connected_components(graph, **how).to_arrow().num_rows == 0
            for result in (
                ist.pagerank(graph, **how),
                ist.pagerank(graph, iterations=3, **how),
                ist.run(kinds.spread(), graph, **how),
            ):
                assert (result.values.size, result.summary()["transfer"]["bytes"]) == (0, 0)
                assert not any("stopped" in note for note in result.trace.notes)
            for search in (ist.bfs, ist.sssp):
                with pytest.raises(ist.UnknownVertexError, match="no vertex 0 in the graph"):
                    search(graph, 0, **how)


def test_a_graph_in_memory_says_when_it_does_not_fit() -> None:
    graph = ist.generate("rmat", scale=15)
    with pytest.raises(ist.BudgetError, match=r"in memory already and does not fit the budget; ingest it into a store"):
        ist.bfs(graph, 0, memory="10%")


# One graph of half a million arcs, at real sizes, against SciPy.


@pytest.fixture(scope="module")
def medium(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("medium")
    graphs = {
        (order, real): ist.generate(
            "rmat",
            folder / f"{order}{real}.isthmus",
            scale=14,
            seed=3,
            order=order,
            weights="0.0:9.0" if real else "0:40",
        )
        for order in ("natural", "hub")
        for real in (False, True)
    }
    return {"graphs": graphs, "matrices": {real: matrix(graphs["natural", real]) for real in (False, True)}}


def matrix(graph: Any) -> Any:
    """The stored arcs as a sparse matrix, zeros among the weights kept apart as explicit entries."""
    read = graph.store.read
    n = graph.vertices
    return sparse.csr_array(
        (read("out.weights").astype(np.float64), read("out.targets").astype(np.int32), read("out.offsets")), (n, n)
    )


def distances(arcs: Any, source: int, weighted: bool) -> Any:
    """Dijkstra by SciPy, which takes explicit zeros for edges."""
    return csgraph.dijkstra(arcs, indices=source, unweighted=not weighted)


def ranks(arcs: Any, alpha: float, weighted: bool, rounds: int = 400) -> Any:
    n = arcs.shape[0]
    values = arcs.data if weighted else np.ones_like(arcs.data)
    strength = np.add.reduceat(np.append(values, 0.0), np.minimum(arcs.indptr[:-1], values.size)) * (
        np.diff(arcs.indptr) > 0
    )
    along = sparse.csr_array((values, arcs.indices, arcs.indptr), arcs.shape).T.tocsr()
    x = np.full(n, 1 / n)
    for _ in range(rounds):
        share = np.divide(x, strength, out=np.zeros(n), where=strength > 0)
        x = alpha * (along @ share) + (1 - alpha) / n + alpha * x[strength == 0].sum() / n
    return x


# Every recipe, budget and number of threads meets both orders.
MEDIUM = [
    ("filter", "1%", 2, "natural"),
    ("filter", "10%", 1, "hub"),
    ("filter", "50%", 2, "natural"),
    ("filter", "50%", 2, "hub"),
    ("filter", "100%", 2, "hub"),
    ("emogi", "1%", 2, "hub"),
    ("emogi", "10%", 1, "natural"),
    ("emogi", "100%", 2, "natural"),
    ("auto", "1%", 2, "natural"),
    ("auto", "10%", 1, "hub"),
    ("auto", None, 2, "natural"),
    ("auto", None, 2, "hub"),
]


@pytest.mark.parametrize(("policy", "memory", "threads", "order"), MEDIUM)
def test_a_larger_graph(medium: Any, policy: str, memory: str | None, threads: int, order: str) -> None:
    how: dict[str, Any] = {"policy": policy, "memory": memory, "threads": threads}
    graph, arcs = medium["graphs"][order, False], medium["matrices"][False]
    answers = [ist.bfs(graph, 5, **how), ist.sssp(graph, 5, **how)]
    for result in answers:
        expected = cached(f"{result.algorithm} whole", lambda r=result: distances(arcs, 5, r.algorithm == "sssp"))
        found = np.where(result.filled() == INT_MAX, np.inf, result.filled())
        assert np.array_equal(found, expected)
    real = medium["graphs"][order, True]
    result = ist.sssp(real, 5, **how)
    assert np.array_equal(result.values, cached("sssp real", lambda: distances(medium["matrices"][True], 5, True)))
    components = ist.weakly_connected_components(graph, **how)
    assert np.array_equal(
        components.values, cached("components", lambda: smallest_of(csgraph.connected_components(arcs, False)[1]))
    )
    rank = ist.pagerank(graph, tol=1e-6, **how)
    error = np.abs(rank.values - cached("ranks", lambda: ranks(arcs, 0.85, False))).sum()
    assert error <= rank.summary()["result"]["error_bound"] <= 1e-6
    by_weight = ist.pagerank(real, tol=1e-6, weight=True, **how)
    assert (
        np.abs(by_weight.values - cached("by weight", lambda: ranks(medium["matrices"][True], 0.85, True))).sum()
        <= 1e-6
    )
    for result in (*answers, components, rank, by_weight):
        assert_moved(result, (policy, "store", memory, threads, order))


ANSWERS: dict[str, Any] = {}


def cached(name: str, work: Any) -> Any:
    if name not in ANSWERS:
        ANSWERS[name] = work()
    return ANSWERS[name]


def smallest_of(labels: Any) -> Any:
    """For every vertex the first vertex with its label."""
    _, first = np.unique(labels, return_index=True)
    return first[labels]


@pytest.mark.parametrize("weights", [False, True])
def test_trees_of_a_larger_graph(medium: Any, weights: bool) -> None:
    """Every reached vertex but the source has a predecessor, one edge nearer, along a real edge."""
    graph, arcs = medium["graphs"]["hub", False], medium["matrices"][False]
    for policy in ("filter", "emogi"):
        search = ist.sssp if weights else ist.bfs
        result = search(graph, 5, predecessors=True, memory="5%", policy=policy, threads=2)
        distance, tree = result.filled(), result["predecessor"]
        has = np.array([p is not None for p in tree])
        assert np.array_equal(has, (distance != INT_MAX) & (np.arange(distance.size) != 5))
        child = np.flatnonzero(has)
        parent = tree[has].astype(np.int64)
        length = np.asarray(arcs[parent, child]).ravel() if weights else 1
        assert np.array_equal(distance[parent] + length, distance[child])
        assert all(graph.has_edge(int(u), int(v)) for u, v in zip(parent[::50], child[::50], strict=True))
        branches = sparse.csr_array((np.ones(child.size), (parent, child)), arcs.shape)
        below = csgraph.breadth_first_order(branches, 5, return_predecessors=False)
        assert below.size == has.sum() + 1, "following predecessors from every reached vertex ends at the source"
