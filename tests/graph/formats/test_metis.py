"""METIS .graph files, parsed by `kernels/text/number_text.py`."""

from __future__ import annotations

import numpy as np
import pytest
from tests.naive import assert_graph, clean

import isthmus as ist
from isthmus.errors import GraphFormatError, OptionError

PAIRS = [(1, 2, 5), (1, 3, 1), (2, 3, 4), (5, 1, 2)]


def metis(edges, vertices, weighted=False, own=(), code=None):
    lines = [f"{vertices} {len(edges)}{f' {code}' if code else ''}"]
    for v in range(1, vertices + 1):
        near = [(b, w) for a, b, w in edges if a == v] + [(a, w) for a, b, w in edges if b == v]
        lines.append(" ".join(map(str, [*own, *(x for n, w in near for x in ((n, w) if weighted else (n,)))])))
    return "\n".join(lines) + "\n"


@pytest.fixture
def write(tmp_path):
    def write(text, name="g.graph"):
        (tmp_path / name).write_bytes(text.encode())
        return tmp_path / name

    return write


@pytest.mark.parametrize(
    ("own", "weighted", "code"),
    [
        ((), False, None),
        ((), False, "0"),
        ((), True, "1"),
        ((), True, "001"),
        ((7,), True, "011"),
        ((7,), False, "10"),
        ((3, 7, 8, 9), True, "111 3"),
        ((3,), False, "100"),
    ],
)
@pytest.mark.parametrize("chunk", [16, 2 << 20])
def test_files(write, sized, own, weighted, code, chunk):
    sized(adjacency_chunk=chunk, text_chunk=max(chunk, 64))
    graph = ist.read(write(metis(PAIRS, 5, weighted, own, code)))
    assert not graph.directed
    assert_graph(graph, clean([(u, v, w if weighted else None) for u, v, w in PAIRS], range(1, 6), directed=False))


def test_comments_blank_lines_and_line_ends(write):
    text = "% head\n%\n3 1\r\n% a comment is no vertex\n 2\t\r\n1\n\n\n\n"
    assert_graph(ist.read(write(text)), clean([(1, 2, None)], range(1, 4), directed=False))


def test_long_lines(write, tmp_path, sized):
    sized(adjacency_chunk=50)
    edges = [(1, v, v) for v in range(2, 301)]
    graph = ist.ingest(write(metis(edges, 300, True, code="1")), tmp_path / "g.isthmus", memory=1)
    assert_graph(graph, clean(edges, directed=False))
    assert ist.bfs(graph, 1).values.max() == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"g.graph: expected a line 'vertices edges', found none"),
        ("3\n", r"g.graph:1: expected 'vertices edges \[format \[constraints\]\]', got '3'"),
        ("%\n3 1 2\n", r"g.graph:2: expected 'vertices edges"),
        ("\x00\x01\x02", r"g.graph:1: expected 'vertices edges"),
        ("2 1\n2\n1 x\n", r"g.graph:3: expected whole numbers that are not negative, got '1 x'"),
        ("2 1\n-2\n1\n", r"g.graph:2: expected whole numbers that are not negative, got '-2'"),
        ("2 1\n3\n1\n", r"g.graph:2: expected neighbours from 1 to 2, got '3'"),
        ("%\n2 1\n%\n0\n1\n", r"g.graph:4: expected neighbours from 1 to 2, got '0'"),
        ("2 1\n2\n1\n1\n", r"g.graph:4: expected no more than 2 lines of vertices, got '1'"),
        ("3 1\n2\n1\n", r"g.graph: has 2 lines of vertices, its header promises 3"),
        ("2 1 1\n2\n1 5\n", r"g.graph:2: expected pairs of a neighbour and a weight, got '2'"),
        ("2 1 10 2\n1\n1 1 1\n", r"g.graph:2: expected 2 numbers of the vertex, then neighbours, got '1'"),
        ("2 1\n2\n\n", r"g.graph: some edges are listed at one of their ends only"),
        ("2 1 1\n2 5\n1 6\n", r"g.graph: some edges are listed at one of their ends only"),
        ("2 2\n2\n1\n", r"g.graph: holds 1 edges, its header promises 2"),
        ("2 1\n1 2\n1\n", r"g.graph: expected no vertex among its own neighbours, got 1"),
        ("99999999999 1\n2\n1\n", r"g.graph: 18 bytes claim 99999999999 vertices"),
    ],
)
def test_what_is_wrong_is_named(write, text, message):
    with pytest.raises(GraphFormatError, match=message):
        ist.read(write(text))


def test_a_webgraph_without_its_properties(write):
    with pytest.raises(
        GraphFormatError, match=r"expected 'vertices edges .*; a WebGraph graph has g.properties beside it"
    ):
        ist.read(write("\x17\x00\x00\x11"))


def test_it_cannot_become_directed(write):
    with pytest.raises(OptionError, match="is undirected and holds each edge in both directions"):
        ist.read(write(metis(PAIRS, 5)), directed=True)


def test_weights_of_64_bits(write):
    graph = ist.read(write(metis([(1, 2, 1 << 40)], 2, True, code="1")))
    assert graph.edge_weights(2, 1).tolist() == [1 << 40]
    assert graph.info()["weight_type"] == "int64"
    assert np.issubdtype(graph.edge_weights(1, 2).dtype, np.integer)
