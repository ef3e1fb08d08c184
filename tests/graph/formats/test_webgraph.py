"""WebGraph's BV format, in files by a slow writer of our own; `graph/reading/bv_lists.py` decodes,
`graph/reading/bv_writer.py` writes.
"""

from __future__ import annotations

import errno
import hashlib
import os
import random
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from tests.bv import Bv, Coder, natural, similar_lists
from tests.naive import assert_graph, clean

import isthmus as ist
from isthmus.errors import BudgetError, GraphFormatError, OptionError, StoreError
from isthmus.graph.store import replacement

LISTS = similar_lists(60, 3)
VARIANTS = {
    "usual": Bv(),
    "no references": Bv(window=0),
    "no intervals": Bv(shortest=0),
    "wide window": Bv(window=50, shortest=2),
    "short intervals": Bv(window=2, shortest=1),
    "zeta 5": Bv(k=5),
    "all delta": Bv(flags=dict.fromkeys(("OUTDEGREES", "REFERENCES", "BLOCK_COUNT", "BLOCKS", "RESIDUALS"), "DELTA")),
    "gamma, unary": Bv(flags={"REFERENCES": "GAMMA", "BLOCK_COUNT": "UNARY", "RESIDUALS": "GAMMA", "OFFSETS": "DELTA"}),
    "nibbles": Bv(flags={"RESIDUALS": "NIBBLE"}),
    "Golomb": Bv(k=20, flags={"RESIDUALS": "GOLOMB"}),
    "Rust": Bv(rust=True, flags={"BLOCKS": "DELTA", "INTERVALS": "DELTA"}),
    "Rust, little-endian": Bv(rust=True, little=True),
    "Rust, further codes": Bv(
        rust=True,
        little=True,
        flags={"OUTDEGREES": "OMEGA", "BLOCKS": "PI1", "REFERENCES": "ZETA2", "INTERVALS": "PI2", "RESIDUALS": "PI3"},
    ),
}


def expected(lists):
    return clean([(u, v, None) for u, neighbours in enumerate(lists) for v in neighbours], range(len(lists)))


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants(tmp_path, variant):
    graph = ist.read(VARIANTS[variant].write(tmp_path / "g", LISTS))
    assert graph.directed
    assert graph.info()["ids"] == "dense"
    assert_graph(graph, expected(LISTS))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("variant", ["usual", "wide window", "Rust, further codes"])
def test_lists_that_straddle_blocks_and_pieces_of_the_file(tmp_path, sized, variant, seed):
    """Pieces of 16 bytes cut most lists, and blocks of 5 arcs have no room for them."""
    sized(block_edges=5, list_vertices=7, adjacency_chunk=9)
    lists = similar_lists(80, seed)
    lists[40] = list(range(80))
    graph = ist.ingest(VARIANTS[variant].write(tmp_path / "g", lists, seed), tmp_path / "g.isthmus", memory=1)
    assert_graph(graph, expected(lists))


@pytest.mark.parametrize("name", ["g", "g.graph", "g.properties", "g.offsets"])
@pytest.mark.parametrize("format", [None, "webgraph"])
def test_names(tmp_path, name, format):
    Bv().write(tmp_path / "g", LISTS)
    (tmp_path / "g.offsets").write_bytes(b"")
    graph = ist.read(tmp_path / name, format=format)
    assert graph.arcs == sum(map(len, LISTS))
    assert graph.report.reader == {"format": "webgraph"}


def test_other_formats_keep_their_endings(tmp_path):
    """A METIS graph has the same ending, a Graphalytics graph has properties."""
    (tmp_path / "g.graph").write_text("2 1\n2\n1\n")
    assert ist.read(tmp_path / "g.graph").edges == 1
    (tmp_path / "g.properties").write_text("graph.g.directed = true\n")
    assert ist.read(tmp_path / "g.graph").edges == 1
    (tmp_path / "g.e").write_text("1 2\n")
    (tmp_path / "g.v").write_text("1\n2\n")
    assert ist.read(tmp_path / "g.properties").report.reader["format"] == "graphalytics"


