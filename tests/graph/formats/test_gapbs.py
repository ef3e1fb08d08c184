"""GAPBS .sg and .wsg files: read as written, and every lie of the header found before anything is allocated."""

from __future__ import annotations

import struct
import tracemalloc

import numpy as np
import pytest
from tests.naive import assert_graph, clean

import isthmus as ist
from isthmus.errors import GraphFormatError, OptionError


def side(edges, vertices, weighted):
    """Offsets and neighbours of one direction."""
    ordered = sorted(edges)
    degrees = np.bincount([u for u, _, _ in ordered], minlength=vertices) if ordered else np.zeros(vertices, int)
    offsets = np.concatenate([[0], np.cumsum(degrees)]).astype("<i8")
    entries = [x for _, v, w in ordered for x in ((v, w) if weighted else (v,))]
    return offsets.tobytes() + np.array(entries, "<i4").tobytes()


def serialized(edges, vertices, directed, weighted=False):
    """The bytes GAPBS would write."""
    out = edges if directed else sorted({(u, v, w) for a, b, w in edges for u, v in ((a, b), (b, a))})
    data = struct.pack("<?qq", directed, len(out), vertices) + side(out, vertices, weighted)
    if directed:
        data += side([(v, u, w) for u, v, w in edges], vertices, weighted)
    return data


EDGES = [(0, 1, 5), (0, 3, 2), (1, 3, 9), (4, 0, 1), (3, 4, 7)]


def expected(directed, weighted, vertices=6):
    return clean([(u, v, w if weighted else None) for u, v, w in EDGES], range(vertices), directed=directed)


@pytest.fixture
def write(tmp_path):
    def write(data, name="g.sg"):
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    return write


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("order", ["natural", "hub"])
def test_files(write, tmp_path, directed, weighted, order):
    path = write(serialized(EDGES, 6, directed, weighted), "g.wsg" if weighted else "g.sg")
    graph = ist.ingest(path, tmp_path / "g.isthmus", order=order)
    assert graph.directed == directed
    assert_graph(graph, expected(directed, weighted))
    assert graph.report.edges_read == len(EDGES)
    assert ist.verify(graph.path).ok
    assert not weighted or graph.info()["weight_type"] == "int32"


@pytest.mark.parametrize("memory", [1, "1GB"])
@pytest.mark.parametrize("threads", [1, 2])
def test_lists_that_straddle_blocks(write, tmp_path, sized, memory, threads):
    sized(block_edges=7, list_vertices=5)
    random = np.random.default_rng(4)
    pairs = sorted({(int(u), int(v)) for u, v in random.integers(0, 40, (200, 2))} | {(17, v) for v in range(40)})
    path = write(serialized([(u, v, 0) for u, v in pairs], 40, True))
    graph = ist.ingest(path, tmp_path / "g.isthmus", memory=memory, threads=threads)
    assert_graph(graph, clean([(u, v, None) for u, v in pairs], range(40)))


def test_a_directed_file_can_be_made_undirected(write):
    assert_graph(ist.read(write(serialized(EDGES, 6, True)), directed=False), expected(False, False))


def test_an_undirected_file_cannot_become_directed(write):
    with pytest.raises(
        OptionError, match="is undirected and holds each edge in both directions; it cannot become directed"
    ):
        ist.read(write(serialized(EDGES, 6, False)), directed=True)


@pytest.mark.parametrize("vertices", [0, 1, 4])
def test_no_edges(write, vertices):
    graph = ist.read(write(serialized([], vertices, False)))
    assert (graph.vertices, graph.edges) == (vertices, 0)


# ---- bad files


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("name", ["g.sg", "g.wsg"])
@pytest.mark.parametrize("keep", [0, 1, 16])
def test_too_short_for_a_header(write, directed, name, keep):
    with pytest.raises(GraphFormatError, match=rf"{name}: {keep} bytes, expected a header of 17"):
        ist.read(write(serialized(EDGES, 6, directed, name == "g.wsg")[:keep], name))


@pytest.mark.parametrize("change", [-100, -4, -1, 1, 4])
def test_a_file_of_another_size_than_its_header_says(write, tmp_path, change):
    whole = serialized(EDGES, 6, True)
    path = write(whole[:change] if change < 0 else whole + bytes(change))
    promise = rf"g.sg: the header promises 6 vertices and 5 arcs, \d+ bytes; the file has {len(whole) + change}"
    with pytest.raises(GraphFormatError, match=promise):
        ist.ingest(path, tmp_path / "g.isthmus")
    assert [p.name for p in tmp_path.iterdir()] == ["g.sg"]


