"""List caches over made-up edges, for tests: make one, run an iteration through it, check what it holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from tests import sides

from isthmus.cache.chunks import LOST, Chunked
from isthmus.cache.list_cache import ListCache
from isthmus.cache.mover import Attached, Mover
from isthmus.cache.ranking import Ranking
from isthmus.engines.compaction import Compaction
from isthmus.engines.engine import Task
from isthmus.engines.filter import Filter
from isthmus.engines.zero_copy import ZeroCopy
from isthmus.graph.lists import Lists
from isthmus.graph.store.files import aligned_empty
from isthmus.kernels.changing.packed_array import DELETE, INSERT, REWEIGH

Kinds = tuple[Any, Any]  # dtypes of targets and of weights, or None
KINDS: list[Kinds] = [(target, weight) for target in (np.uint32, np.uint64) for weight in (None, np.int32, np.float64)]
DEGREES = [5, 0, 40, 3, 3, 3, 0, 0, 300, 1, 17, 17, 17, 0, 9, 60, 2, 2, 0, 8, 0]  # 21: no whole number of words
GAPS = [n * 7 % 11 for n in range(len(DEGREES))]  # slots behind each list, where there are any
ENGINES: dict[str, Any] = {"filter": Filter(), "zero_copy": ZeroCopy(), "compaction": Compaction(1)}


def memory_bytes(ranking: Ranking, keys: int, capacity: int, kinds: Kinds) -> int:
    """Near memory for an index of `keys`, and for lists of `capacity` entries."""
    entry = sum(np.dtype(each).itemsize for each in kinds if each is not None)
    return ranking.index_bytes * keys + capacity * entry


def make(
    lists: Sequence[Lists],
    capacity: int,
    team: Any,
    ranking: Ranking,
    names: Sequence[str] = ("out",),
    kinds: Kinds = (np.uint32, None),
    **options: Any,
) -> ListCache:
    """A cache with memory for about `capacity` entries, filled with rubbish."""
    memory = aligned_empty(memory_bytes(ranking, len(names) * len(lists[0]), capacity, kinds), np.uint8)
    memory[:] = 0xAB
    return ListCache(names, lists, memory, kinds, team, ranking, **options)


def of_side(far: sides.Far, capacity: int, team: Any, ranking: Ranking, **options: Any) -> ListCache:
    """A cache of the lists of one side."""
    kinds = (far.side.target_dtype, far.side.weight_dtype if far.side.weight_width else None)
    return make([far.side.lists], capacity, team, ranking, kinds=kinds, **options)


def iterate(
    cache: Any, far: sides.Far, active: Iterable[int], dense: bool = False, engine: str = "zero_copy", blocks: int = 64
) -> tuple[sides.Edges, sides.Edges]:
    """One iteration as the loop does it: edges served, edges brought."""
    frontier, side = far.frontier(active, dense), far.side
    misses, hits = cache.serve(frontier, side)
    served = sides.delivered(hits, frontier, cache.keep)
    cache.refresh(frontier)
    brought = sides.Edges()
    if len(side.partitions):
        task = Task(ENGINES[engine], side, np.arange(len(side.partitions)))
        space = (blocks - 12) * sides.BLOCK
        tasks = [task] if engine != "filter" else ENGINES[engine].tasks(side, task.partitions, space)
        for task in tasks:
            for delivery in task.engine.deliver(task, misses, far.link, lambda: far.buffer(blocks), 0):
                brought += sides.edges_of(delivery, misses)
                cache.keep(delivery)
                delivery.targets[:] = 0  # its buffer is filled with something else now
    return served, brought


def chosen(cache: ListCache) -> list[int]:
    return np.flatnonzero(cache.layout.chosen).tolist()


def held(cache: ListCache) -> list[int]:
    return np.flatnonzero(cache.layout.held).tolist()


def check(cache: ListCache, far: sides.Far) -> None:
    """Everything that is held was chosen, is as it is in the store, in a place of its own, and within the capacity."""
    layout, lists = cache.layout, far.side.lists
    assert set(held(cache)) <= set(chosen(cache))
    assert layout.weights is None or layout.weights.flags.aligned
    taken = np.zeros(cache.capacity, np.int64)
    for u in chosen(cache):
        at, degree = int(layout.begins[u]), int(lists.ends[u] - lists.begins[u])
        assert 0 <= at <= at + degree <= cache.capacity
        taken[at : at + degree] += 1
    assert taken.max(initial=0) <= 1
    for u in held(cache):
        at, edges = int(layout.begins[u]), np.arange(lists.begins[u], lists.ends[u])
        assert layout.targets[at : at + edges.size].tolist() == edges.tolist()
        if layout.weights is not None:
            assert layout.weights[at : at + edges.size].tolist() == (3 * edges + 1).tolist()


def assert_sound(chunks: Chunked) -> None:
    """No list spans two chunks or overlaps another, chunks have few holes, and each knows its lists."""
    placed = np.flatnonzero(chunks.begins >= 0)
    entries = int(chunks.sizes[placed].sum())
    assert int((chunks.used - chunks.lost).sum()) == entries <= chunks.capacity <= chunks.targets.size
    assert (chunks.lost <= chunks.chunk // LOST).all() and (chunks.lost >= 0).all()
    assert (chunks.held[chunks.begins < 0] == 0).all() and (chunks.sizes[chunks.begins < 0] == 0).all()
    assert sorted(key for members in chunks.members for key in members.tolist()) == placed.tolist()
    for number, members in enumerate(chunks.members):
        at = number * chunks.chunk
        for key in members.tolist():
            assert int(chunks.begins[key]) >= at and chunks.sizes[key] > 0
            at = int(chunks.begins[key]) + int(chunks.sizes[key])
        assert at - number * chunks.chunk <= chunks.used[number] <= chunks.chunk


def check_patching(mover: Mover, team: Any) -> None:
    """Only changed entries of a list are copied: a mark in a near list stays where nothing has changed. If the list is
    not what it should have been before, all of it is copied.
    """
    chunks = Chunked(np.zeros(1600, np.uint8), 1, (np.uint32, np.int32), 8, team, np.empty(0, np.uint8))
    chunks.attach(Attached(mover, lambda lists: lists.arrays))
    chunks.begins[0], chunks.sizes[0], chunks.held[0] = 5, 8, 1
    changes = SimpleNamespace(
        cuts=np.array([0, 4]),
        others=np.array([11, 13, 20, 21], np.uint32),
        actions=np.array([DELETE, REWEIGH, INSERT, INSERT]),
        positions=np.array([1, 3, -1, -1]),
    )
    targets, weights = np.zeros(60, np.uint32), np.zeros(60, np.int32)
    targets[40:46], weights[40:46] = [10, 15, 12, 13, 14, 20], [1, 2, 3, 99, 5, 6]  # 11 has gone, and 15 has its place
    targets[46], weights[46] = 21, 7

    def refreshed(begin: int) -> tuple[list[int], list[int]]:
        assert chunks.weights is not None
        chunks.targets[5:11], chunks.weights[5:11] = [10, 11, 77, 13, 14, 15], [1, 2, 77, 4, 5, 6]
        lists = (np.array([begin]), np.array([begin + 7]))
        chunks.refresh(np.array([0]), np.array([0]), changes, 0, lists, targets, weights)
        return chunks.targets[5:12].tolist(), chunks.weights[5:12].tolist()

    assert refreshed(40) == ([10, 15, 77, 13, 14, 20, 21], [1, 2, 77, 99, 5, 6, 7]), "77 has not changed"
    targets[50:57], weights[50:57] = targets[40:47], weights[40:47]
    assert refreshed(50) == ([10, 15, 77, 13, 14, 20, 21], [1, 2, 77, 99, 5, 6, 7]), "wherever the list lies now"
    changes.positions[:2] = 3, 1
    assert refreshed(40) == ([10, 15, 12, 13, 14, 20, 21], [1, 2, 3, 99, 5, 6, 7]), "it had other entries there"
    changes.positions[:2] = 1, 3
    chunks.held[0] = 0
    assert refreshed(40) == ([10, 15, 12, 13, 14, 20, 21], [1, 2, 3, 99, 5, 6, 7]) and chunks.held[0] == 1