@pytest.mark.parametrize("lists", [[], [[]], [[], [], []], [[0]]], ids=len)
@pytest.mark.filterwarnings("ignore:.*no edges")
def test_small_graphs(tmp_path, lists):
    assert_graph(ist.read(Bv().write(tmp_path / "g", lists)), expected(lists))


def test_padding_is_allowed(tmp_path):
    path = Bv().write(tmp_path / "g", LISTS)
    path.write_bytes(path.read_bytes() + bytes(16))
    assert_graph(ist.read(path), expected(LISTS))


def test_options(tmp_path):
    path = Bv().write(tmp_path / "g", [[1], [0]])
    assert ist.read(path, directed=False, parallel="drop").edges == 1
    with pytest.raises(OptionError, match="vertices are numbered from 0; ids='string' does not apply"):
        ist.read(path, ids="string")
    with pytest.raises(OptionError, match=r"is a WebGraph graph; weight= does not apply"):
        ist.read(path, weight="w")


# ---- bad files


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"graphclass": "it.unimi.dsi.webgraph.EFGraph"},
            r"g.properties: graphclass: expected it.*BVGraph, got '.*EFGraph'",
        ),
        (
            {"graphclass": "x.BitStreamArcLabelledImmutableGraph", "underlyinggraph": "inner"},
            r"its graph without labels is 'inner'",
        ),
        ({"graphclass": None, "# graphclass": ""}, r"graphclass: expected .*, got none"),
        ({"version": 2}, r"version: expected 0 or 1, got '2'"),
        ({"version": None}, r"version: expected 0 or 1, got none"),
        ({"endianness": "middle"}, r"endianness: expected big or little, got 'middle'"),
        ({"nodes": None}, r"nodes: expected a whole number from 0 to \d+, got none"),
        ({"nodes": -1}, r"nodes: expected a whole number .* got '-1'"),
        ({"arcs": "many"}, r"arcs: expected a whole number .* got 'many'"),
        ({"windowsize": (1 << 16) + 1}, r"windowsize: expected a whole number from 0 to 65536, got '65537'"),
        ({"zetak": 0}, r"zetak: expected a whole number from 1 to"),
        (
            {"compressionflags": "RESIDUALS_SKEWED_GOLOMB"},
            r"expected codes such as .*; 'RESIDUALS_SKEWED_GOLOMB' is unknown",
        ),
        ({"compressionflags": "OUTDEGREES"}, r"'OUTDEGREES' is unknown"),
        (
            {"nodes": 1 << 40},
            r"g.graph: its properties promise 1099511627776 vertices, of a bit or more each; it has \d+ bytes",
        ),
        (
            {"arcs": 1 << 60},
            r"g.graph: \d+ bytes claim 1152921504606846976 arcs, expected at most 268435456; .* max_expansion=",
        ),
        ({"arcs": sum(map(len, LISTS)) + 1}, r"g.graph: holds \d+ arcs, its properties promise"),
        ({"arcs": 10}, r"has \d+ neighbours, with which there are more arcs than the 10 that the properties promise"),
        (
            {"nodes": 20, "arcs": sum(map(len, LISTS[:20]))},
            r"(end at byte \d+, the file at byte|a neighbour outside 0 to 19|20 vertices)",
        ),
    ],
)
def test_properties_that_do_not_fit(tmp_path, changes, message):
    path = Bv().write(tmp_path / "g", LISTS, **changes)
    tracemalloc.start()
    with pytest.raises(GraphFormatError, match=message):
        ist.read(path, format="webgraph")
    assert tracemalloc.get_traced_memory()[1] < 40 << 20
    tracemalloc.stop()


def test_missing_files(tmp_path):
    path = Bv().write(tmp_path / "g", LISTS)
    path.unlink()
    with pytest.raises(GraphFormatError, match=r"g.graph: no such file; .*g.properties needs it"):
        ist.read(tmp_path / "g")
    (tmp_path / "g.properties").unlink()
    with pytest.raises(GraphFormatError, match=r"g: no such file"):
        ist.read(tmp_path / "g")
    path.write_bytes(b"\x00\xff\x00")
    with pytest.raises(GraphFormatError, match=r"a WebGraph graph has g.properties beside it"):
        ist.read(path)
    with pytest.raises(GraphFormatError, match=r"g.properties: no such file; a WebGraph graph needs it"):
        ist.read(path, format="webgraph")


