"""Edges from Python: NumPy arrays, SciPy matrices, and tables of every library that speaks Arrow."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from tests.naive import assert_graph, clean

import isthmus as ist
from isthmus.errors import GraphFormatError, OptionError
from isthmus.graph.ingest import names

SOURCES, TARGETS, WEIGHTS = [1, 5, 5, 9], [5, 9, 9, 1], [0.5, 1.5, 2.5, 3.5]
PLAIN = [(u, v, None) for u, v in zip(SOURCES, TARGETS, strict=True)]
WEIGHTED = list(zip(SOURCES, TARGETS, WEIGHTS, strict=True))
COLUMNS = {"source": SOURCES, "target": TARGETS, "cost": WEIGHTS}


def duck(columns):
    frame = pa.table(columns)
    return duckdb.connect().from_arrow(frame)


TABLES = {
    "pyarrow": pa.table,
    "reader": lambda columns: pa.table(columns).to_reader(),
    "pandas": pd.DataFrame,
    "pandas with an index": lambda columns: pd.DataFrame(columns, index=[7, 7, 8, 9]),
    "polars": pl.DataFrame,
    "duckdb": duck,
}


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_tables(make):
    assert_graph(ist.read(make(COLUMNS)), clean(PLAIN))
    assert_graph(ist.read(make(COLUMNS), weight="cost"), clean(WEIGHTED))


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_tables_of_strings(make):
    columns = {"source": [f"v{u}" for u in SOURCES], "target": [f"v{v}" for v in TARGETS]}
    assert_graph(ist.read(make(columns)), clean([(f"v{u}", f"v{v}", None) for u, v, _ in PLAIN]))


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
        pa.large_binary(),
        pa.dictionary(pa.int32(), pa.string()),
    ],
    ids=str,
)
def test_types_of_strings(kind):
    ends = [pa.array(column, pa.string()).cast(kind) for column in (["b", "é", "b"], ["é", "a", "é"])]
    assert_graph(ist.read(pa.table(ends, ["u", "v"])), clean([("b", "é", None), ("é", "a", None), ("b", "é", None)]))


@pytest.mark.parametrize(
    "frame", [pl.DataFrame({"u": ["b", "a"], "v": ["a", "c"]}, schema={"u": pl.Categorical, "v": pl.Categorical})]
)
def test_polars_categories(frame):
    assert_graph(ist.read(frame), clean([("b", "a", None), ("a", "c", None)]))


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i4", ">u8"])
def test_types_of_integers(kind):
    columns = (np.array(SOURCES, kind), np.array(TARGETS, kind))
    assert_graph(ist.read(columns), clean(PLAIN))


def test_integers_of_a_dictionary():
    ends = [pa.array(column, pa.int64()).dictionary_encode() for column in (SOURCES, TARGETS)]
    assert_graph(ist.read(pa.table(ends, ["u", "v"])), clean(PLAIN))


def test_an_integer_and_a_string_column_are_strings():
    graph = ist.read(pa.table({"u": [1, 2], "v": ["x", "1"]}))
    assert_graph(graph, clean([("1", "x", None), ("2", "1", None)]))


def test_integers_asked_for_as_strings():
    graph = ist.read((np.array([10, 9]), np.array([9, 1])), ids="string")
    assert graph.ids.users(np.arange(3)).tolist() == ["1", "10", "9"]


@pytest.mark.parametrize(
    ("names", "options"),
    [
        (["a", "b", "c"], {}),
        (["src", "dst", "c"], {}),
        (["FROM", "To", "c"], {}),
        (["a", "b", "c"], {"source": "a", "target": 2}),
        (["a", "b", "c"], {"source": "1", "target": "2"}),
        (["2", "1", "c"], {"source": "2", "target": "1"}),  # a name goes before a number
    ],
)
def test_which_columns(names, options):
    table = pa.table([SOURCES, TARGETS, WEIGHTS], names)
    assert_graph(ist.read(table, **options), clean(PLAIN))


def test_usual_names_go_before_position():
    table = pa.table([WEIGHTS, TARGETS, SOURCES], ["c", "destination", "source"])
    assert_graph(ist.read(table), clean(PLAIN))


@pytest.mark.parametrize(
    ("names", "options", "error", "message"),
    [
        (["dst", "x"], {}, OptionError, "must be different columns, got dst, dst; name them"),
        (["a", "b"], {"source": "b"}, OptionError, "must be different columns, got b, b"),
        (["a", "b"], {"weight": "a"}, OptionError, "must be different columns, got a, b, a"),
        (["a", "b"], {"source": "c"}, OptionError, "no column 'c'; there are a, b"),
        (["a", "b"], {"weight": 3}, OptionError, "expected a column from 1 to 2, got 3"),
        (["a", "b"], {"source": 0}, OptionError, "expected a column from 1 to 2, got 0"),
        (["a", "a"], {"source": 1, "target": 2}, OptionError, "must be different columns"),
        (["a"], {}, GraphFormatError, "expected columns for source and target, found a"),
        (["u", "v", "v"], {}, GraphFormatError, "table: expected one column 'v', found 2"),
    ],
)
def test_columns_that_make_no_sense(names, options, error, message):
    table = pa.table([SOURCES] * len(names), names)
    with pytest.raises(error, match=message):
        ist.read(table, **options)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([1.0, 2.0]), "column 'v' holds double, expected integers or strings as ids"),
        (pa.array([True, False]), "column 'v' holds bool, expected integers or strings as ids"),
        (pa.array([1, 2], pa.timestamp("s")), r"column 'v' holds timestamp\[s\], expected integers"),
        (pa.array([[1], [2]]), "column 'v' holds list<.*>, expected integers"),
        (pa.array([1, None]), "row 1: expected a value in column 'v', got null"),
        (pa.array(["a", None]), "row 1: expected a value in column 'v', got null"),
        (
            pa.DictionaryArray.from_arrays([0, 1], pa.array(["a", None])),
            "row 1: expected a value in column 'v', got null",
        ),
        (pa.array([b"a", b"\xff"]), r"row 1: expected an id in UTF-8 in column 'v', got b'.xff'"),
    ],
    ids=str,
)
def test_ids_that_are_none(column, message):
    with pytest.raises(GraphFormatError, match=message):
        ist.read(pa.table({"u": [1, 2], "v": column}))


def test_strings_where_integers_were_asked_for():
    with pytest.raises(GraphFormatError, match="column 'v' holds string, expected integers"):
        ist.read(pa.table({"u": [1], "v": ["x"]}), ids="int")
    with pytest.raises(GraphFormatError, match="column 'u' holds string, expected integers"):
        ist.read(pa.table({"u": ["x"], "v": ["y"]}), vertices=3)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (pa.array([1.0, None, 2.0]), "row 1: expected a value in column 'w', got null"),
        (pa.array(["1", "2", "3"]), "column 'w' holds string, expected numbers as weights"),
        (pa.array([True, False, True]), "column 'w' holds bool, expected numbers as weights"),
        (pa.array([1.0, 2.0, float("nan")]), "row 2: expected a finite weight, got nan"),
        (pa.array([1, -2, 3]), "row 1: expected a weight of at least 0"),
        (
            pa.array([1, 2, 2**64 - 1], pa.uint64()),
            "row 2: expected a weight that 64 bits hold exactly, got 18446744073709551615",
        ),
    ],
    ids=str,
)
def test_weights_that_are_wrong(weights, message):
    with pytest.raises(GraphFormatError, match=message):
        ist.read(pa.table({"u": [1, 2, 3], "v": [2, 3, 1], "w": weights}), weight="w")


@pytest.mark.parametrize("vertices", [None, 3])
def test_large_whole_weights_stay_whole(vertices):
    graph = ist.read((np.array([1, 2]), np.array([2, 1]), np.array([2**60 + 1, 2**53 + 1])), vertices=vertices)
    assert graph.info()["weight_type"] == "int64"
    assert graph.store.read("out.weights").tolist() == [2**60 + 1, 2**53 + 1]


def test_weights_beyond_64_bits_that_floats_hold():
    graph = ist.read(pa.table({"u": [1, 2], "v": [2, 1], "weight": pa.array([2**63, 5], pa.uint64())}))
    assert graph.info()["weight_type"] == "float64"
    assert graph.store.read("out.weights").tolist() == [2.0**63, 5.0]


def test_the_row_is_right_in_a_later_batch(sized):
    sized(block_edges=10)
    weights = np.ones(95)
    weights[[77, 90]] = -1
    with pytest.raises(GraphFormatError, match="row 77: expected a weight of at least 0"):
        ist.read((np.zeros(95, int), np.ones(95, int), weights), threads=2)


@pytest.mark.parametrize("apart", [False, True])
def test_negative_and_huge_ids_do_not_go_together(sized, apart):
    sized(block_edges=2)
    table = pa.table(
        {"u": pa.array([-1, 1, 1, 1]), "v": pa.array([2**63, 1, 1, 1][:: -1 if apart else 1], pa.uint64())}
    )
    with pytest.raises(GraphFormatError, match=r"ids below 0 and above 2\*\*63 - 1 in one table"):
        ist.read(table)


# ---- arrays


def test_two_dimensional_arrays():
    assert_graph(ist.read(np.array([SOURCES, TARGETS]).T), clean(PLAIN))
    assert_graph(ist.read(np.array([[1, 2, 7], [2, 1, 8]])), clean([(1, 2, 7), (2, 1, 8)]))


def test_plain_sequences_as_columns():
    assert_graph(ist.read((SOURCES, TARGETS, WEIGHTS)), clean(WEIGHTED))
    assert ist.read(([], [])).vertices == 0


def test_strided_arrays():
    both = np.array([SOURCES, TARGETS]).T.copy()
    assert_graph(ist.read((both[:, 0], both[:, 1])), clean(PLAIN))


@pytest.mark.parametrize(
    ("what", "error", "message"),
    [
        (
            [(0, 1), (0, 2, 5)],
            OptionError,
            r"a list of edges: item 1: expected 2 values, as in the first, got \(0, 2, 5\)",
        ),
        (
            [(0, 1, 2, 3)],
            OptionError,
            r"a list of edges: item 0: expected \(source, target\) or \(source, target, weight\)",
        ),
        ([[0, 1], [0, 2], [3, 4]], OptionError, "a list of lists could mean rows or columns"),
        ((np.arange(3), np.arange(4)), OptionError, r"expected arrays of one length, got shapes \(3,\), \(4,\)"),
        ((np.ones((2, 2), int), np.ones((2, 2), int)), OptionError, "expected arrays of one length"),
        (({1: 2},), OptionError, "cannot read edges from tuple"),
        (7, OptionError, "cannot read edges from int; expected a path"),
        (None, OptionError, "cannot read edges from NoneType"),
        (np.arange(5), OptionError, "cannot read edges from ndarray"),
        (
            (np.array([1.5]), np.array([2])),
            GraphFormatError,
            "arrays: source holds float64, expected integers or strings as ids",
        ),
        ((np.array([1]), np.array([True])), GraphFormatError, "arrays: target holds bool"),
        (
            (np.array([1, "a"], object), np.array([1, 2])),
            GraphFormatError,
            "arrays: source holds object that cannot be read",
        ),
        (
            (np.array([2**64], object), np.array([1])),
            GraphFormatError,
            f"arrays: source: expected numbers that fit 64 bits, got {2**64}",
        ),
        ((np.array([1.5], object), np.array([1])), GraphFormatError, "column 'source' holds double"),
        ((np.array([1]), np.array([2]), np.array([1j])), GraphFormatError, "arrays: weight holds complex128"),
        ((np.array([1]), np.array([2]), np.array(["x"])), GraphFormatError, "expected numbers as weights"),
    ],
    ids=str,
)
def test_objects_that_hold_no_edges(what, error, message):
    with pytest.raises(error, match=message):
        ist.read(what)


def test_types_that_do_not_mix_are_said():
    with pytest.raises(GraphFormatError, match=r"table: cannot read: .*column u .*; expected columns of one type each"):
        ist.read(pd.DataFrame({"u": [1, "a"], "v": [2, 3]}))
    with pytest.raises(
        GraphFormatError, match=r"arrays: source holds object .*; expected integers or strings, not both"
    ):
        ist.read((np.array([1, "a"], object), np.array([1, 2])))


def test_numbers_and_text_in_one_list_are_refused():
    with pytest.raises(GraphFormatError, match="expected integers or strings, got both: 1 beside text"):
        ist.read((["a", 1], ["b", "c"]))


def test_a_third_array_can_be_left_out():
    assert_graph(ist.read((SOURCES, TARGETS, WEIGHTS), weight="none"), clean(PLAIN))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weight": [3]}, r"weight: expected the name or the number of a column, got \[3\]"),
        ({"source": 1.5}, "source: expected the name or the number of a column, got 1.5"),
        ({"target": True}, "target: expected the name or the number of a column, got True"),
        ({"comments": None}, "comments: expected characters that start a comment line, got None"),
        ({"max_expansion": "x"}, "max_expansion: expected a number above 0, got 'x'"),
        ({"vertices": 2.5}, "vertices: expected a whole number, got 2.5"),
    ],
)
def test_options_of_the_wrong_kind(options, message):
    with pytest.raises(OptionError, match=message):
        ist.read((SOURCES, TARGETS), **options)


def test_columns_by_numbers_of_numpy():
    assert_graph(ist.read(pa.table(COLUMNS), weight=np.int64(3)), clean(WEIGHTED))


def test_vertices_is_a_count():
    with pytest.raises(
        OptionError, match=r"vertices: expected how many there are, whose ids are 0, 1, 2, ..., got ndarray$"
    ):
        ist.read((SOURCES, TARGETS), vertices=np.arange(10))


@pytest.mark.parametrize("address", ["s3://bucket/edges.parquet", "https://example.org/edges.txt"])
def test_addresses_are_not_files(address):
    with pytest.raises(
        GraphFormatError, match=f"{address}: is an address, expected a file on this machine; download it first"
    ):
        ist.read(address)


# ---- a column named weight


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("name", ["weight", "Weight"])
def test_a_column_named_weight_is_the_weight(make, name):
    assert_graph(ist.read(make({"source": SOURCES, "target": TARGETS, name: WEIGHTS})), clean(WEIGHTED))


def test_shortest_paths_of_a_table_use_its_weights(recwarn):
    graph = ist.read(pd.DataFrame({"source": [0, 0, 1], "target": [1, 2, 2], "weight": [1.0, 9.0, 2.0]}))
    assert ist.sssp(graph, 0).values.tolist() == [0, 1, 3]
    assert len(recwarn) == 0


def test_a_networkx_edge_list_keeps_its_weights():
    nx = pytest.importorskip("networkx")
    graph = nx.Graph([(0, 1, {"weight": 2.5}), (1, 2, {"weight": 4.0})])
    assert_graph(
        ist.read(nx.to_pandas_edgelist(graph), directed=False), clean([(0, 1, 2.5), (1, 2, 4.0)], directed=False)
    )


def test_the_weight_may_stand_first():
    assert_graph(ist.read(pa.table([WEIGHTS, SOURCES, TARGETS], ["weight", "a", "b"])), clean(WEIGHTED))


def test_weights_can_be_left_out(recwarn):
    assert_graph(ist.read(pa.table({"u": SOURCES, "v": TARGETS, "weight": WEIGHTS}), weight="none"), clean(PLAIN))
    assert len(recwarn) == 0


def test_a_column_named_weight_that_holds_no_numbers():
    table = pa.table({"u": SOURCES, "v": TARGETS, "weight": ["light"] * 4})
    with pytest.raises(
        GraphFormatError, match=r"column 'weight' holds string, expected numbers .*\(weight='none' reads no weights\)"
    ):
        ist.read(table)
    assert ist.read(table, weight="none").edges == 4


def test_numbers_that_are_not_read_are_noticed():
    with pytest.warns(
        ist.IsthmusWarning, match="table: one further column ignored; weight='cost' reads a column as the weight"
    ):
        ist.read(pa.table(COLUMNS))


def test_words_beside_the_edges_are_no_matter(recwarn):
    ist.read(pa.table({"u": [1], "v": [2], "label": ["x"]}))
    assert len(recwarn) == 0


# ---- SciPy


@pytest.mark.parametrize("kind", [np.bool_, np.int32, np.float64])
def test_a_symmetric_matrix_has_one_edge_per_pair(recwarn, kind):
    matrix = sp.csr_array(np.array([[0, 1, 2], [1, 5, 0], [2, 0, 0]], kind))
    graph = ist.read(matrix, directed=False)
    assert (graph.edges, graph.degree(0), graph.report.edges_read) == (3, 2, 3)
    assert ist.core_number(graph).values.tolist() == [1, 1, 1]
    assert ist.read(matrix).edges == 5
    assert len(recwarn) == 0


def test_a_networkx_matrix_has_one_edge_per_pair():
    nx = pytest.importorskip("networkx")
    graph = nx.karate_club_graph()
    found = ist.read(nx.to_scipy_sparse_array(graph), directed=False)
    assert found.edges == graph.number_of_edges()
    assert [found.degree(v) for v in graph] == [degree for _, degree in graph.degree()]


@pytest.mark.parametrize("entries", [[[0, 1], [0, 0]], [[0, 1], [2, 0]]])
def test_other_matrices_have_an_edge_per_entry(entries):
    matrix = sp.coo_array(np.array(entries))
    assert ist.read(matrix, directed=False).edges == matrix.nnz


@pytest.mark.parametrize("make", [sp.coo_array, sp.csr_array, sp.csc_matrix, sp.lil_array])
def test_sparse_matrices(make):
    matrix = make(np.array([[0, 2, 0], [0, 0, 0], [3, 0, 4]]))
    assert_graph(ist.read(matrix), clean([(0, 1, 2), (2, 0, 3), (2, 2, 4)]))
    assert ist.read(matrix).info()["weight_type"] == "int32"


def test_boolean_matrices_have_no_weights():
    graph = ist.read(sp.coo_array(np.array([[False, True], [False, False]])))
    assert_graph(graph, clean([(0, 1, None)], vertices=[0, 1]))


def test_rows_without_entries_are_vertices():
    assert ist.read(sp.coo_array((5, 5), dtype=np.int32)).vertices == 5
    assert ist.read(sp.coo_array((0, 0), dtype=np.int32)).vertices == 0


def test_matrices_that_are_wrong():
    with pytest.raises(GraphFormatError, match="expected as many rows as columns, got 2 x 3"):
        ist.read(sp.coo_array((2, 3)))
    with pytest.raises(GraphFormatError, match="row 0: expected a weight of at least 0"):
        ist.read(sp.coo_array(np.array([[-1.0]])))


# ---- streams


def test_a_reader_with_colliding_hashes_cannot_be_read_again(monkeypatch):
    monkeypatch.setattr("isthmus.graph.ingest.names.hashes", lambda strings, salt: np.full(len(strings), 5, np.uint64))
    with pytest.raises(GraphFormatError, match="two ids share a hash"):
        ist.read(pa.table({"u": ["a"], "v": ["b"]}).to_reader())


def test_a_table_with_colliding_hashes_is_read_again(monkeypatch):
    good = names.hashes
    monkeypatch.setattr(
        "isthmus.graph.ingest.names.hashes", lambda s, salt: good(s, salt) if salt else np.full(len(s), 5, np.uint64)
    )
    assert_graph(ist.read(pa.table({"u": ["a", "c"], "v": ["b", "a"]})), clean([("a", "b", None), ("c", "a", None)]))


def test_an_error_in_the_stream_is_reported():
    def batches():
        yield pa.record_batch({"u": [1], "v": [2]})
        raise OSError("the line went dead")

    schema = pa.schema({"u": pa.int64(), "v": pa.int64()})
    with pytest.raises(GraphFormatError, match=r"table: cannot read: .*the line went dead"):
        ist.read(pa.RecordBatchReader.from_batches(schema, batches()))
