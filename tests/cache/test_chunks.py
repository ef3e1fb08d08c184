"""Lists in chunks, as in Grapin's hot subgraph: it holds what far memory has, the hottest lists come first, and only
chunks that lose lists move.
"""

from __future__ import annotations

import random
from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import list_caches, sides
from tests.list_caches import assert_sound

from isthmus.cache.chunks import Chunked, chunk_entries
from isthmus.cache.list_cache import LEAST_SPARE, MOST_SPARE
from isthmus.cache.mover import Attached, HostMover
from isthmus.cache.ranking import USES
from isthmus.graph.lists import Lists


def make(lists, capacity, team, **options):
    return list_caches.make(lists, capacity, team, USES, **options)


class Plain:
    """Lists of two sides that change, and uses of the last four batches, as Python has them."""

    def __init__(self, draw, vertices):
        self.draw, self.fresh, self.vertices = draw, 0, vertices
        self.lists = {(side, v): self.some() for side in range(2) for v in range(vertices)}
        self.uses = {key: deque([0], 4) for key in self.lists}

    def some(self):
        size = self.draw.choice([0, 1, 2, 3, 5, 8, 30])
        self.fresh += size
        return list(range(self.fresh - size, self.fresh))

    def arrays(self):
        """Per side: lists, targets, weights."""
        found = []
        for side in range(2):
            rows = [self.lists[side, v] for v in range(self.vertices)]
            lists = sides.lists_of([len(row) for row in rows], [self.draw.randrange(3) for _ in rows])
            targets = np.full(lists.slots, 7, np.uint32)
            for v, row in enumerate(rows):
                targets[lists.begins[v] : lists.ends[v]] = row
            found.append((lists, targets, (3 * targets.astype(np.int64) + 1).astype(np.float64)))
        return found

    def hottest(self, held, capacity, longest):
        """Keys in order of hotness, held ones before others, then shorter ones, then by number, as far as they fit."""

        def rank(key):
            return -sum(self.uses[key]), key not in held, len(self.lists[key]).bit_length(), key

        chosen, left = set(), capacity
        for key in sorted(
            (
                key
                for key, row in self.lists.items()
                if 0 < len(row) <= longest and (sum(self.uses[key]) or key in held)
            ),
            key=rank,
        ):
            left -= len(self.lists[key])
            if left < 0:
                break
            chosen.add(key)
        return chosen


@pytest.mark.parametrize("seed", range(40))
def test_any_sequence_of_batches(team, seed):
    """It agrees with a dictionary in contents, ranks and bounds; chunks without a change keep every byte and place."""
    draw = random.Random(seed)
    capacity = draw.choice([0, 16, 80, 256])
    plain = Plain(draw, draw.choice([1, 5, 40]))
    arrays = plain.arrays()
    cache = make(
        [each[0] for each in arrays], capacity, team, names=("out", "in"), kinds=(np.uint32, np.float64), interval=None
    )
    chunks = cache.chunks
    key_of = {(side, v): side * cache.side_keys + v for side, v in plain.lists}
    for _ in range(draw.randrange(1, 9)):
        for side, name in enumerate(cache.names):
            for rows in ([v for v in range(plain.vertices) if draw.random() < 0.3] for _ in range(draw.randrange(3))):
                cache.use(name, np.array(rows, np.uint32))
                for v in rows:
                    plain.uses[side, v][-1] += 1
        changed = [key for key in plain.lists if draw.random() < 0.1]
        plain.lists |= {key: plain.some() for key in changed}
        arrays = plain.arrays()
        held = {key for key in plain.lists if chunks.held[key_of[key]]}
        before = (
            chunks.used.copy(),
            chunks.targets.copy(),
            chunks.begins.copy(),
            [set(m.tolist()) for m in chunks.members],
        )
        expected = plain.hottest(held, cache.capacity, chunks.chunk)
        fresh = cache.replace(
            [each[0] for each in arrays],
            [np.array([v for s, v in changed if s == side], np.int64) for side in range(2)],
        )
        for side, (lists, targets, weights) in enumerate(arrays):
            mine = fresh[(fresh >= side * cache.side_keys) & (fresh < (side + 1) * cache.side_keys)]
            chunks.load(mine, side * cache.side_keys, lists.arrays, targets, weights)
        assert_sound(cache.chunks)
        now = {key for key in plain.lists if chunks.held[key_of[key]]}
        assert now <= expected
        for left_out in expected - now:  # only where no chunk has space
            assert len(plain.lists[left_out]) > (chunks.chunk - chunks.used).max(initial=0)
        for side, v in now:
            at, row = int(chunks.begins[key_of[side, v]]), plain.lists[side, v]
            assert chunks.targets[at : at + len(row)].tolist() == row
            assert chunks.weights[at : at + len(row)].tolist() == [3 * e + 1 for e in row]
        assert_untouched_stay(
            chunks, before, {key_of[key] for key in changed} | {key_of[key] for key in held - expected}
        )
        cache.end_period()
        for uses in plain.uses.values():
            uses.append(0)
        if draw.random() < 0.2:
            plain.vertices += 3
            plain.lists |= {
                (side, v): [] for side in range(2) for v in range(plain.vertices) if (side, v) not in plain.lists
            }
            plain.uses |= {key: deque([0], 4) for key in plain.lists if key not in plain.uses}
            cache.grow(plain.vertices)
            key_of = {(side, v): side * cache.side_keys + v for side, v in plain.lists}
            assert_sound(cache.chunks)