def codes(*numbers):
    """Numbers in gamma code; text is taken as it is."""
    return "".join(n if isinstance(n, str) else Coder().gamma(n) for n in numbers)


FIRST = codes(3, "1", 0) + Coder().zeta(natural(0), 3) + Coder().zeta(0, 3) * 2  # vertex 0: 0, 1, 2


@pytest.mark.parametrize(
    ("bits", "message"),
    [
        (
            codes(9),
            r"the list of vertex 0 has 9 neighbours, but the graph has 8 vertices; the file is damaged, or its "
            r".properties",
        ),
        (codes(2, "01"), r"the list of vertex 0 has a reference to a list that is not among the 7 before it"),
        (FIRST + codes(1, "001"), r"the list of vertex 1 has a reference"),
        (
            FIRST + codes(3, "01", 9),
            r"the list of vertex 1 has blocks of another list that are longer than that list, or than its own",
        ),
        (FIRST + codes(3, "01", 1, 4), r"vertex 1 has blocks"),
        (FIRST + codes(2, "01", 0), r"vertex 1 has blocks"),
        (FIRST + codes(3, "01", 2, 0, 3), r"vertex 1 has blocks"),
        (codes(4, "1", 2), r"vertex 0 has intervals that are longer than the list"),
        (codes(4, "1", 1, 0, 1), r"vertex 0 has intervals"),
        (codes(4, "1", 1, natural(5), 0), r"vertex 0 has a neighbour outside 0 to 7"),
        (codes(4, "1", 1, natural(-1), 0), r"vertex 0 has a neighbour outside"),
        (codes(1, "1", 0) + Coder().zeta(natural(-1), 3), r"vertex 0 has a neighbour outside"),
        (codes(1, "1", 0) + Coder().zeta(natural(8), 3), r"vertex 0 has a neighbour outside"),
        (codes(2, "1", 0) + Coder().zeta(natural(3), 3) + Coder().zeta(4, 3), r"vertex 0 has a neighbour outside"),
        (codes(5, "1", 1, 0, 0) + Coder().zeta(natural(2), 3), r"vertex 0 has a neighbour twice"),
        (FIRST + codes(4, "01", 0, 0) + Coder().zeta(natural(0), 3), r"vertex 1 has a neighbour twice"),
        (codes(1, "1", 0) + "0" * 300, r"vertex 0 has a neighbour outside"),
        ("0" * 400, r"vertex 0 has \d+ neighbours, but"),
        (codes(3, "1", 0) + Coder().zeta(natural(0), 3), r"ends inside the list of vertex 0; the file was truncated"),
        ("1" * 7 + codes(3), r"ends inside the list of vertex 7"),
        ("1" * 8 + "0" * 300, r"holds 0 arcs, its properties promise 64"),
    ],
)
def test_lists_that_make_no_sense(tmp_path, bits, message):
    (tmp_path / "g.graph").write_bytes(Coder().packed(bits))
    (tmp_path / "g.properties").write_text(Bv().properties(8, 64))
    with pytest.raises(GraphFormatError, match=f"g.graph: .*{message}"):
        ist.read(tmp_path / "g.graph")


def test_every_truncation_is_found(tmp_path):
    path = Bv().write(tmp_path / "g", LISTS)
    data = path.read_bytes()
    for size in range(8, len(data), 7):
        path.write_bytes(data[:size])
        with pytest.raises(GraphFormatError, match=r"truncated"):
            ist.read(path)


def test_bytes_behind_the_lists(tmp_path):
    path = Bv().write(tmp_path / "g", LISTS)
    path.write_bytes(path.read_bytes() + bytes(17))
    with pytest.raises(
        GraphFormatError, match=r"the lists of its 60 vertices end at byte \d+, the file at byte \d+; its .properties"
    ):
        ist.read(path)


