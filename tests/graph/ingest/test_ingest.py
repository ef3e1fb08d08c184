"""Ingest against the oracle: every way of cleaning, in memory and in stores, with and without room."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.naive import Cleaned, Edge, assert_graph, clean, read_back

import isthmus as ist
from isthmus import sizes
from isthmus.errors import BudgetError, GraphFormatError, OptionError, StoreError
from isthmus.graph.ingest import names

PARALLEL = ("keep", "drop", "first", "min", "sum")
HUGE = 2**64 - 1

# Few distinct ids, so that loops, parallel edges and edges in both directions are common.
IDS = {
    "dense": st.integers(0, 5),
    "gaps": st.sampled_from([3, 5, 64, 65, 1000]),
    "negative": st.sampled_from([-(2**63), -70_000_000_000, -1, 0, 1, 2**63 - 1]),
    "huge": st.sampled_from([0, 7, 2**32, 2**63, 2**64 - 2, HUGE]),
    "string": st.sampled_from(["a", "B", "é", "z", "zz", "日本", "\U0001f600", "\uffff", "10", "9", "a b"]),
}
WEIGHTS = {"none": st.none(), "int": st.integers(0, 2**31 - 1), "float": st.floats(0, 1e6, allow_nan=False).map(abs)}
CLEANING = st.fixed_dictionaries(
    {"directed": st.booleans(), "self_loops": st.sampled_from(["keep", "drop"]), "parallel": st.sampled_from(PARALLEL)}
)


def tries(count: int) -> settings:
    return settings(
        max_examples=count,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


@st.composite
def edge_lists(draw, kinds=tuple(IDS)):
    """Edges of one kind of ids and one kind of weights."""
    ids = IDS[draw(st.sampled_from(kinds))]
    weights = WEIGHTS[draw(st.sampled_from(list(WEIGHTS)))]
    return draw(st.lists(st.tuples(ids, ids, weights), min_size=1, max_size=30))


def arrays(edges: list[Edge]) -> tuple:
    """Edges as columns; integers in the type that holds all of them."""
    sources, targets, weights = zip(*edges, strict=True)
    kind = object if isinstance(sources[0], str) else np.uint64 if max(*sources, *targets) > 2**63 - 1 else np.int64
    columns = (np.array(sources, kind), np.array(targets, kind))
    return columns if weights[0] is None else (*columns, np.array(weights))


def numbers(count: int, high: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.integers(0, high, count), random.integers(0, high, count)


def triples(sources, targets, weights=None) -> list[Edge]:
    kept = [None] * len(sources) if weights is None else weights.tolist()
    return list(zip(sources.tolist(), targets.tolist(), kept, strict=True))


def contents(graph) -> dict[str, bytes]:
    """Every section, byte by byte."""
    return {name: graph.store.read(name).tobytes() for name in graph.store.manifest.sections}


@pytest.fixture
def small(sized):
    """Blocks, buckets and read sizes so small that a few thousand edges are many of each."""
    sized(cached_keys=64, block_edges=100, list_vertices=16, text_chunk=512)


# ---- every way of cleaning


@tries(150)
@given(edges=edge_lists(), cleaning=CLEANING, in_edges=st.booleans(), order=st.sampled_from(["natural", "hub"]))
def test_memory_graph_equals_oracle(edges, cleaning, in_edges, order):
    graph = ist.read(arrays(edges), order=order, in_edges=in_edges, memory="2GB", **cleaning)
    expected = clean(edges, **cleaning)
    assert_graph(graph, expected)
    assert graph.has_in_edges == (in_edges or not cleaning["directed"])
    report = graph.report
    assert report.edges_read == len(edges)
    assert report.self_loops_seen == expected.loops_seen
    assert report.self_loops_dropped == (expected.loops_seen if cleaning["self_loops"] == "drop" else 0)
    assert report.parallel_merged == expected.merged
    assert not report.spilled


@tries(40)
@given(edges=edge_lists(), cleaning=CLEANING, in_edges=st.booleans(), order=st.sampled_from(["natural", "hub"]))
def test_store_equals_oracle_and_verifies(tmp_path, edges, cleaning, in_edges, order):
    path = tmp_path / "g.isthmus"
    built = ist.ingest(arrays(edges), path, order=order, in_edges=in_edges, overwrite=True, memory="2GB", **cleaning)
    assert_graph(built, clean(edges, **cleaning))
    assert ist.verify(path).problems == []
    assert_graph(ist.open(path), clean(edges, **cleaning))


@tries(60)
@given(edges=edge_lists(kinds=("dense", "gaps", "negative", "huge")), cleaning=CLEANING)
def test_without_room_equals_oracle(tmp_path, small, edges, cleaning):
    path = tmp_path / "g.isthmus"
    graph = ist.ingest(arrays(edges), path, overwrite=True, memory=1, **cleaning)
    assert graph.report.spilled
    assert_graph(graph, clean(edges, **cleaning))


@pytest.mark.parametrize("parallel", ["drop", "first", "min", "sum"])
def test_both_directions_of_an_undirected_edge_weigh_the_same(parallel):
    edges = [(1, 2, 7), (2, 1, 3), (1, 2, 5), (2, 3, 4), (3, 2, 9)]
    graph = ist.read(arrays(edges), directed=False, parallel=parallel)
    assert (
        graph.edge_weights(1, 2).tolist()
        == graph.edge_weights(2, 1).tolist()
        == [{"min": 3, "sum": 15}.get(parallel, 7)]
    )
    assert graph.edge_weights(2, 3).tolist() == graph.edge_weights(3, 2).tolist() == [{"sum": 13}.get(parallel, 4)]


def test_merged_undirected_self_loops_count_once_each():
    report = ist.read((np.array([1, 1, 1, 1]), np.array([1, 1, 2, 2])), directed=False, parallel="drop").report
    assert report.parallel_merged == 2


@pytest.mark.parametrize("vertices", [0, 1, 5])
def test_vertices_without_edges(vertices, tmp_path):
    none = np.empty(0, np.int64)
    graph = ist.ingest((none, none), tmp_path / "g.isthmus", vertices=vertices)
    assert (graph.vertices, graph.edges, graph.arcs) == (vertices, 0, 0)
    assert graph.report.warnings == ["arrays: no edges"]
    assert ist.verify(graph.path).ok
    assert [graph.degree(v) for v in range(vertices)] == [0] * vertices


@pytest.mark.parametrize("order", ["natural", "hub"])
@pytest.mark.parametrize("directed", [True, False])
def test_no_edges_and_no_vertices(order, directed, tmp_path):
    none = np.empty(0, np.int64)
    graph = ist.ingest((none, none), tmp_path / "g.isthmus", order=order, directed=directed)
    assert (graph.vertices, graph.edges, graph.arcs) == (0, 0, 0)
    assert ist.verify(graph.path).ok


def test_one_vertex_with_a_loop():
    graph = ist.read((np.array([42]), np.array([42])), directed=False)
    assert (graph.vertices, graph.edges, graph.arcs, graph.degree(42)) == (1, 1, 1, 1)


def test_isolated_vertices_of_a_count():
    graph = ist.read((np.array([1]), np.array([3])), vertices=6)
    assert (graph.vertices, graph.edges) == (6, 1)
    assert graph.neighbors(1).tolist() == [3]
    assert graph.degree(5) == 0


@pytest.mark.parametrize(("sources", "wrong"), [([0, 6], 6), ([0, -1], -1), ([0, 2**40], 2**40)])
def test_id_outside_the_promised_range(sources, wrong):
    with pytest.raises(GraphFormatError, match=rf"expected ids from 0 to 5, got {wrong}$"):
        ist.read((np.array(sources), np.array([0, 0])), vertices=6)


@pytest.mark.parametrize("where", ["source", "target"])
def test_columns_of_different_widths(where, tmp_path, small):
    """One column fits 32 bits, the other has negative or large ids; each keeps its own type, on disk too."""
    narrow, wide = np.arange(500), np.arange(500) - 2**40
    pair = (wide, narrow) if where == "source" else (narrow, wide)
    expected = clean(triples(*pair))
    assert_graph(ist.read(pair), expected)
    assert_graph(ist.ingest(pair, tmp_path / "g.isthmus", memory=1), expected)


# ---- weights


@pytest.mark.parametrize(
    ("weights", "options", "stored"),
    [
        (np.array([1, 2]), {}, "int32"),
        (np.array([1, 2**31]), {}, "int64"),
        (np.array([1, 2**31]), {"weight_dtype": "int64", "vertices": 3}, "int64"),
        (np.array([1, 2]), {"weight_dtype": "int64"}, "int64"),
        (np.array([1, 2**31]), {"weight_dtype": "float64"}, "float64"),
        (np.array([1.0, 2.0]), {}, "float64"),
        (np.array([1, 2]), {"parallel": "sum"}, "int64"),
        (np.array([1, 2]), {"parallel": "sum", "weight_dtype": "int32"}, "int32"),
        (np.array([1, 2]), {"weight_dtype": "float32"}, "float32"),
        (np.array([1, 2]), {"vertices": 3}, "int32"),
        (np.array([1, 2]), {"vertices": 3, "weight_dtype": "int32"}, "int32"),
        (np.array([1.5, 2]), {"vertices": 3}, "float64"),
    ],
)
def test_weights_are_stored_in_the_narrowest_type(weights, options, stored):
    graph = ist.read((np.array([0, 1]), np.array([1, 2]), weights), **options)
    assert graph.info()["weight_type"] == stored
    assert graph.edge_weights(0, 1).tolist() + graph.edge_weights(1, 2).tolist() == weights.tolist()


def test_sums_of_whole_weights_are_whole():
    most = 2**31 - 1
    graph = ist.read((np.zeros(5, int), np.ones(5, int), np.full(5, most)), parallel="sum")
    assert graph.edge_weights(0, 1).tolist() == [5 * most]


def test_sums_that_may_not_fit_64_bits_are_said_to_be_rounded():
    arrays = (np.zeros(2, int), np.ones(2, int), np.array([2**62, 2**62]))
    with pytest.warns(ist.IsthmusWarning, match="sums of whole weights beyond 32 bits are stored as float64"):
        graph = ist.read(arrays, parallel="sum")
    assert graph.edge_weights(0, 1).tolist() == [2.0**63]
    with pytest.raises(OptionError, match="may not fit int64; give weight_dtype='float64'"):
        ist.read(arrays, parallel="sum", weight_dtype="int64")


@pytest.mark.parametrize("how", ["keep", "sum"])
@pytest.mark.parametrize("weights", [None, [4, 4, 7, 7, 1], [0.5, 0.5, 7, 7, 1]])
def test_edges_listed_in_both_directions_are_noticed(how, weights):
    arrays = [np.array([0, 1, 1, 2, 2]), np.array([1, 0, 2, 1, 2])] + ([] if weights is None else [np.array(weights)])
    twice = "adds its weight twice" if how == "sum" else "stores it twice"
    with pytest.warns(
        ist.IsthmusWarning, match=f"both directions, and directed=False {twice}; give parallel='drop'"
    ) as told:
        ist.read(tuple(arrays), directed=False, parallel=how)
    assert len(told) == 1


def test_the_remedy_for_edges_in_both_directions_works(recwarn):
    graph = ist.read((np.array([0, 1, 1, 2]), np.array([1, 0, 2, 1])), directed=False, parallel="drop")
    assert (graph.edges, graph.degree(1), len(recwarn)) == (2, 2, 0)


@pytest.mark.parametrize(
    ("sources", "targets", "weights"),
    [
        ([0, 1], [1, 2], None),
        ([0, 1, 1], [1, 0, 2], None),
        ([0, 1], [1, 0], [0.5, 0.75]),
        ([0, 1], [0, 1], None),
        ([], [], None),
    ],
)
def test_other_edges_are_not_taken_for_both_directions(recwarn, sources, targets, weights):
    arrays = [np.array(sources, int), np.array(targets, int)] + ([] if weights is None else [np.array(weights)])
    graph = ist.read(tuple(arrays), directed=False)
    assert graph.edges == len(sources)
    assert not any("both directions" in str(told.message) for told in recwarn)


def test_both_directions_in_a_directed_graph_are_no_matter(recwarn):
    assert ist.read((np.array([0, 1]), np.array([1, 0]))).edges == 2
    assert len(recwarn) == 0


def test_fractions_do_not_become_integers():
    with pytest.raises(OptionError, match="some weights are not 32-bit whole numbers"):
        ist.read((np.array([1]), np.array([2]), np.array([1.5])), weight_dtype="int32")


@pytest.mark.parametrize(
    ("weights", "dtype"), [([2**31 - 1] * 2, "int32"), ([3e38] * 2, "float32"), ([1.7e308] * 2, "float64")]
)
def test_a_sum_that_outgrows_its_type_is_refused(weights, dtype):
    columns = (np.array([1, 1]), np.array([2, 2]), np.array(weights))
    with pytest.raises(GraphFormatError, match=f"arrays: a weight of .* does not fit {dtype}"):
        ist.read(columns, parallel="sum", weight_dtype=None if dtype == "float64" else dtype)


def test_a_weight_that_float32_cannot_hold_is_refused():
    with pytest.raises(GraphFormatError, match=r"arrays: a weight of 1e\+300 does not fit float32"):
        ist.read((np.array([1]), np.array([2]), np.array([1e300])), weight_dtype="float32")


@pytest.mark.parametrize(
    ("weight", "message"), [(np.nan, "finite weight, got nan"), (np.inf, "finite .* got inf"), (-1.0, "at least 0")]
)
def test_weights_no_algorithm_can_use(weight, message):
    with pytest.raises(GraphFormatError, match=f"arrays: row 1: expected a .*{message}"):
        ist.read((np.array([1, 2]), np.array([2, 3]), np.array([1, weight])))


def test_negative_weights_are_admitted_and_recorded():
    columns = (np.array([1, 2]), np.array([2, 3]), np.array([-2, 3]))
    graph = ist.read(columns, allow_negative=True)
    assert graph.edge_weights(1, 2).tolist() == [-2]
    assert graph.store.manifest.negative_weights
    assert not ist.read((*columns[:2], np.array([2, 3])), allow_negative=True).store.manifest.negative_weights


@pytest.mark.parametrize("weight", [np.nan, np.inf])
def test_allow_negative_admits_nothing_else(weight):
    with pytest.raises(GraphFormatError, match="finite weight"):
        ist.read((np.array([1]), np.array([2]), np.array([weight])), allow_negative=True)


# ---- options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"self_loops": "maybe"}, "self_loops: expected keep or drop, got 'maybe'"),
        ({"parallel": "max"}, "parallel: expected one of keep, drop, first, min, sum, got 'max'"),
        ({"weight_dtype": "int16"}, "weight_dtype: expected int32, int64, float32 or float64, got 'int16'"),
        ({"order": "random"}, "order: expected natural or hub, got 'random'"),
        ({"colour": "red"}, "unknown option colour"),
        ({"vertices": -1}, "vertices: expected at least 0, got -1"),
        ({"vertices": 3, "ids": "string"}, "it does not go with string ids"),
        ({"ids": "float"}, "ids: expected auto, int or string, got 'float'"),
        ({"format": "gml"}, "format: expected one of text, parquet, .* got 'gml'"),
        (
            {"memory": "lots"},
            "expected a size such as 512MB, 2GB or 1.5GiB, or for a run a share such as 10%, got 'lots'",
        ),
        ({"threads": 0}, "threads: expected at least 1, got 0"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(OptionError, match=message):
        ist.read((np.array([1]), np.array([2])), **options)


# ---- without room


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("parallel", ["keep", "first", "min", "sum"])
@pytest.mark.parametrize("ids", ["dense", "sparse"])
def test_spilled_result_is_the_same_to_the_byte(tmp_path, small, ids, parallel, threads):
    sources, targets = numbers(3000, 40)
    if ids == "sparse":
        sources, targets = sources * 2**50 - 2**54, targets * 2**50 - 2**54
    weights = np.random.default_rng(5).random(3000)  # sums of these depend on their order
    options = {"directed": False, "parallel": parallel}
    roomy = ist.ingest((sources, targets, weights), tmp_path / "a.isthmus", memory="2GB", threads=1, **options)
    tight = ist.ingest((sources, targets, weights), tmp_path / "b.isthmus", memory=1, threads=threads, **options)
    assert tight.report.spilled and not roomy.report.spilled
    assert contents(tight) == contents(roomy)
    assert_graph(roomy, clean(triples(sources, targets, weights), **options))


@pytest.mark.parametrize("memory", [1, "2GB"])
def test_the_number_of_threads_changes_nothing(tmp_path, small, memory):
    sources, targets = numbers(4000, 300)
    weights = np.random.default_rng(2).random(4000)
    stores = [
        ist.ingest(
            (sources, targets, weights), tmp_path / f"{threads}.isthmus", threads=threads, memory=memory, parallel="sum"
        )
        for threads in (1, 2, 5)
    ]
    assert contents(stores[0]) == contents(stores[1]) == contents(stores[2])


@pytest.mark.parametrize("memory", [1, "2GB"])
def test_a_hub_larger_than_a_bucket(tmp_path, small, memory):
    others = np.arange(1, 3001)
    hub = np.zeros_like(others)
    graph = ist.ingest((hub, others), tmp_path / "g.isthmus", memory=memory, directed=False)
    assert graph.neighbors(0).tolist() == others.tolist()
    assert all(graph.neighbors(v).tolist() == [0] for v in (1, 1500, 3000))
    assert ist.verify(graph.path).ok


@pytest.mark.parametrize("memory", [1, "2GB"])
@pytest.mark.parametrize("parallel", PARALLEL)
def test_one_edge_over_and_over(tmp_path, small, parallel, memory):
    """All keys are equal, so that no parting makes the bucket smaller."""
    count = 3000
    weights = np.random.default_rng(3).random(count)
    columns = (np.full(count, 7), np.full(count, 9), weights)
    graph = ist.ingest(columns, tmp_path / "g.isthmus", memory=memory, parallel=parallel)
    assert_graph(graph, clean(triples(*columns), parallel=parallel))
    assert graph.report.parallel_merged == (0 if parallel == "keep" else count - 1)


@pytest.mark.parametrize("memory", [1, "2GB"])
def test_one_heavy_edge_among_others(tmp_path, small, memory):
    sources, targets = numbers(2000, 50)
    sources = np.concatenate([sources, np.full(2000, 25)])
    targets = np.concatenate([targets, np.full(2000, 25)])
    for parallel in ("keep", "drop"):
        graph = ist.ingest((sources, targets), tmp_path / "g.isthmus", memory=memory, parallel=parallel, overwrite=True)
        assert_graph(graph, clean(triples(sources, targets), parallel=parallel))


def test_sorted_input_without_room(tmp_path, small):
    sources = np.repeat(np.arange(500), 6)
    targets = np.tile(np.arange(6), 500)
    graph = ist.ingest((sources, targets), tmp_path / "g.isthmus", memory=1)
    assert_graph(graph, clean(triples(sources, targets)))


def test_strings_without_room(tmp_path, small, monkeypatch, sized):
    """Strings, edges, hashes and table all go to disk."""
    sized(least_name_bytes=0)
    held = []

    class Roomy(names.Names):
        def __init__(self, budget, folder):
            held.append(budget)
            budget.limit = 1 << 16
            super().__init__(budget, folder)
            budget.limit = 1

    monkeypatch.setattr("isthmus.graph.ingest.ingest.Names", Roomy)
    sources, targets = numbers(2000, 700)
    columns = tuple(np.array([f"vertex {v}" for v in column]) for column in (sources, targets))
    tight = ist.ingest(columns, tmp_path / "a.isthmus", memory=1)
    assert held and tight.report.spilled
    assert_graph(tight, clean(triples(*columns)))
    assert ist.verify(tight.path).ok


def test_strings_within_the_least_budget(tmp_path):
    columns = (np.array(["b", "a", "c"]), np.array(["a", "c", "b"]))
    assert ist.ingest(columns, tmp_path / "g.isthmus", memory=2 * sizes.now.least_name_bytes).vertices == 3


def test_strings_need_room_for_the_sort(tmp_path):
    with pytest.raises(
        BudgetError, match=r"string ids need a budget of at least 33\.6 MB, got 10 MB; give memory='34MB' or more"
    ):
        ist.ingest((np.array(["a"]), np.array(["b"])), tmp_path / "g.isthmus", memory="10MB")
    assert list(tmp_path.iterdir()) == []


def test_a_memory_graph_that_does_not_fit_says_what_to_do():
    with pytest.raises(BudgetError, match="ingest it into a store instead"):
        ist.read(numbers(5000, 1000), memory="20kB")


def weak_hashes(strings, salt):
    """Under salt 0 all strings collide; salt 1 is as good as any."""
    return np.array([hash_of(name.as_py(), salt) for name in strings], np.uint64)


def hash_of(name: bytes, salt: int) -> int:
    return 5 if salt == 0 else int.from_bytes(name.rjust(8, b"\0")[-8:], "big")


@pytest.mark.parametrize("to", ["memory", "store"])
def test_hash_collision_reads_again_with_another_salt(tmp_path, monkeypatch, to):
    monkeypatch.setattr(names, "hashes", weak_hashes)
    file = tmp_path / "edges.csv"
    file.write_text("b,a\na,c\nc,b\nb,a\n")
    graph = ist.read(file) if to == "memory" else ist.ingest(file, tmp_path / "g.isthmus")
    assert_graph(graph, clean([("b", "a", None), ("a", "c", None), ("c", "b", None), ("b", "a", None)]))
    assert graph.report.edges_read == 4


def test_hash_collisions_that_do_not_end_are_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(names, "hashes", lambda strings, salt: np.full(len(strings), 5, np.uint64))
    with pytest.raises(GraphFormatError, match="two ids share a hash"):
        ist.ingest((np.array(["a"]), np.array(["b"])), tmp_path / "g.isthmus")
    assert list(tmp_path.iterdir()) == []


# ---- failures leave no trace


def broken(kind: str, folder: Path) -> Path:
    """A file that fails in its middle, after blocks have been parsed and parted."""
    path = folder / f"in.{kind}"
    good = b"".join(b"%d %d\n" % pair for pair in zip(range(3000), range(1, 3001), strict=True))
    if kind == "txt":
        path.write_bytes(good + b"oops\n" + good)
    else:
        path.write_bytes(gzip.compress(good)[:-500])
    return path


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("kind", ["txt", "gz"])
@pytest.mark.parametrize("memory", [1, "2GB"])
@pytest.mark.parametrize("order", ["natural", "hub"])
def test_after_a_failure_the_target_is_as_it_was(tmp_path, small, kind, memory, order):
    source = broken(kind, tmp_path)
    folder = tmp_path / "out"
    folder.mkdir()
    with pytest.raises(GraphFormatError):
        ist.ingest(source, folder / "g.isthmus", memory=memory, order=order)
    assert list(folder.iterdir()) == []
    ist.ingest((np.array([1]), np.array([2])), folder / "g.isthmus")
    before, open_files = files_in(folder), descriptors()
    with pytest.raises(GraphFormatError):
        ist.ingest(source, folder / "g.isthmus", memory=memory, order=order, overwrite=True)
    assert files_in(folder) == before
    assert ist.verify(folder / "g.isthmus").ok
    assert descriptors() <= open_files


def test_an_existing_store_is_not_replaced_unasked(tmp_path):
    path = tmp_path / "g.isthmus"
    ist.ingest((np.array([1]), np.array([2])), path)
    before = files_in(tmp_path)
    with pytest.raises(StoreError, match="exists already"):
        ist.ingest((np.array([1]), np.array([3])), path)
    assert files_in(tmp_path) == before


def test_success_leaves_only_the_store_and_no_open_scratch(tmp_path, small):
    sources, targets = numbers(2000, 2**40)
    open_files = descriptors()
    graph = ist.ingest((sources, targets), tmp_path / "g.isthmus", memory=1)
    assert graph.report.spilled
    assert [p.name for p in tmp_path.iterdir()] == ["g.isthmus"]
    graph.close()
    assert descriptors() <= open_files


@pytest.mark.parametrize(
    "name", ["missing.txt", "missing.parquet", "missing.isthmus", "null\0byte", "null\0byte.graph"]
)
def test_no_such_file(tmp_path, name):
    with pytest.raises(GraphFormatError, match=rf"{name}: no such file"):
        ist.read(tmp_path / name)


def test_a_pipe_is_not_half_read(tmp_path):
    os.mkfifo(tmp_path / "edges.txt")
    with pytest.raises(GraphFormatError, match="is a pipe or a device"):
        ist.read(tmp_path / "edges.txt")


# ---- real graphs, with the counts of their README


REAL = [
    # folder, options, vertices, edges, self loops
    ("cnr-2000", {}, 325_557, 3_216_152, 87_442),
    ("soc-slashdot0902", {}, 82_168, 948_464, 78_303),
    ("cit-HepPh", {}, 34_546, 421_578, None),
    ("ca-AstroPh", {"directed": False}, 17_903, 197_031, None),
    ("email-enron", {"directed": False}, 36_692, 183_831, None),
    ("tntp-sydney", {"weight": 3}, 33_113, 75_379, None),
    ("sx-mathoverflow", {}, 24_818, 506_550, None),
    ("npm-deps-2016", {}, 304_031, 2_345_507, None),
]


@pytest.mark.parametrize(("folder", "options", "vertices", "edges", "loops"), REAL, ids=[row[0] for row in REAL])
def test_real_graphs_have_their_known_counts(data, tmp_path, folder, options, vertices, edges, loops):
    graph = ist.ingest(data / folder / "edges.txt.gz", tmp_path / "g.isthmus", **options)
    assert (graph.vertices, graph.edges) == (vertices, edges)
    assert graph.report.edges_read == edges
    assert loops is None or graph.store.manifest.self_loops == loops
    if edges < 500_000:
        assert ist.verify(graph.path).ok
    shutil.rmtree(graph.path)


def test_the_hub_of_npm(data):
    graph = ist.read(data / "npm-deps-2016" / "edges.txt.gz")
    assert int(np.diff(graph.store.read("in.offsets")).max()) == 89_055


def test_a_real_update_stream_read_by_column_numbers(data):
    """julia-registry: `a|d u v unixtime`."""
    graph = ist.read(data / "julia-registry" / "stream.txt.gz", source=2, target=3)
    assert (graph.vertices, graph.edges) == (13_540, 115_606)


def test_oracle_agrees_with_itself():
    """A graph small enough to check by eye keeps the oracle honest."""
    found = clean([(1, 2, 5), (2, 1, 3), (2, 2, 1), (2, 2, 4)], directed=False, parallel="min")
    assert found == Cleaned(
        [1, 2], {1: [(2, 3)], 2: [(1, 3), (2, 1)]}, {1: [(2, 3)], 2: [(1, 3), (2, 1)]}, 2, 3, 1, 2, 2, found.kept
    )


def test_read_back_of_a_hub_ordered_graph_is_natural():
    graph = ist.read((np.array([0, 1, 2, 3]), np.array([3, 3, 3, 0])), order="hub")
    assert graph.ids.users(np.arange(1)).tolist() == [3]
    assert read_back(graph) == {0: [(3, None)], 1: [(3, None)], 2: [(3, None)], 3: [(0, None)]}
