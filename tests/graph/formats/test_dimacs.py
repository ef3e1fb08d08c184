"""DIMACS .gr files, and that their ending is shared with Galois."""

from __future__ import annotations

import pytest
from tests.naive import assert_graph, clean

import isthmus as ist
from isthmus.errors import GraphFormatError
from isthmus.graph.formats import format_of

TEXT = "c a road\nc\n\np sp 4 3\na 1 2 8\nc inside\n  a 4 1 3000000000\n \na 2 1 8\n"


@pytest.fixture
def write(tmp_path):
    def write(data, name="g.gr"):
        (tmp_path / name).write_bytes(data if isinstance(data, bytes) else data.encode())
        return tmp_path / name

    return write


def test_arcs(write, sized):
    expected = clean([(1, 2, 8), (4, 1, 3_000_000_000), (2, 1, 8)], range(1, 5))
    graph = ist.read(write(TEXT))
    assert_graph(graph, expected)
    assert graph.directed and graph.info()["weight_type"] == "int64" and graph.report.reader["format"] == "dimacs"
    sized(text_chunk=30)
    assert_graph(ist.read(write(TEXT)), expected)
    assert not ist.read(write(TEXT), weight="none").weighted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("c only\n", r"g.gr: expected a line 'p sp vertices arcs', found none"),
        ("p max 3 2\n", r"g.gr:1: expected 'p sp vertices arcs', got 'p max 3 2'"),
        ("p sp 3\n", r"g.gr:1: expected 'p sp vertices arcs'"),
        ("p sp 3 1\ne 1 2 3\n", r"g.gr:2: expected 'a source target weight', got 'e 1 2 3'"),
        ("p sp 3 1\na 1 2 3\nab 1 2 3\n", r"g.gr:3: expected 'a source target weight', got 'ab 1 2 3'"),
        ("p sp 3 1\np sp 3 1\n", r"g.gr:2: expected 'a source target weight', got 'p sp 3 1'"),
        ("p sp 3 1\na 1 2\n", r"g.gr:2: expected 'a source target weight', got 'a 1 2'"),
        ("p sp 3 1\na 1 4 1\n", r"g.gr:2: expected vertices from 1 to 3, got 'a 1 4 1'"),
        ("p sp 3 2\na 1 2 1\n", r"g.gr: holds 1 lines of edges, its header promises 2"),
        ("p sp 99999999999 0\n", r"g.gr: 19 bytes claim 99999999999 vertices"),
        ("p sp 3 1\na 1 2 -4\n", r"g.gr:2: expected a weight of at least 0"),
    ],
)
def test_what_is_wrong_is_named(write, text, message):
    with pytest.raises(GraphFormatError, match=message):
        ist.read(write(text))


def test_the_first_bytes_tell_dimacs_from_galois(write):
    assert format_of(write("c\np sp 1 0\n")) == "dimacs"
    assert format_of(write((1).to_bytes(8, "little") + bytes(24))) == "galois"
    assert format_of(write((2).to_bytes(8, "little") + bytes(24))) == "galois"
    expected = (
        r"g.gr: expected a DIMACS graph, text \(format='dimacs'\) or a Galois graph, binary \(format='galois'\), got "
    )
    with pytest.raises(GraphFormatError, match=expected + r"a file that begins with b'0 1\\n'"):
        ist.read(write("0 1\n"))
    with pytest.raises(GraphFormatError, match=expected + "an empty file"):
        ist.read(write(""))


def test_coordinates_are_no_edges(write):
    with pytest.raises(
        GraphFormatError, match=r"g.co: holds coordinates, not edges; read the .gr file, and .* isthmus.coordinates"
    ):
        ist.read(write("p aux sp co 1\nv 1 2 3\n", "g.co"))