def test_a_list_that_the_budget_has_no_room_for(tmp_path, sized):
    """Few bits can stand for very many neighbours: an interval, and lists that repeat it."""
    sized(least_block_memory=1000)
    path = Bv().write(tmp_path / "g", [list(range(9000))] + [[]] * 8999)
    with pytest.raises(
        BudgetError, match=r"vertex 0: its list and those of the 0 vertices before it take .*; raise memory="
    ):
        ist.read(path, memory="100KB")


# ---- export


@pytest.mark.parametrize("order", ["natural", "hub"])
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_written_is_read_back(tmp_path, sized, order, directed, seed):
    sized(block_edges=20, list_vertices=7, degree_vertices=5)
    lists = similar_lists(70, seed)
    lists[33] = list(range(5, 65))
    pairs = [(u, v) for u, neighbours in enumerate(lists) for v in neighbours]
    graph = ist.read(tuple(np.array(pairs).T), vertices=70, directed=directed, order=order, parallel="drop")
    graph.export(tmp_path / "out.graph", "webgraph", memory=1)
    back = ist.read(tmp_path / "out")
    both = pairs if directed else pairs + [(v, u) for u, v in pairs]
    assert_graph(back, clean([(u, v, None) for u, v in sorted(set(both))], range(70)))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.graph", "out.offsets", "out.properties"]


def offsets_of(path, count):
    """Where lists begin, by the file's definition: differences in gamma code."""
    bits = "".join(f"{byte:08b}" for byte in path.read_bytes())
    found, at = [], 0
    for _ in range(count):
        width = bits.index("1", at) - at
        at += width
        found.append(int(bits[at : at + width + 1], 2) - 1)
        at += width + 1
    return np.cumsum(found).tolist()


@pytest.mark.parametrize("seed", range(5))
def test_the_writer_uses_what_the_format_offers(tmp_path, seed):
    """Each list at its offset has the bits that the slow writer makes with some reference, and none has fewer."""
    lists = similar_lists(90, seed)
    pairs = np.array([(u, v) for u, neighbours in enumerate(lists) for v in neighbours])
    ist.read((pairs[:, 0], pairs[:, 1]), vertices=90).export(tmp_path / "g", "webgraph")
    bits = "".join(f"{byte:08b}" for byte in (tmp_path / "g.graph").read_bytes())
    offsets = offsets_of(tmp_path / "g.offsets", 91)
    assert offsets[0] == 0
    assert len(bits) - 8 < offsets[-1] <= len(bits)
    slow, chained, used = Bv(), [0] * 90, 0
    for x, (begin, end) in enumerate(pairwise(offsets)):
        ways = {
            slow.list_bits(x, lists, back): back
            for back in range(min(7, x), -1, -1)
            if back == 0 or chained[x - back] < 3
        }
        written = bits[begin:end]
        assert written in ways
        assert len(written) == min(map(len, ways))
        if ways[written] and lists[x]:
            chained[x] = chained[x - ways[written]] + 1
            used += 1
    assert used > 20


def test_a_real_graph_becomes_the_file_that_webgraph_wrote(data, tmp_path):
    """cnr-2000: digests of the published files without their padding, and the bits per link that they state."""
    graph = ist.read(data / "cnr-2000" / "edges.txt.gz")
    graph.export(tmp_path / "cnr", "webgraph")
    digests = [hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()[:16] for name in ("cnr.graph", "cnr.offsets")]
    assert digests == ["51dbd6a2d3630879", "d0af42340bf2859e"]
    assert "\nbitsperlink=2.897\n" in (tmp_path / "cnr.properties").read_text()
    back = ist.read(tmp_path / "cnr")
    assert all(np.array_equal(graph.store.read(name), back.store.read(name)) for name in ("out.offsets", "out.targets"))


def on_disk(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_failure_leaves_the_old_graph(tmp_path, monkeypatch):
    """The disk is full when the second of three files is synced."""
    ist.read(([0, 1], [1, 2])).export(tmp_path / "g", "webgraph")
    before, sync = on_disk(tmp_path), os.fsync

    def full(file):
        if ".g.offsets." in os.readlink(f"/proc/self/fd/{file}"):
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(file)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match=r"g: cannot write the graph: No space left on device$"):
        ist.read(([0, 5], [5, 2])).export(tmp_path / "g", "webgraph")
    assert on_disk(tmp_path) == before


