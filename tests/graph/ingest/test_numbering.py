"""Ids to numbers: bitmap, table, segments; the edges that wait, and the names of strings."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isthmus.errors import GraphFormatError
from isthmus.graph.ingest import names, numbering
from isthmus.graph.ingest.edges import EdgeBlock, EdgeSource, Waiting
from isthmus.graph.ingest.names import HashCollision, Names, encode, hashes
from isthmus.graph.ingest.numbering import Bitmap, Dense, Segment, Table, groups, number_dtype, number_integers
from isthmus.memory import Budget
from isthmus.threads import Pool

ROOMY, TIGHT = 2**30, 1


@pytest.fixture
def pool():
    with Pool(2) as pool:
        yield pool


class Source(EdgeSource):
    """Just enough of a source to number its ids."""

    name = "test"

    def __init__(self, signed=False, declares=False):
        self.signed, self.declares_vertices = signed, declares

    def blocks(self, pool):
        yield from ()


class Sections:
    def __init__(self):
        self.parts: dict[str, list] = {}

    def section(self, name, dtype, at_most):
        self.parts[name] = [np.empty(0, dtype)]

    def append(self, name, array):
        self.parts[name].append(array)

    def whole(self, name):
        return np.concatenate(self.parts[name])


def keys_of(values):
    return np.array([int(value) % 2**64 for value in values], np.uint64)


def waiting_for(blocks, memory, folder):
    edges = Waiting(Budget(memory), folder)
    for sources, targets in blocks:
        edges.add(EdgeBlock(keys_of(sources), keys_of(targets)))
    return edges


def number(folder, pool, blocks, declared=None, memory=ROOMY):
    """(kind, ids written, numbered edges) of number_integers."""
    values = [value for block in blocks for column in block for value in column] + list(declared or [])
    source = Source(signed=any(value < 0 for value in values), declares=declared is not None)
    budget = Budget(memory)
    edges = waiting_for(blocks, memory, folder)
    listed = waiting_for([(declared, [])] if declared else [], memory, folder)
    extent = (min(values), max(values)) if values else (0, -1)
    found = number_integers(source, edges, listed, extent, budget, folder, pool)
    sections = Sections()
    found.write(sections)
    written = sections.whole("ids.values").tolist() if sections.parts else list(range(found.vertices))
    numbered = [(b.sources.tolist(), b.targets.tolist()) for b in found.numbered(edges, pool)]
    found.close()
    edges.close()
    listed.close()
    assert budget.taken == 0
    return found, written, numbered


ID = st.integers(0, 9) | st.integers(0, 10**5) | st.integers(0, 2**63 - 1)
SIGNED = st.integers(-9, 9) | st.integers(-(2**63), 2**63 - 1)
HUGE = st.integers(0, 9) | st.integers(2**63, 2**64 - 1)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), ids=st.sampled_from([ID, SIGNED, HUGE]), memory=st.sampled_from([ROOMY, TIGHT]))
def test_numbers_follow_ascending_ids(tmp_path, pool, data, ids, memory):
    pairs = data.draw(st.lists(st.lists(st.tuples(ids, ids), min_size=1, max_size=12), max_size=4))
    blocks = [tuple(zip(*block, strict=True)) for block in pairs]
    found, written, numbered = number(tmp_path, pool, blocks, memory=memory)
    expected = sorted({value for block in blocks for column in block for value in column})
    rank = {value: position for position, value in enumerate(expected)}
    assert written == expected
    assert found.vertices == len(expected)
    assert numbered == [([rank[u] for u in sources], [rank[v] for v in targets]) for sources, targets in blocks]
    assert (found.kind == "dense") == (expected == list(range(len(expected))))


@pytest.mark.parametrize(
    ("ids", "way"),
    [
        ([0, 1, 2], Bitmap),
        ([10, 1_000_000], Bitmap),
        ([2**64 - 2, 2**64 - 1], Bitmap),
        ([0, 1 << 40], Table),
        ([-(2**63), 2**63 - 1], Table),
    ],
)
def test_compact_ids_take_the_bitmap_and_sparse_ones_the_table(tmp_path, pool, ids, way):
    assert type(number(tmp_path, pool, [(ids, ids)])[0]) is way


@pytest.mark.parametrize("memory", [ROOMY, TIGHT])
@pytest.mark.parametrize("declared", [[1, 2, 3], [1, 2, 2**40], [-5, 1, 2], [-(2**60), 1, 2]])
@pytest.mark.parametrize("wrong", [7, 2**41, -7])
def test_a_vertex_that_was_not_declared(tmp_path, pool, memory, declared, wrong):
    with pytest.raises(
        GraphFormatError, match=f"test: an edge names vertex {wrong}, which the vertex file does not list"
    ):
        number(tmp_path, pool, [([1, 2], [2, wrong])], declared, memory)


def test_declared_vertices_without_edges_are_numbered(tmp_path, pool):
    assert number(tmp_path, pool, [([4], [6])], [2, 4, 6, 8])[1:] == ([2, 4, 6, 8], [([1], [2])])


def test_dense_numbers_are_checked():
    dense = Dense(5, "test")
    block = EdgeBlock(np.array([0, 4], np.uint32), np.array([4, 0], np.uint32))
    assert dense.number(block) is block
    with pytest.raises(GraphFormatError, match="test: expected ids from 0 to 4, got 5"):
        dense.number(EdgeBlock(np.array([0], np.uint32), np.array([5], np.uint32)))
    with pytest.raises(GraphFormatError, match="expected ids from 0 to 4, got -3"):
        dense.check((-3, 2))


def test_number_dtype_at_the_edge_of_32_bits():
    assert number_dtype(2**32) is np.uint32
    assert number_dtype(2**32 + 1) is np.uint64


def test_a_table_in_segments_is_the_table_in_one(tmp_path, pool, monkeypatch):
    """Parts on disk, read by and by, past blocks that come by and by."""
    random = np.random.default_rng(6)
    keys = np.unique(random.integers(0, 2**63, 3000).astype(np.uint64))
    blocks = [random.choice(keys, (2, 100)) for _ in range(10)]
    loads = []
    monkeypatch.setattr(numbering, "Segment", lambda *args: loads.append(args[0].size) or Segment(*args))
    results = []
    for memory in (ROOMY, TIGHT):
        table = Table("int64", 0, Budget(memory), tmp_path, "test")
        for at in range(0, keys.size, 500):
            table.append(keys[at : at + 500])
        loads.clear()
        edges = waiting_for(blocks, memory, tmp_path)
        results.append([(b.sources.tolist(), b.targets.tolist()) for b in table.numbered(edges, pool)])
        assert len(loads) == (1 if memory == ROOMY else 10 * 6)
        table.close()
    assert results[0] == results[1]
    assert results[0] == [tuple(np.searchsorted(keys, column).tolist() for column in block) for block in blocks]


def test_a_table_that_outgrows_memory_leaves_it_altogether(tmp_path, pool):
    keys = np.arange(0, 10**12, 10**9, dtype=np.uint64)
    budget = Budget(3 * 100 * Table.BYTES_PER_KEY * 2)
    table = Table("int64", 0, budget, tmp_path, "test")
    taken = []
    for at in range(0, keys.size, 100):
        table.append(keys[at : at + 100], np.arange(at, at + 100, dtype=np.uint32)[::-1])
        taken.append(budget.taken > 0)
    assert taken == [True, True] + [False] * 8  # ranks take a third more
    edges = waiting_for([(keys[[5, 999]], keys[[100, 0]])], ROOMY, tmp_path)
    block = next(table.numbered(edges, pool))
    assert (block.sources.tolist(), block.targets.tolist()) == ([94, 900], [199, 99])
    table.close()
    edges.close()


@settings(max_examples=60, deadline=None)
@given(
    table=st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 50), max_size=60, unique=True),
    wanted=st.lists(st.integers(0, 60), max_size=20),
)
def test_segments_find_what_they_have_and_nothing_else(table, wanted):
    table = sorted(table)
    keys = np.array([*wanted, *table], np.uint64)
    out = np.full(keys.size, 999_999, np.uint64)
    found = Segment(np.array(table, np.uint64), None, 100).find(keys, np.uint64(0), out)
    expected = [100 + table.index(int(key)) if int(key) in table else 999_999 for key in keys]
    assert out.tolist() == expected
    assert found == sum(value != 999_999 for value in expected)


@pytest.mark.parametrize(
    ("room", "expected"), [(0, [[1], [2], [3]]), (3, [[1, 2], [3]]), (5, [[1, 2], [3]]), (6, [[1, 2, 3]])]
)
def test_groups_stay_within_their_room(room, expected):
    assert list(groups([1, 2, 3], room, lambda item: item)) == expected


# ---- edges that wait


@pytest.mark.parametrize("memory", [ROOMY, TIGHT])
@pytest.mark.parametrize("weights", [None, np.array([0.5, 1.5, 2.5])])
@pytest.mark.parametrize(
    "targets", [np.array([4, 5, 6], np.uint32), np.array([2**40, 5, 2**64 - 1], np.uint64), np.empty(0, np.uint64)]
)
def test_waiting_blocks_come_back_as_they_were(tmp_path, memory, weights, targets):
    """Columns may differ in width, and ids without edges have no targets."""
    budget = Budget(memory)
    waiting = Waiting(budget, tmp_path)
    sources = np.array([1, 2, 3], np.uint32)
    for _ in range(3):
        waiting.add(EdgeBlock(sources, targets, weights))
    assert (len(waiting), waiting.edges, waiting.size(1), waiting.spilled) == (3, 9, 3, memory == TIGHT)
    for index in range(3):
        block = waiting.load(index)
        assert block.sources.tolist() == [1, 2, 3] and block.sources.dtype == np.uint32
        assert block.targets.tolist() == targets.tolist() and block.targets.dtype == targets.dtype
        assert (block.weights is None) if weights is None else (block.weights.tolist() == weights.tolist())
        waiting.release(index)
    assert budget.taken == 0
    waiting.close()
    assert (waiting.edges, len(waiting)) == (0, 0)


def test_waiting_blocks_go_to_disk_when_memory_is_full(tmp_path):
    block = EdgeBlock(np.zeros(100, np.uint32), np.zeros(100, np.uint32))
    budget = Budget(4 * block.nbytes)
    waiting = Waiting(budget, tmp_path)
    for _ in range(5):
        waiting.add(block)
    assert waiting.spilled and budget.taken == 2 * block.nbytes  # half is left for the passes to come
    waiting.close()
    assert budget.taken == 0
    assert list(tmp_path.iterdir()) == []


def test_waiting_behind_32_bits_of_scratch(tmp_path):
    waiting = Waiting(Budget(TIGHT), tmp_path)
    waiting.add(EdgeBlock(np.array([1], np.uint64), np.array([2], np.uint64)))
    waiting._scratch._end = 1 << 34
    waiting.add(EdgeBlock(np.array([3], np.uint64), np.array([4], np.uint64)))
    assert [int(waiting.load(i).targets[0]) for i in range(2)] == [2, 4]
    waiting.close()


@pytest.mark.parametrize("memory", [ROOMY, TIGHT])
@pytest.mark.parametrize("count", [1, 10, 64, 5000])
def test_a_sample_is_even_over_all_blocks(tmp_path, memory, count):
    waiting = Waiting(Budget(memory), tmp_path)
    for first in range(0, 1000, 37):
        ids = np.arange(first, min(first + 37, 1000), dtype=np.uint32)
        waiting.add(EdgeBlock(ids, ids))
    step = max(1, 1000 // count)
    assert waiting.sample(count).sources.tolist() == list(range(0, 1000, step))
    waiting.close()


def test_a_sample_of_nothing(tmp_path):
    assert Waiting(Budget(ROOMY), tmp_path).sample(10).sources.size == 0


# ---- names


def binary(values):
    return pa.array(values, pa.large_binary())


def test_hashes_depend_on_salt_length_and_every_byte():
    strings = [b"", b"\0", b"\0\0", b"a", b"b", b"a" * 8, b"a" * 9, b"a" * 7 + b"\0", b"ab" * 20, b"ab" * 19 + b"ac"]
    found = [hashes(binary(strings), salt).tolist() for salt in (0, 1)]
    assert len({*found[0], *found[1]}) == 2 * len(strings)


def test_hashes_of_a_slice():
    strings = binary([b"x", b"yy", b"zzz", b"w"])
    assert hashes(strings.slice(1, 2), 0).tolist() == hashes(binary([b"yy", b"zzz"]), 0).tolist()


def test_encode_gives_equal_strings_equal_keys():
    sources, targets, distinct = encode(binary([b"a", b"b", b"a"]), binary([b"b", b"c", b"a"]), 0)
    assert sources[0] == sources[2] == targets[2] and sources[1] == targets[0]
    assert sorted(distinct.to_pylist()) == [b"a", b"b", b"c"]


def test_names_are_written_once_sorted_bytewise(tmp_path, pool, sized):
    sized(least_name_bytes=0, name_block=30)
    budget = Budget(10_000)
    collected = Names(budget, tmp_path)
    collected._sorting._run_bytes = 60  # a run has two strings
    for batch in ([b"zz", b"a"], [b"a", "é".encode()], [b"", b"zz"], [b"B"]):
        collected.add(binary(batch))
    sections = Sections()
    table = collected.write(sections, 0, "test", pool)
    assert sections.whole("ids.bytes").tobytes() == b"Bazz\xc3\xa9"
    assert sections.whole("ids.offsets").tolist() == [0, 0, 1, 2, 4, 6]
    assert (table.vertices, table.kind) == (5, "string")
    edges = Waiting(budget, tmp_path)
    keys = hashes(binary([b"a", b"zz"]), 0)
    edges.add(EdgeBlock(keys[:1], keys[1:]))
    block = next(table.numbered(edges, pool))
    assert (block.sources.tolist(), block.targets.tolist()) == ([2], [3])
    table.close()
    edges.close()
    collected.close()
    assert budget.taken == 0


def test_a_collision_is_noticed(tmp_path, pool, monkeypatch):
    monkeypatch.setattr(names, "hashes", lambda strings, salt: np.arange(len(strings), dtype=np.uint64) // 2)
    collected = Names(Budget(2**30), tmp_path)
    collected.add(binary([b"a", b"b", b"c"]))
    with pytest.raises(HashCollision):
        collected.write(None, 0, "test", pool)
