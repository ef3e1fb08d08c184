"""Subway's .bcsr and .bwcsr files."""

from __future__ import annotations

import numpy as np
import pytest
from tests.naive import assert_graph, clean

import isthmus as ist
from isthmus.errors import GraphFormatError

EDGES = [(0, 1, 5), (0, 3, 2), (1, 3, 9), (4, 0, 1), (3, 4, 7)]


def subway(edges, vertices, weighted):
    """The bytes that Subway's converter would write."""
    ordered = sorted(edges)
    begins = np.searchsorted([u for u, _, _ in ordered], np.arange(vertices))
    entries = [x for _, v, w in ordered for x in ((v, w) if weighted else (v,))]
    return b"".join(np.array(part, "<u4").tobytes() for part in ([vertices, len(edges)], begins, entries))


@pytest.fixture
def write(tmp_path):
    def write(data, name="g.bcsr"):
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    return write


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("order", ["natural", "hub"])
@pytest.mark.parametrize("edges", [EDGES, []], ids=len)
def test_files(write, sized, weighted, order, edges):
    sized(block_edges=2, list_vertices=2)
    graph = ist.read(write(subway(edges, 6, weighted), "g.bwcsr" if weighted else "g.bcsr"), order=order)
    assert_graph(graph, clean([(u, v, w if weighted else None) for u, v, w in edges], range(6)))


def test_weights_beyond_31_bits_need_a_wider_type(write):
    path = write(subway([(0, 1, 4_000_000_000)], 2, True), "g.bwcsr")
    with pytest.raises(GraphFormatError, match="a weight of 4000000000 does not fit int32"):
        ist.read(path)
    assert ist.read(path, weight_dtype="int64").edge_weights(0, 1).tolist() == [4_000_000_000]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x01\0\0", r"g.bcsr: 3 bytes, expected a header of 8"),
        (subway(EDGES, 5, True), r"g.bcsr: the header promises 5 vertices and 5 arcs, 48 bytes; the file has 68"),
        (
            np.array([2, 2, 1, 0, 0, 1], "<u4").tobytes(),
            r"g.bcsr: the offsets of vertices 0 to 1 do not ascend within 0 to 2",
        ),
        (
            np.array([2, 2, 0, 3, 0, 1], "<u4").tobytes(),
            r"g.bcsr: the offsets of vertices 0 to 1 do not ascend within 0 to 2",
        ),
        (np.array([2, 2, 0, 1, 0, 2], "<u4").tobytes(), r"g.bcsr: a target of the arcs from 1 on is outside 0 to 1"),
        (np.array([0, 1, 7], "<u4").tobytes(), r"g.bcsr: the offsets end at 0, the header promises 1 arcs"),
    ],
)
def test_lies_are_found(write, data, message):
    with pytest.raises(GraphFormatError, match=message):
        ist.read(write(data))
