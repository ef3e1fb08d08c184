"""Ligra's graphs, and that their ending is shared with adjacency lists. They are read by
`graph/reading/text_words.py`.
"""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from tests.naive import assert_graph, clean

import isthmus as ist
from isthmus.errors import GraphFormatError
from isthmus.graph.formats import format_of

EDGES = [(0, 1, 5), (0, 3, 2), (1, 3, 9), (4, 0, 1), (3, 4, 7)]


def ligra(edges, vertices, weighted, separator="\n"):
    ordered = sorted(edges)
    begins = np.searchsorted([u for u, _, _ in ordered], np.arange(vertices)).tolist()
    numbers = [
        vertices,
        len(edges),
        *begins,
        *(v for _, v, _ in ordered),
        *((w for _, _, w in ordered) if weighted else ()),
    ]
    return separator.join(["WeightedAdjacencyGraph" if weighted else "AdjacencyGraph", *map(str, numbers)])


@pytest.fixture
def write(tmp_path):
    def write(text, name="g.adj"):
        (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return tmp_path / name

    return write


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("separator", ["\n", " ", "\r\n", " \n\t"])
@pytest.mark.parametrize("name", ["g.adj", "g.ligra.gz", "noending"])
def test_files(write, weighted, separator, name):
    graph = ist.read(write(ligra(EDGES, 6, weighted, separator), name))
    assert_graph(graph, clean([(u, v, w if weighted else None) for u, v, w in EDGES], range(6)))


@pytest.mark.parametrize("memory", [1, "1GB"])
@pytest.mark.parametrize("separator", ["\n", " "])
def test_arrays_that_straddle_blocks(write, tmp_path, sized, memory, separator):
    sized(block_edges=7, list_vertices=5, adjacency_chunk=64)
    random = np.random.default_rng(4)
    edges = [
        (int(u), int(v), int(w))
        for (u, v), w in zip(random.integers(0, 40, (200, 2)), random.integers(0, 1 << 40, 200), strict=True)
    ]
    edges = sorted({(u, v): (u, v, w) for u, v, w in edges}.values())
    graph = ist.ingest(write(ligra(edges, 40, True, separator)), tmp_path / "g.isthmus", memory=memory)
    assert_graph(graph, clean(edges, range(40)))
    assert graph.info()["weight_type"] == "int64"


def test_the_first_word_tells_it_from_adjacency_lists(write):
    assert format_of(write("AdjacencyGraph\n1\n0\n0\n")) == "ligra"
    assert format_of(write("1 2 3\n")) == "adjacency"
    with pytest.raises(
        GraphFormatError, match=r"g.ligra:1: expected AdjacencyGraph or WeightedAdjacencyGraph, got b'Graph'"
    ):
        ist.read(write("Graph\n1\n", "g.ligra"))


def test_no_vertices(write):
    assert ist.read(write("AdjacencyGraph\n0\n0\n")).vertices == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("AdjacencyGraph\n2\n", r"g.adj: ends 1 numbers too early; the header promises more"),
        ("AdjacencyGraph\n2\n1\n0\nx\n1\n", r"g.adj:5: expected a whole number, got 'x'"),
        ("AdjacencyGraph\n2\n1\n0\n1.5\n1\n", r"g.adj:5: expected a whole number, got '1.5'"),
        ("AdjacencyGraph\n2\n1\n0\n99999999999999999999\n1\n", r"g.adj:5: expected a number that fits 63 bits"),
        ("AdjacencyGraph\n2\n2\n0\n1\n1\n", r"g.adj: ends 1 numbers too early"),
        ("AdjacencyGraph\n2\n1\n0\n1\n1\n1\n", r"g.adj: goes on after the numbers that its header promises, with 1"),
        ("AdjacencyGraph\n2\n1\n1\n0\n1\n", r"g.adj: the offsets of vertices 0 to 1 do not ascend within 0 to 1"),
        ("AdjacencyGraph\n2\n1\n0\n2\n1\n", r"g.adj: the offsets of vertices 0 to 1 do not ascend within 0 to 1"),
        ("AdjacencyGraph\n2\n1\n0\n0\n2\n", r"g.adj: a target of the arcs from 0 on is outside 0 to 1"),
        ("AdjacencyGraph\n0\n1\n0\n", r"g.adj: the header promises 1 arcs, but no vertex has them"),
        ("AdjacencyGraph\n-1\n1\n0\n", r"g.adj: the header promises -1 vertices and 1 arcs"),
        (
            "AdjacencyGraph\n9999999999\n1\n",
            r"g.adj: .* promises 9999999999 vertices and 1 arcs, 20000000000 bytes or more",
        ),
        ("WeightedAdjacencyGraph\n2\n1\n0\n1\n1\n-5\n", r"g.adj: row 0: expected a weight of at least 0"),
    ],
)
def test_what_is_wrong_is_named(write, text, message):
    with pytest.raises(GraphFormatError, match=message):
        ist.read(write(text))


def test_a_word_without_end(write, sized):
    sized(adjacency_chunk=64)
    with pytest.raises(GraphFormatError, match=r"g.adj: a word is longer than 64 bytes; expected numbers"):
        ist.read(write("AdjacencyGraph\n2\n1\n" + "1" * 500))
