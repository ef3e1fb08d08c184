"""Matrix Market files: read as written, and refused with the line that is wrong."""

from __future__ import annotations

import gzip
import io

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from tests.naive import assert_graph, clean

import isthmus as ist
from isthmus.errors import GraphFormatError, OptionError

GENERAL = "%%MatrixMarket matrix coordinate integer general\n% a comment\n\n4 4 3\n1 2 5\n% another\n4 1 7\n2 2 0\n"


@pytest.fixture
def write(tmp_path):
    def write(text, name="g.mtx"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return write


@pytest.mark.parametrize("name", ["g.mtx", "g.mtx.gz", "noending"])
@pytest.mark.parametrize("order", ["natural", "hub"])
def test_a_general_matrix_is_directed(write, tmp_path, name, order):
    graph = ist.ingest(write(GENERAL, name), tmp_path / "g.isthmus", order=order)
    assert graph.directed and graph.info()["weight_type"] == "int32"
    assert_graph(graph, clean([(1, 2, 5), (4, 1, 7), (2, 2, 0)], range(1, 5)))
    assert graph.info()["ids"] == "int64" and graph.report.reader["format"] == "matrix-market"
    assert ist.verify(graph.path).ok


def test_a_symmetric_matrix_is_undirected(write):
    graph = ist.read(write("%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n2 1 0.5\n3 1 1e3\n3 3 2\n"))
    assert not graph.directed
    assert_graph(graph, clean([(2, 1, 0.5), (3, 1, 1000.0), (3, 3, 2.0)], directed=False))


def test_a_pattern_has_no_weights_and_others_may_be_left_out(write):
    text = "%%matrixmarket MATRIX Coordinate Pattern General\r\n2 2 1\r\n1 2\r\n"
    assert_graph(ist.read(write(text)), clean([(1, 2, None)]))
    assert not ist.read(write(GENERAL), weight="none").weighted


@pytest.mark.parametrize("memory", [1, "1GB"])
def test_blocks_of_what_scipy_writes(write, tmp_path, sized, memory):
    sized(text_chunk=200)
    matrix = scipy.sparse.random_array((60, 60), density=0.1, rng=np.random.default_rng(3), format="coo")
    text = io.BytesIO()
    scipy.io.mmwrite(text, matrix)
    graph = ist.ingest(write(text.getvalue().decode()), tmp_path / "g.isthmus", memory=memory)
    expected = [(int(i) + 1, int(j) + 1, float(x)) for i, j, x in zip(*matrix.coords, matrix.data, strict=True)]
    found = [
        (u, v, w)
        for u, v, w in zip(
            *(graph.to_arrow()[name].to_pylist() for name in ("source", "target", "weight")), strict=True
        )
    ]
    assert graph.vertices == 60
    assert sorted((u, v) for u, v, _ in found) == sorted((u, v) for u, v, _ in expected)
    np.testing.assert_allclose([w for _, _, w in sorted(found)], [w for _, _, w in sorted(expected)], rtol=1e-12)


HEAD = "%%MatrixMarket matrix coordinate"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"g.mtx:1: expected '%%MatrixMarket matrix coordinate FIELD SYMMETRY', got ''"),
        ("1 2\n", r"g.mtx:1: expected '%%MatrixMarket .*', got '1 2'"),
        ("%%MatrixMarket matrix array real general\n2 2\n1\n", r"g.mtx:1: expected a matrix of coordinates"),
        (
            f"{HEAD} complex general\n",
            r"g.mtx:1: expected a matrix that is pattern, integer, real, double and general or symmetric",
        ),
        (f"{HEAD} real hermitian\n", r"g.mtx:1: expected a matrix that is"),
        (
            f"{HEAD} real general\n% only comments\n",
            r"g.mtx: expected a line 'rows columns entries' below the comments, found none",
        ),
        (f"{HEAD} real general\n3 3\n", r"g.mtx:2: expected 'rows columns entries', got '3 3'"),
        (f"{HEAD} real general\n3 2 1\n1 1 1\n", r"g.mtx:2: expected as many rows as columns, got 3 x 2"),
        (f"{HEAD} real general\n3 3 1\n1 x 1\n", r"g.mtx:3: expected 'row column value', got '1 x 1'"),
        (f"{HEAD} real general\n3 3 1\n1 2\n", r"g.mtx:3: expected 'row column value', got '1 2'"),
        (f"{HEAD} real general\n3 3 2\n1 2 1\n%\n4 2 1\n", r"g.mtx:5: expected vertices from 1 to 3, got '4 2 1'"),
        (f"{HEAD} real general\n3 3 1\n0 2 1\n", r"g.mtx:3: expected vertices from 1 to 3, got '0 2 1'"),
        (f"{HEAD} real general\n3 3 1\n-1 2 1\n", r"g.mtx:3: expected vertices from 1 to 3, got '-1 2 1'"),
        (
            f"{HEAD} real symmetric\n3 3 1\n1 2 1\n",
            r"g.mtx:3: expected the lower triangle of a symmetric matrix, column <= row <= 3",
        ),
        (f"{HEAD} real general\n3 3 2\n1 2 1\n", r"g.mtx: holds 1 lines of edges, its header promises 2"),
        (f"{HEAD} real general\n3 3 0\n1 2 1\n", r"g.mtx: holds 1 lines of edges, its header promises 0"),
        (
            f"{HEAD} real general\n3 3 1\n1 2 -1\n",
            r"g.mtx:3: expected a weight of at least 0 \(allow_negative=True admits others\)",
        ),
        (f"{HEAD} real general\n3 3 1\n1 2 nan\n", r"g.mtx:3: expected a finite weight"),
        (
            f"{HEAD} pattern general\n4000000000 4000000000 1\n1 2\n",
            r"g.mtx: 77 bytes claim 4000000000 vertices, expected at most 67",
        ),
    ],
)
def test_what_is_wrong_is_named(write, text, message):
    with pytest.raises(GraphFormatError, match=message):
        ist.read(write(text))


def test_options(write):
    path = write(GENERAL)
    with pytest.raises(OptionError, match=r"expected 'none' or None, got 3"):
        ist.read(path, weight=3)
    with pytest.raises(OptionError, match=r"is a Matrix Market file; header= does not apply to it"):
        ist.read(path, header=True)
    assert ist.read(write(GENERAL.replace(" 7\n", " -7\n")), allow_negative=True).edge_weights(4, 1).tolist() == [-7]