def assert_untouched_stay(chunks, before, gone):
    used, targets, begins, members = before
    for number, keys in enumerate(members):
        if keys & gone:
            continue
        at = slice(number * chunks.chunk, number * chunks.chunk + int(used[number]))
        assert (chunks.targets[at] == targets[at]).all()
        for key in keys:
            assert chunks.begins[key] == begins[key]


@pytest.mark.parametrize("seed", range(30))
def test_lists_that_are_kept_when_they_are_read(team, seed):
    """What is held is as it is now, though lists change; a list that is read and finds space is held; the coldest
    make space.
    """
    draw = random.Random(seed)
    capacity, plain = draw.choice([0, 16, 80, 256]), Plain(draw, 30)
    arrays = plain.arrays()
    cache = make(
        [each[0] for each in arrays],
        capacity,
        team,
        names=("out", "in"),
        kinds=(np.uint32, np.float64),
        interval=None,
        on_read=True,
    )
    chunks = cache.chunks

    def load(fresh):
        for side, (lists, targets, weights) in enumerate(arrays):
            mine = fresh[(fresh >= side * cache.side_keys) & (fresh < (side + 1) * cache.side_keys)]
            chunks.load(mine, side * cache.side_keys, lists.arrays, targets, weights)

    def assert_current():
        assert_sound(cache.chunks)
        assert (chunks.chosen == chunks.held).all() and (chunks.held == (chunks.begins >= 0)).all()
        for key in np.flatnonzero(chunks.held).tolist():
            at, row = int(chunks.begins[key]), plain.lists[divmod(key, cache.side_keys)]
            assert chunks.targets[at : at + len(row)].tolist() == row
            assert chunks.weights[at : at + len(row)].tolist() == [3 * e + 1 for e in row]

    for _ in range(draw.randrange(1, 8)):
        for side, name in enumerate(cache.names):
            rows = np.array([v for v in range(plain.vertices) if draw.random() < 0.3], np.uint32)
            lengths = arrays[side][0].degrees()[rows]
            cache.use(name, rows)
            load(cache.admit(name, rows, lengths))
            assert_current()
            for v, length in zip(rows.tolist(), lengths.tolist(), strict=True):
                if cache.refreshes and 0 < length <= chunks.chunk and not chunks.held[cache.offset(name) + v]:
                    assert cache._with_slack(np.array([length])) > (chunks.chunk - chunks.used).max(initial=0)
        changed = [key for key in plain.lists if draw.random() < 0.1]
        plain.lists |= {key: plain.some() for key in changed}
        arrays = plain.arrays()
        load(
            cache.replace(
                [each[0] for each in arrays],
                [np.array([v for s, v in changed if s == side], np.int64) for side in range(2)],
            )
        )
        assert_current()
        cache.end_period()


def test_a_list_that_goes_moves_only_its_chunk(team):
    """The bound on what a batch moves: chunks that lose nothing are not moved, those that do are compacted once."""
    lists = sides.lists_of([8] * 64)
    cache = make([lists], 256, team, interval=None)
    targets = np.arange(lists.slots, dtype=np.uint32)
    cache.use("out", np.arange(32))
    cache.chunks.load(cache.replace([lists]), 0, lists.arrays, targets, targets)
    assert (cache.chunks.chunk, cache.chunks.count, cache.chunks.held.sum()) == (8, 32, 32)
    cache.end_period()
    cache.use("out", np.array([40, 41]))
    cache.use("out", np.array([40, 41]))
    before = cache.chunks.begins[:32].copy()
    fresh = cache.replace([lists])
    assert sorted(fresh.tolist()) == [40, 41]
    assert cache.chunks.moved == 0, "whole chunks were emptied"
    stayed = cache.chunks.begins[:32] >= 0
    assert stayed.sum() == 30 and (cache.chunks.begins[:32][stayed] == before[stayed]).all()


