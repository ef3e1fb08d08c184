"""Sorting more keys than fit: in an arena, on disk, with misjudged samples and equal keys."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isthmus.errors import StoreError
from isthmus.graph.ingest.buckets import Buckets, Splitters, merge, sort
from isthmus.graph.store.list_writer import ListWriter, SortedLists, combined, write_lists
from isthmus.kernels.store import arc_keys
from isthmus.memory import Budget
from isthmus.progress import SILENT
from isthmus.threads import Pool

HIGH = 2**64 - 1
ROOMY, TIGHT = 2**30, 1


@pytest.fixture(autouse=True)
def small(sized):
    sized(cached_keys=16, few_keys=0)


@pytest.fixture
def pool():
    with Pool(2) as pool:
        yield pool


def run(folder, pool, blocks, *, memory, how=arc_keys.KEEP, weights=None, sample=None, far=0):
    """All keys (and weights) sorted, and the Buckets, closed. `far`: where the scratch file begins."""
    keys = np.concatenate([np.asarray(block, np.uint64) for block in blocks]) if blocks else np.empty(0, np.uint64)
    sample = keys[::3] if sample is None else np.asarray(sample, np.uint64)
    budget = Budget(memory)
    sorter = Buckets(sample, keys.size, HIGH, None if weights is None else np.float64, how, budget, folder, 2)
    if far:
        sorter._scratch._end = far
    for index, block in enumerate(blocks):
        sorter.add(index, np.asarray(block, np.uint64), None if weights is None else np.asarray(weights[index], float))
    found = list(sorter.sorted(pool, lambda k, w: (k.copy(), None if w is None else w.copy())))
    sorter.close()
    assert budget.taken == 0
    empty = [np.empty(0, np.uint64)]
    kept = None if weights is None else np.concatenate([np.empty(0), *(w for _, w in found)]).tolist()
    return np.concatenate([*empty, *(k for k, _ in found)]).tolist(), kept, sorter


KEY = st.integers(0, 30) | st.integers(0, HIGH) | st.just(HIGH)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    blocks=st.lists(st.lists(KEY, max_size=80), max_size=6),
    memory=st.sampled_from([ROOMY, TIGHT]),
    sample=st.lists(KEY, max_size=20),
)
def test_sorted_and_stable_whatever_the_sample(tmp_path, pool, blocks, memory, sample):
    at = 0
    weights = []
    for block in blocks:
        weights.append(list(range(at, at + len(block))))
        at += len(block)
    flat = [key for block in blocks for key in block]
    order = sorted(range(len(flat)), key=flat.__getitem__)
    keys, kept, sorter = run(tmp_path, pool, blocks, memory=memory, weights=weights, sample=sample)
    assert keys == [flat[i] for i in order]
    assert kept == order
    assert sorter.keys == len(flat)


@pytest.mark.parametrize("memory", [ROOMY, TIGHT])
def test_where_the_keys_wait(tmp_path, pool, memory):
    sorter = Buckets(np.empty(0, np.uint64), 10, HIGH, None, arc_keys.KEEP, Budget(memory), tmp_path, 2)
    assert sorter.spilled == (memory == TIGHT)
    sorter.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("memory", [ROOMY, TIGHT])
@pytest.mark.parametrize("how", [arc_keys.FIRST, arc_keys.MIN, arc_keys.SUM])
def test_equal_keys_too_many_to_hold_come_in_one_piece(tmp_path, pool, memory, how):
    """The sample saw none of them; they are merged as they stream by, in their order."""
    weights = np.random.default_rng(1).random((5, 100))
    blocks = [[7] * 100] * 5
    keys, kept, sorter = run(tmp_path, pool, blocks, memory=memory, how=how, weights=weights, sample=[])
    flat = weights.ravel().tolist()
    assert keys == [7]
    assert kept == [{arc_keys.FIRST: lambda w: w[0], arc_keys.MIN: min, arc_keys.SUM: sum}[how](flat)]
    assert sorter.merged == 499


@pytest.mark.parametrize("memory", [ROOMY, TIGHT])
def test_equal_keys_that_are_kept_are_all_there(tmp_path, pool, memory):
    keys, kept, sorter = run(
        tmp_path, pool, [[7] * 100] * 5, memory=memory, weights=np.arange(500.0).reshape(5, 100), sample=[]
    )
    assert keys == [7] * 500
    assert kept == list(range(500))
    assert sorter.merged == 0


@pytest.mark.parametrize("memory", [ROOMY, TIGHT])
def test_a_heavy_key_beside_rare_ones_is_parted_again(tmp_path, pool, memory):
    blocks = [[9] * 200 + [3], [9] * 200 + [HIGH], [0] + [9] * 200]
    keys, _, sorter = run(tmp_path, pool, blocks, memory=memory, sample=[9])
    assert keys == [0, 3] + [9] * 600 + [HIGH]
    merged, _, sorter = run(tmp_path, pool, blocks, memory=memory, sample=[], how=arc_keys.FIRST)
    assert sorted(set(merged)) == [0, 3, 9, HIGH]
    assert sorter.merged + len(merged) == 603


def test_each_key_comes_in_one_call_when_merging(tmp_path, pool):
    random = np.random.default_rng(2)
    blocks = [random.integers(0, 12, 300) for _ in range(4)]
    sorter = Buckets(blocks[0].astype(np.uint64), 1200, HIGH, None, arc_keys.FIRST, Budget(TIGHT), tmp_path, 2)
    for index, block in enumerate(blocks):
        sorter.add(index, block.astype(np.uint64), None)
    calls = [set(keys.tolist()) for keys in sorter.sorted(pool, lambda keys, _: keys.copy())]
    sorter.close()
    assert set().union(*calls) == set(range(12))
    assert sum(map(len, calls)) == 12


def test_blocks_may_arrive_in_any_order(tmp_path, pool):
    sorter = Buckets(np.empty(0, np.uint64), 4, HIGH, np.int32, arc_keys.KEEP, Budget(TIGHT), tmp_path, 2)
    sorter.add(1, np.array([5, 5], np.uint64), np.array([3, 4], np.int32))
    sorter.add(0, np.array([5, 5], np.uint64), np.array([1, 2], np.int32))
    assert [w.tolist() for w in sorter.sorted(pool, lambda _, w: w.copy())] == [[1, 2, 3, 4]]
    sorter.close()


def test_scratch_offsets_beyond_32_bits(tmp_path, pool):
    """A sparse scratch file whose parts lie behind 16 GB."""
    blocks = [[3, 1, 2], [2, 9, 1]]
    keys, kept, sorter = run(tmp_path, pool, blocks, memory=TIGHT, weights=[[1, 2, 3], [4, 5, 6]], far=1 << 34)
    assert keys == [1, 1, 2, 2, 3, 9]
    assert kept == [2, 6, 3, 4, 1, 5]
    assert min(part[0] for part in sorter._parts.values()) >= 1 << 34


def test_a_full_disk_is_reported(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    sorter = Buckets(np.empty(0, np.uint64), 4, HIGH, None, arc_keys.KEEP, Budget(TIGHT), tmp_path, 2)
    monkeypatch.setattr("isthmus.graph.store.files.os.pwrite", full)
    with pytest.raises(StoreError, match=r"scratch file in .*: cannot write at byte 0: No space left on device"):
        sorter.add(0, np.array([1], np.uint64), None)
    sorter.close()


def test_no_folder_for_scratch(tmp_path):
    with pytest.raises(StoreError, match="cannot create a scratch file"):
        Buckets(np.empty(0, np.uint64), 4, HIGH, None, arc_keys.KEEP, Budget(TIGHT), tmp_path / "missing", 2)


@pytest.mark.parametrize("size", [0, 1, 15, 33, 500, 5000])
@pytest.mark.parametrize("high", [1, 50, HIGH])
@pytest.mark.parametrize("few", [0, 500])
def test_sort(size, high, few, sized):
    sized(few_keys=few)
    keys = np.random.default_rng(size).integers(0, high, size, np.uint64, endpoint=True)
    weights = np.arange(float(size))
    order = np.argsort(keys, kind="stable")
    expected = keys[order].tolist()
    sort(keys, weights)
    assert keys.tolist() == expected
    assert weights.tolist() == order.tolist()


def test_a_heavy_key_of_the_sample_gets_a_bucket_of_its_own():
    splitters = Splitters(np.array([5] * 90 + list(range(10)), np.uint64), 8, 0, HIGH)
    assert {5, 6} <= set(splitters.values.tolist())
    at_the_end = Splitters(np.array([HIGH] * 90, np.uint64), 8, 0, HIGH)
    assert at_the_end.values.tolist() == [0, HIGH]


def test_merging_a_sum_goes_in_order():
    """Big and small in turn: any other order of adding gives another sum."""
    weights = [np.array([1e16, 1.0]), np.array([-1e16, 1.0, 1.0])]
    _, total = merge(iter([(np.zeros(w.size, np.uint64), w) for w in weights]), arc_keys.SUM)
    assert total.tolist() == [sum([1e16, 1.0, -1e16, 1.0, 1.0])]


# ---- lists


class Sections:
    """Remembers what is appended."""

    def __init__(self):
        self.parts: dict[str, list] = {}
        self.claims: dict[str, int] = {}

    def section(self, name, dtype, at_most):
        self.parts[name], self.claims[name] = [np.empty(0, dtype)], at_most

    def append(self, name, array):
        self.parts[name].append(array)

    def whole(self, name):
        return np.concatenate(self.parts[name]).tolist()


def some_lists(rows, counts, first=0):
    total = sum(counts)
    return SortedLists(
        np.array(rows, np.uint64), np.array(counts), np.arange(first, first + total, dtype=np.uint32), None, 0, 0
    )


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_offsets_between_and_behind_the_rows(sized, at_once):
    sized(written_offsets=at_once)
    sections = Sections()
    writer = ListWriter(sections, "out", 9, 6, np.uint32, None)
    writer.append(some_lists([2, 4], [1, 2]))
    writer.append(some_lists([], []))
    writer.append(some_lists([4, 6], [2, 1], 3))  # vertex 4 goes on
    writer.finish()
    assert sections.whole("out.offsets") == [0, 0, 0, 1, 1, 5, 5, 6, 6, 6]
    assert sections.whole("out.targets") == [0, 1, 2, 3, 4, 5]
    assert (writer.arcs, sections.claims["out.offsets"]) == (6, 10)


@pytest.mark.parametrize("vertices", [0, 1, 5])
def test_offsets_of_no_arcs(vertices):
    sections = Sections()
    ListWriter(sections, "out", vertices, 0, np.uint32, None).finish()
    assert sections.whole("out.offsets") == [0] * (vertices + 1)


def test_offsets_beyond_32_bits():
    """As if 2**33 arcs had been written before."""
    sections = Sections()
    writer = ListWriter(sections, "out", 4, 1 << 34, np.uint32, None)
    writer.arcs = 1 << 33
    writer.append(some_lists([1, 2], [2, 1]))
    writer.finish()
    assert sections.whole("out.offsets") == [2**33, 2**33, 2**33 + 2, 2**33 + 3, 2**33 + 3]
    assert writer.arcs == 2**33 + 3


@pytest.mark.parametrize("memory", [ROOMY, TIGHT])
def test_lists_of_a_star_that_fills_many_buckets(tmp_path, pool, memory):
    bits = 10
    keys = (np.uint64(3) << np.uint64(bits)) | np.random.default_rng(1).permutation(1000).astype(np.uint64)
    sorter = Buckets(keys[::7], 1000, (1 << 2 * bits) - 1, None, arc_keys.KEEP, Budget(memory), tmp_path, 2)
    sorter.add(0, keys, None)
    sections = Sections()
    writer = ListWriter(sections, "out", 5, 1000, np.uint32, None)
    write_lists(writer, sorter, pool, combined(bits, np.uint32, arc_keys.KEEP), SILENT)
    sorter.close()
    assert sections.whole("out.offsets") == [0, 0, 0, 0, 1000, 1000]
    assert sections.whole("out.targets") == list(range(1000))
    assert writer.self_loops == 1