@pytest.mark.parametrize("ending", [".graph", ".offsets", ".properties"])
@pytest.mark.parametrize("old", [True, False])
def test_old_and_new_files_are_not_read_as_one_graph(tmp_path, monkeypatch, ending, old):
    """One of the three renames fails, after the others before it."""
    if old:
        ist.read(([0, 1], [1, 2])).export(tmp_path / "g", "webgraph")
    put = replacement.put_into_place

    def broken(fresh, path):
        if path.suffix == ending:
            raise OSError(errno.EIO, "Input/output error")
        put(fresh, path)

    monkeypatch.setattr(replacement, "put_into_place", broken)
    removed = (
        r"cannot replace the graph: Input/output error; the old graph cannot be opened any more, g.properties "
        r"was removed; export it"
    )
    with pytest.raises(StoreError, match=removed if old else "cannot write the graph: Input/output error$"):
        ist.read(([0, 5], [5, 2])).export(tmp_path / "g", "webgraph")
    assert "g.properties" not in on_disk(tmp_path) and not any(name.endswith(".tmp") for name in on_disk(tmp_path))
    for name in ("g", "g.graph", "g.offsets"):
        with pytest.raises(GraphFormatError):
            ist.read(tmp_path / name)


def test_ids_become_numbers(tmp_path):
    with pytest.warns(
        ist.IsthmusWarning, match="the format has no ids; vertices are numbered from 0 in ascending order of their ids"
    ):
        ist.read([("b", "a"), ("c", "b")]).export(tmp_path / "g", "webgraph")
    assert_graph(ist.read(tmp_path / "g"), expected([[], [0], [1]]))


def test_what_the_format_cannot_hold(tmp_path):
    weighted = ist.read(([0, 1], [1, 0], [2, 3]))
    with pytest.raises(OptionError, match=r"has weights, the format has none; weights=False leaves them out"):
        weighted.export(tmp_path / "g", "webgraph")
    with pytest.raises(OptionError, match=r"has parallel edges, the format has none; ingest it with parallel='drop'"):
        ist.read(([0, 0], [1, 1])).export(tmp_path / "g", "webgraph")
    with pytest.raises(OptionError, match=r"a WebGraph graph is binary; expected a name without .gz or .zst"):
        weighted.export(tmp_path / "g.gz", "webgraph", weights=False)
    assert list(tmp_path.iterdir()) == []
    weighted.export(tmp_path / "g", "webgraph", weights=False)
    assert ist.read(tmp_path / "g").arcs == 2


def test_a_name_alone_is_still_metis(tmp_path):
    ist.read(([1], [2]), directed=False).export(tmp_path / "g.graph")
    assert (tmp_path / "g.graph").read_text().startswith("2 1")


@pytest.mark.parametrize("memory", ["1MB", None])
def test_lists_too_long_to_write(tmp_path, sized, memory):
    sized(least_block_memory=1000)
    graph = ist.read((np.zeros(20_000, int), np.arange(20_000)))
    if memory is None:
        graph.export(tmp_path / "g", "webgraph")
        assert ist.read(tmp_path / "g").arcs == 20_000
    else:
        with pytest.raises(
            BudgetError, match=r"vertex 0: 8 lists of this length, which are compared, take .*: raise memory="
        ):
            graph.export(tmp_path / "g", "webgraph", memory=memory)
        assert list(tmp_path.iterdir()) == []


def test_random_damage_is_read_or_refused(tmp_path):
    """Bits that are flipped give another graph, or an error of ours."""
    dice = random.Random(5)
    path = Bv().write(tmp_path / "g", LISTS)
    data = path.read_bytes()
    refused = 0
    for _ in range(300):
        changed = bytearray(data)
        for _ in range(dice.choice([1, 3])):
            changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
        path.write_bytes(changed)
        try:
            assert ist.read(path).vertices == 60
        except GraphFormatError:
            refused += 1
    assert refused > 200