def test_space_within_and_across_chunks_becomes_one(team):
    """Two chunks lose half of their lists each: one of them is emptied into the other, and takes a list as long as
    itself.
    """
    lists = sides.lists_of([4] * 16 + [32])
    cache = make([lists], 256, team, interval=None)
    assert cache.chunks.chunk == 32
    targets = np.arange(lists.slots, dtype=np.uint32)
    cache.use("out", np.arange(16))
    cache.chunks.load(cache.replace([lists]), 0, lists.arrays, targets, targets)
    assert cache.chunks.used.tolist()[:3] == [32, 32, 0]
    found = np.zeros(17, np.uint8)
    found[[0, 2, 4, 6, 8, 10, 12, 14, 16]] = 1
    cache.chunks.used[2:] = 32  # no other chunk has space
    assert cache.chunks.replace(found, [lists], cache.counts.heat, np.empty(0, np.int64)).tolist() == [16]
    assert sorted(cache.chunks.used.tolist()[:2]) == [32, 32]
    for v in range(0, 16, 2):
        at = int(cache.chunks.begins[v])
        assert cache.chunks.targets[at : at + 4].tolist() == targets[4 * v : 4 * v + 4].tolist()


@pytest.mark.parametrize(
    ("capacity", "longest", "chunk"), [(12800, 10, 100), (12800, 400, 400), (12800, 99999, 1600), (3, 5, 1), (0, 9, 1)]
)
def test_chunks_fit_the_longest_list(capacity, longest, chunk):
    assert chunk_entries(capacity, longest) == chunk


def test_forgotten_lists_lose_their_places(team):
    cache, *_ = filled(team, [5] * 30, 3000)
    assert cache.chunks.held.any()
    cache.forget()
    assert_sound(cache.chunks)
    assert (cache.chunks.begins == -1).all() and not cache.chunks.used.any() and not cache.chunks.chosen.any()


@pytest.mark.parametrize("entry_bytes", [10_000, 1_000, 100, 0, -5])
@pytest.mark.parametrize("on_read", [False, True])
def test_lists_give_way_to_more_vertices(team, entry_bytes, on_read):
    """A larger index takes the place of chunks: it holds no more than it may, and what it still holds is right."""
    degrees = [1 + v % 7 for v in range(200)]
    lists = sides.lists_of(degrees)
    targets = np.arange(lists.slots, dtype=np.uint32)
    cache = make([lists], 400, team, interval=None, on_read=on_read)
    before, everyone = cache.bytes, np.arange(200, dtype=np.uint32)

    def bring():
        cache.use("out", everyone)
        fresh = cache.admit("out", everyone, lists.degrees()) if on_read else cache.replace([lists])
        cache.chunks.load(fresh, 0, lists.arrays, targets, targets[:0])

    cache.refreshes += 1  # the first lists that are read are not the last
    bring()
    held = int(cache.chunks.held.sum())
    cache.grow(230, entry_bytes)
    assert cache.bytes <= max(0, min(entry_bytes, before - 200 * USES.index_bytes)) + 230 * USES.index_bytes
    assert_sound(cache.chunks)
    assert held > 0 and (int(cache.chunks.held.sum()) == held) == (entry_bytes > 1_600)
    lists = sides.lists_of([*degrees, *[2] * 30])
    targets, everyone = np.arange(lists.slots, dtype=np.uint32), np.arange(230, dtype=np.uint32)
    bring()
    assert_sound(cache.chunks)
    assert (int(cache.chunks.held.sum()) > 0) == (entry_bytes >= cache.chunks.chunk * cache.chunks.entry)
    for v in np.flatnonzero(cache.chunks.held).tolist():
        at = int(cache.chunks.begins[v])
        row = targets[lists.begins[v] : lists.ends[v]]
        assert cache.chunks.targets[at : at + row.size].tolist() == row.tolist()


def filled(team, degrees, capacity, kinds=(np.uint32, np.int32)):
    """A cache that keeps lists when they are read, with as many of these as fit; and lists, targets, weights."""
    lists = sides.lists_of(degrees)
    targets = np.arange(lists.slots, dtype=np.uint32) + 1000
    weights = -targets.astype(np.int32)
    cache = make([lists], capacity, team, kinds=kinds, interval=None, on_read=True)
    cache.replace([lists])
    everyone = np.arange(len(degrees), dtype=np.uint32)
    cache.use("out", everyone)
    cache.chunks.load(cache.admit("out", everyone, lists.degrees()), 0, lists.arrays, targets, weights)
    return cache, lists, targets, weights