def test_a_weighted_file_read_as_unweighted(write):
    with pytest.raises(GraphFormatError, match="the header promises"):
        ist.read(write(serialized(EDGES, 6, True, weighted=True), "g.sg"))


@pytest.mark.parametrize(
    ("arcs", "vertices"),
    [(2**40, 6), (5, 2**40), (2**62, 2**62), (-1, 6), (5, -1), (-(2**63), 2**63 - 1), (2**63 - 1, 2**63 - 1)],
)
def test_a_header_that_claims_more_than_the_file_holds(write, arcs, vertices):
    data = struct.pack("<?qq", False, arcs, vertices) + serialized(EDGES, 6, False)[17:]
    path = write(data)
    tracemalloc.start()
    try:
        with pytest.raises(GraphFormatError, match=f"the header promises {vertices} vertices and {arcs} arcs"):
            ist.read(path)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_a_first_byte_that_is_no_truth(write):
    with pytest.raises(GraphFormatError, match=r"expected 0 or 1 in the first byte \(directed\), got 7"):
        ist.read(write(b"\x07" + serialized(EDGES, 6, True)[1:]))


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ([0, 2, 1, 3, 4, 5, 5], "vertices 0 to 5 do not ascend within 0 to 5"),
        ([1, 2, 3, 3, 4, 5, 5], "do not ascend"),
        ([0, 2, 3, 3, 4, 5, 9], "do not ascend"),
        ([0, -1, 3, 3, 4, 5, 5], "do not ascend"),
        ([0, 2, 3, 3, 4, 4, 4], "the offsets end at 4, the header promises 5 arcs"),
        ([0, 2**63 - 1, -(2**63), -1, 3, 4, 5], "do not ascend"),  # differences of these overflow
    ],
)
def test_offsets_that_make_no_sense(write, offsets, message):
    data = bytearray(serialized(EDGES, 6, True))
    data[17 : 17 + 56] = np.array(offsets, "<i8").tobytes()
    with pytest.raises(GraphFormatError, match=f"g.sg: .*{message}"):
        ist.read(write(bytes(data)))


@pytest.mark.parametrize("target", [6, -1, 2**31 - 1])
def test_a_target_that_is_no_vertex(write, target):
    data = bytearray(serialized(EDGES, 6, True))
    data[17 + 56 + 8 : 17 + 56 + 12] = struct.pack("<i", target)
    with pytest.raises(GraphFormatError, match=r"g.sg: a target of the arcs from \d+ on is outside 0 to 5"):
        ist.read(write(bytes(data)))


@pytest.mark.parametrize("weighted", [True, False])
def test_an_undirected_file_with_an_edge_in_one_direction_only(write, weighted):
    one_way = struct.pack("<?qq", False, 3, 3) + side([(0, 1, 4), (1, 0, 4), (1, 2, 4)], 3, weighted)
    with pytest.raises(GraphFormatError, match="says undirected, but some edges are stored in one direction only"):
        ist.read(write(one_way, "g.wsg" if weighted else "g.sg"))


def test_an_undirected_edge_with_two_weights(write):
    data = struct.pack("<?qq", False, 2, 2) + side([(0, 1, 4), (1, 0, 5)], 2, True)
    with pytest.raises(GraphFormatError, match="in one direction only"):
        ist.read(write(data, "g.wsg"))


def test_negative_weights(write):
    path = write(serialized([(0, 1, -3)], 2, True, weighted=True), "g.wsg")
    with pytest.raises(GraphFormatError, match="row 0: expected a weight of at least 0"):
        ist.read(path)
    assert ist.read(path, allow_negative=True).edge_weights(0, 1).tolist() == [-3]


@pytest.mark.parametrize(
    "options", [{"weight": 3}, {"source": 1}, {"header": True}, {"vertices": 9}, {"ids": "string"}]
)
def test_options_without_a_meaning_here(write, options):
    with pytest.raises(OptionError, match="does not apply"):
        ist.read(write(serialized(EDGES, 6, True)), **options)


def test_a_folder_is_no_graph(tmp_path):
    (tmp_path / "g.sg").mkdir()
    with pytest.raises(GraphFormatError, match=r"g.sg: "):
        ist.read(tmp_path / "g.sg")
