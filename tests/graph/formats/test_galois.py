"""Galois binary graphs, versions 1 and 2."""

from __future__ import annotations

import struct
import tracemalloc

import numpy as np
import pytest
from tests.naive import assert_graph, clean

import isthmus as ist
from isthmus.errors import GraphFormatError, OptionError

EDGES = [(0, 1, 5), (0, 3, 2), (1, 3, 9), (4, 0, 1), (3, 4, 7)]


def galois(edges, vertices, version=1, dtype=None):
    """The bytes that Galois would write."""
    ordered = sorted(edges)
    ends = np.cumsum(np.bincount([u for u, _, _ in ordered], minlength=vertices)).astype("<u8")
    targets = np.array([v for _, v, _ in ordered], "<u4" if version == 1 else "<u8").tobytes()
    data = np.array([w for _, _, w in ordered], dtype).tobytes() if dtype else b""
    head = struct.pack("<4Q", version, np.dtype(dtype).itemsize if dtype else 0, vertices, len(edges))
    return head + ends.tobytes() + targets + bytes(-len(targets) % 8) + data


@pytest.fixture
def write(tmp_path):
    def write(data, name="g.gr"):
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    return write


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("dtype", [None, "<i4", "<i8", "<f4", "<f8", "<u4"])
@pytest.mark.parametrize("edges", [EDGES, EDGES[:4], []], ids=len)
def test_files(write, version, dtype, edges):
    own = {"edge_type": np.dtype(dtype).name} if dtype else {}
    graph = ist.read(write(galois(edges, 6, version, dtype)), **own)
    assert_graph(graph, clean([(u, v, w if dtype else None) for u, v, w in edges], range(6)))
    assert not dtype or graph.info()["weight_type"] == (
        "float64" if "f" in dtype else "int64" if dtype == "<i8" else "int32"
    )


def test_without_a_type_data_are_whole_numbers_and_a_note_says_so(write):
    with pytest.warns(
        ist.IsthmusWarning, match=r"4 bytes of data for each edge are read as int32; edge_type=float32 reads floats"
    ):
        graph = ist.read(write(galois(EDGES, 5, dtype="<i4")))
    assert graph.edge_weights(1, 3).tolist() == [9]
    assert not ist.read(write(galois(EDGES, 5, dtype="<i4")), weight="none").weighted


@pytest.mark.parametrize("threads", [1, 2])
def test_lists_that_straddle_blocks(write, tmp_path, sized, threads):
    sized(block_edges=7, list_vertices=5)
    pairs = sorted(
        {(int(u), int(v)) for u, v in np.random.default_rng(4).integers(0, 40, (200, 2))} | {(17, v) for v in range(40)}
    )
    graph = ist.ingest(
        write(galois([(u, v, 0) for u, v in pairs], 40)), tmp_path / "g.isthmus", memory=1, threads=threads
    )
    assert_graph(graph, clean([(u, v, None) for u, v in pairs], range(40)))


def changed(at, value, data=None):
    data = bytearray(data or galois(EDGES, 5, dtype="<i4"))
    data[at : at + 8] = value.to_bytes(8, "little")
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x01" + bytes(20), r"g.gr: 21 bytes, expected a header of 32"),
        (changed(0, 3), r"g.gr: expected version 1 or 2 in the first 8 bytes, got 3"),
        (changed(16, 6), r"g.gr: the header promises 6 vertices and 5 arcs, 124 bytes; the file has 116"),
        (changed(24, 1 << 60), r"g.gr: the header promises 5 vertices and 1152921504606846976 arcs"),
        (galois(EDGES, 5)[:-1], r"g.gr: the header promises"),
        (changed(32, 99), r"g.gr: the offsets of vertices 0 to 4 do not ascend within 0 to 5"),
        (changed(64, 4), r"g.gr: the offsets end at 4, the header promises 5 arcs"),
        (changed(72, 5 << 32 | 1), r"g.gr: a target of the arcs from 1 on is outside 0 to 4"),
        (galois(EDGES, 5, dtype="<i2"), r"g.gr: 2 bytes of data for each edge, expected 4 or 8"),
        (galois([(0, 1, -3)], 2, dtype="<i4"), r"g.gr: row 0: expected a weight of at least 0"),
    ],
)
def test_lies_are_found(write, data, message):
    with pytest.raises(GraphFormatError, match=message):
        ist.read(write(data), format="galois")


def test_sizes_are_checked_before_memory_is_taken(write):
    path = write(struct.pack("<4Q", 1, 0, 1 << 33, 1 << 40))
    tracemalloc.start()
    with pytest.raises(GraphFormatError, match="the header promises"):
        ist.read(path)
    assert tracemalloc.get_traced_memory()[1] < 10 << 20
    tracemalloc.stop()


def test_options(write):
    path = write(galois(EDGES, 5, dtype="<i4"))
    with pytest.raises(OptionError, match=r"edge_type: expected one of int32, uint32, .*, got 'int16'"):
        ist.read(path, edge_type="int16")
    with pytest.raises(GraphFormatError, match="4 bytes of data for each edge, expected 8"):
        ist.read(path, edge_type="float64")
    with pytest.raises(OptionError, match="vertices are numbered from 0; ids='string' does not apply"):
        ist.read(path, ids="string")
    with pytest.raises(OptionError, match="expected 'none' or None, got 'w'"):
        ist.read(path, weight="w")