@settings(max_examples=60, deadline=None)
@given(
    degrees=st.lists(st.integers(0, 40), min_size=1, max_size=60),
    capacity=st.sampled_from([0, 8, 100, 400, 3000]),
    grown=st.dictionaries(st.integers(0, 59), st.integers(1, 60), max_size=30),
    shrunk=st.sets(st.integers(0, 59), max_size=20),
)
def test_lists_that_outgrow_their_places_move_with_their_content(team, degrees, capacity, grown, shrunk):
    """Nothing is read from far memory for them, a list that is longer than a chunk goes, and memory is kept."""
    cache, lists, targets, weights = filled(team, degrees, capacity)
    chunks, held = cache.chunks, cache.chunks.held.copy()
    now = [0 if v in shrunk else degree + grown.get(v, 0) for v, degree in enumerate(degrees)]
    changed = np.array([v for v, degree in enumerate(degrees) if now[v] != degree], np.int64)
    fresh = cache.replace([sides.lists_of(now)], [changed])
    assert_sound(cache.chunks)
    assert (chunks.chosen == chunks.held).all() and set(fresh.tolist()) == {
        v for v in changed.tolist() if chunks.held[v]
    }
    for v in np.flatnonzero(chunks.held).tolist():
        assert held[v] and now[v] <= chunks.sizes[v] <= chunks.chunk
        at, row = int(chunks.begins[v]), slice(int(lists.begins[v]), int(lists.begins[v]) + min(degrees[v], now[v]))
        assert chunks.targets[at : at + row.stop - row.start].tolist() == targets[row].tolist()
        assert chunks.weights[at : at + row.stop - row.start].tolist() == weights[row].tolist()


def eight_full_chunks(team, lengths):
    """Lists that fill eight chunks of 40 entries; entry e of all has target e."""
    chunks = Chunked(np.zeros(320 * 4, np.uint8), len(lengths), (np.uint32, None), 40, team, np.empty(0, np.uint8))
    chunks.attach(Attached(HostMover(team), lambda lists: lists.arrays))
    lengths = np.array(lengths)
    ends, targets = np.cumsum(lengths), np.arange(320, dtype=np.uint32)
    chunks.load(chunks.admit(np.arange(lengths.size), lengths), 0, (ends - lengths, ends), targets, targets)
    assert chunks.held.all() and chunks.used.tolist() == [40] * 8
    return chunks


def assert_moved(chunks, keys, sizes, begins, lengths):
    """These lists have places of these sizes, and still hold targets from `begins` on."""
    assert_sound(chunks)
    assert chunks.sizes[keys].tolist() == sizes and chunks.held[keys].all()
    for key, begin, length in zip(keys, begins, lengths, strict=True):
        at = int(chunks.begins[key])
        assert chunks.targets[at : at + length].tolist() == list(range(begin, begin + length))


def test_short_lists_move_though_a_longer_one_does_not_fit(team):
    """The longest one goes, and the others move to its place and to those that they leave."""
    chunks = eight_full_chunks(team, [30, *[10] * 29])
    assert sorted(chunks.move(np.array([0, 1, 2, 3]), np.array([40, 12, 12, 12])).tolist()) == [1, 2, 3]
    assert_moved(chunks, [1, 2, 3], [12, 12, 12], [30, 40, 50], [10, 10, 10])
    assert chunks.begins[0] == -1 and chunks.held.sum() == 29


def test_many_lists_without_space_go_before_one_moves(team):
    """More of them than there are rounds: each leaves one entry, and the list behind them needs twelve."""
    chunks = eight_full_chunks(team, [*[1] * 40, *[10] * 28])
    assert chunks.move(np.array([*range(12), 40]), np.array([*[40] * 12, 12])).tolist() == [40]
    assert_moved(chunks, [40], [12], [40], [10])
    assert (chunks.begins[:12] == -1).all() and chunks.held.sum() == 68 - 12


def test_a_long_list_moves_to_where_another_was(team):
    chunks = eight_full_chunks(team, [38, 2, 38, 2, *[40] * 6])
    assert chunks.move(np.array([0, 2]), np.array([40, 38])).tolist() == [2]
    assert_moved(chunks, [2], [38], [40], [38])


def test_lists_move_to_space_that_was_lost_in_chunks(team):
    """Every chunk has lost two entries, too few to compact it; together there is space for a list, and none has to
    go.
    """
    chunks = eight_full_chunks(team, [32, 2, 2, 2, 2] * 8)
    chunks.chosen[1::5] = 0
    chunks.drop(np.arange(1, 40, 5))
    assert chunks.used.tolist() == [40] * 8 and chunks.lost.tolist() == [2] * 8
    assert chunks.move(np.array([22]), np.array([4])).tolist() == [22]
    assert_moved(chunks, [22], [4], [4 * 40 + 34], [2])
    assert chunks.held.sum() == 32


@pytest.mark.parametrize("uses", [0, 1, 3])
def test_space_is_freed_among_equally_hot_lists_of_one_length(team, uses):
    """Only as much as is needed: not all lists of the level that no longer fits go."""
    cache, lists, _, _ = filled(team, [5] * 300, 640)
    for _ in range(uses):
        cache.end_period()
        cache.use("out", np.arange(300, dtype=np.uint32))
    before = int(cache.chunks.sizes.sum())
    assert before == cache.capacity == 640
    cache.replace([lists])
    left = int(cache.chunks.sizes.sum())
    assert cache.capacity // MOST_SPARE - 5 < left <= cache.capacity - cache.capacity // LEAST_SPARE
    assert_sound(cache.chunks)


def coldest(cache, capacity):
    return cache.counts.coldest(cache.chunks.members, cache.chunks.sizes, capacity)


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 50), min_size=1, max_size=60),
    levels=st.lists(st.integers(0, 3), min_size=60, max_size=60),
    capacity=st.integers(0, 400),
)
def test_the_coldest_go(team, lengths, levels, capacity):
    """What stays fits, is at least as hot as what goes, and could not take one more of the hottest that go."""
    cache, _, _, _ = filled(team, lengths, 3000)
    for v, level in enumerate(levels[: len(lengths)]):
        for _ in range(level):
            cache.use("out", np.array([v], np.uint32))
    sizes, held = cache.chunks.sizes.astype(np.int64), set(np.flatnonzero(cache.chunks.held).tolist())
    cold = set(coldest(cache, capacity).tolist())
    stay = held - cold
    assert cold <= held and sum(int(sizes[v]) for v in stay) <= capacity

    def rank(v):
        return int(cache.counts.words[v]), -int(sizes[v]).bit_length()

    if cold:
        best = max(rank(v) for v in cold)
        assert all(rank(v) >= best for v in stay)
        first = [int(sizes[v]) for v in cold if rank(v) == best]
        assert sum(int(sizes[v]) for v in stay) + max(first) > capacity


def test_nothing_to_hold(team):
    """No vertices, no edges, no memory, or a memory smaller than any list: it holds nothing, and says so."""
    for degrees, capacity in (([], 100), ([0, 0], 100), ([3, 4], 0), ([90, 80], 40)):
        for on_read in (False, True):
            lists = sides.lists_of(degrees)
            cache = make([lists], capacity, team, interval=None, on_read=on_read)
            everyone = np.arange(len(degrees), dtype=np.uint32)
            cache.use("out", everyone)
            assert cache.replace([lists], [everyone.astype(np.int64)]).size == 0
            if on_read:
                assert cache.admit("out", everyone, lists.degrees()).size == 0 and cache.fill([lists]).size == 0
            cache.grow(len(degrees) + 5)
            cache.end_period()
            assert_sound(cache.chunks)
            assert not cache.chunks.held.any() and cache.bytes <= USES.index_bytes * (len(degrees) + 5) + 4 * capacity


def test_sums_of_entries_have_64_bits(team):
    """Lists of more than 2**32 entries together: which are chosen, or dropped, depends on no sum that has wrapped."""
    lists, long = sides.lists_of([1] * 9), Lists.of(np.arange(10) * 3_000_000_000)
    everyone = np.arange(9, dtype=np.uint32)
    for on_read in (False, True):
        cache = make([lists], 512, team, interval=None, on_read=on_read)
        cache.replace([lists])
        cache.use("out", everyone)
        cache.use("out", everyone[4:])
        if not on_read:
            for capacity, expected in ((17_000_000_000, [4, 5, 6, 7, 8]), (20_999_999_999, [0, 4, 5, 6, 7, 8])):
                found = cache.counts.choose([long], cache.chunks.held, 1 << 40, capacity)
                assert np.flatnonzero(found).tolist() == expected
        else:
            cache.admit("out", everyone, np.ones(9, np.int64))
            cache.chunks.sizes[:] = 3_000_000_000
            assert sorted(coldest(cache, 17_000_000_000).tolist()) == [0, 1, 2, 3]
            assert len(coldest(cache, 20_999_999_999)) == 3 and len(coldest(cache, 8_999_999_999)) == 7
