"""Sorting more keys than fit in memory: distribute them into buckets by value, then sort each bucket.

Splitters come from a sample, so buckets hold about equally many keys even in a skewed graph: a hub is spread over
several buckets, and a key that repeats very often gets a bucket of its own. The distributed blocks are in one arena
in memory, or in a scratch file if the budget is too small. Either way bucket b is slice b of every block, in block
order, so the sort is stable. A bucket that is still too large for memory is distributed again.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from isthmus import sizes
from isthmus.graph.store.files import Array, Scratch, aligned_empty
from isthmus.kernels.store import arc_keys
from isthmus.memory import Budget
from isthmus.threads import Pool

MOST_BUCKETS = 8192
TABLE_BITS = 16
# Of a list with one entry: its vertex, its length, and half of the entry; the other half fits into its key.
LIST_BYTES = 20
Result = TypeVar("Result")
Finish = Callable[[Array, "Array | None"], Result]


class Splitters:
    """Bucket boundaries for keys from low to high: bucket b holds those from values[b] up to values[b + 1]."""

    def __init__(self, sample: Array, buckets: int, low: int, high: int) -> None:
        self.values = np.array([low], np.uint64)
        if sample.size and buckets > 1:
            ordered = np.sort(sample)
            picks = ordered[np.linspace(0, ordered.size, buckets, endpoint=False).astype(np.int64)[1:]]
            heavy = picks[1:][picks[1:] == picks[:-1]]  # drawn twice: a key with more than a bucket's share
            after = heavy[heavy < np.iinfo(np.uint64).max] + np.uint64(1)
            self.values = np.unique(np.concatenate([self.values, picks, after]))
        self.shift = np.uint64(max(0, (high - low).bit_length() - TABLE_BITS))
        if len(self) > 1:
            self.table = np.empty(((high - low) >> int(self.shift)) + 1, np.uint16)
            arc_keys.lookup_table(self.values, self.shift, self.table)

    def __len__(self) -> int:
        return int(self.values.size)

    def scatter(self, keys: Array, weights: Array | None, out: Array, out_weights: Array | None) -> Array:
        """Distribute `keys` into buckets in `out`; returns where each bucket starts, and the end."""
        if len(self) == 1:  # a small graph then needs fewer kernels, which take seconds to compile on first use
            copy(keys, weights, out, out_weights)
            return np.array([0, keys.size], np.int64)
        starts = np.empty(len(self) + 1, np.int64)
        arc_keys.scatter(
            keys, weights, self.table, self.shift, self.values, starts, np.empty(keys.size, np.uint16), out, out_weights
        )
        return starts


class Buckets:
    """Takes blocks of keys in any order of arrival and returns the keys sorted.

    `most` bounds the keys to come, `high` their values. `weights` is the type that travels with each key, or None.
    `parallel` is what `finish` does with equal keys (`kernels.arcs`); unless it keeps all, equal keys come in one call.
    """

    def __init__(
        self,
        sample: Array,
        most: int,
        high: int,
        weights: Any,
        parallel: int,
        budget: Budget,
        folder: Path,
        threads: int,
    ) -> None:
        self._budget, self._folder, self._threads = budget, folder, threads
        self._high, self._parallel = high, parallel
        self._weights = None if weights is None else np.dtype(weights)
        self._width = 8 + (0 if self._weights is None else self._weights.itemsize)
        self._scratch: Scratch | None = None
        self._arena: tuple[Array, Array | None] | None = None
        self._held = 0
        self._lock = threading.Lock()
        self._parts: dict[int, tuple[int, int, Array]] = {}
        self.keys = 0
        self.merged = 0  # equal keys merged before `finish`, because they did not fit in memory
        # In memory the budget must hold the arena, and small buckets that are sorted beside it.
        workspace = 2 * (threads + 2) * sizes.now.cached_keys * self._width * 4
        if budget.left > most * self._width + workspace and budget.take(most * self._width):
            self._held = most * self._width
            self._arena = (np.empty(most, np.uint64), None if self._weights is None else np.empty(most, self._weights))
            self._next = 0
            self.bucket_keys = sizes.now.cached_keys
        else:
            self._scratch = Scratch(folder)
            # Held per bucket, for each thread and those waiting: keys, and either a spare or the lists made of them,
            # which may be as many as the keys.
            held = 2 * self._width + LIST_BYTES
            self.bucket_keys = max(sizes.now.cached_keys, int(budget.left * 0.7) // ((threads + 2) * held))
        count = min(MOST_BUCKETS, max(1, -(-most // self.bucket_keys)))
        self._splitters = Splitters(sample, count, 0, high)

    @property
    def spilled(self) -> bool:
        return self._scratch is not None

    def add(self, index: int, keys: Array, weights: Array | None) -> None:
        """Distribute block `index` into buckets; equal keys stay in the order of blocks and inside a block."""
        if self._arena is not None:
            with self._lock:
                at, self._next = self._next, self._next + keys.size
            arena, arena_weights = self._arena
            out_weights = None if arena_weights is None else arena_weights[at : at + keys.size]
            starts = self._splitters.scatter(keys, weights, arena[at : at + keys.size], out_weights)
            place = (at, at, starts)
        else:
            assert self._scratch is not None
            out = aligned_empty(keys.size, np.uint64)
            out_weights = None if self._weights is None else aligned_empty(keys.size, self._weights)
            starts = self._splitters.scatter(keys, weights, out, out_weights)
            at = self._scratch.append(out)
            place = (at, at if out_weights is None else self._scratch.append(out_weights), starts)
        with self._lock:
            self._parts[index] = place
            self.keys += keys.size

    def sorted(self, pool: Pool, finish: Finish[Result]) -> Iterator[Result]:
        """`finish(keys, weights)` of every bucket, sorted, in ascending order of buckets."""
        order = [self._parts[index] for index in sorted(self._parts)]
        bounds = np.array([starts for _, _, starts in order], np.int64).reshape(len(order), len(self._splitters) + 1)
        sizes = (bounds[:, 1:] - bounds[:, :-1]).sum(axis=0)
        largest = 4 * self.bucket_keys

        def work(bucket: int) -> Result:
            keys, weights = self._gather(order, bounds, bucket, int(sizes[bucket]))
            sort(keys, weights)
            return finish(keys, weights)

        fits = lambda bucket: sizes[bucket] <= largest  # noqa: E731
        for small, run in itertools.groupby(np.flatnonzero(sizes).tolist(), fits):
            if small:
                yield from pool.map(work, run)
            else:
                for bucket in run:
                    yield from self._sorted_large(pool, order, bounds, bucket, int(sizes[bucket]), finish)

    def _gather(self, order: list[Any], bounds: Array, bucket: int, size: int) -> tuple[Array, Array | None]:
        keys = np.empty(size, np.uint64)
        weights = None if self._weights is None else np.empty(size, self._weights)
        if self._arena is not None and len(order) > 1:
            bases = np.array([part[0] for part in order], np.int64)
            begins, ends = bases + bounds[:, bucket], bases + bounds[:, bucket + 1]
            arc_keys.gather(*self._arena, begins, ends, keys, weights)
            return keys, weights
        at = 0
        for part_keys, part_weights in self._slices(order, bounds, bucket):
            keys[at : at + part_keys.size] = part_keys
            if weights is not None:
                weights[at : at + part_keys.size] = part_weights
            at += part_keys.size
        return keys, weights

    def _slices(self, order: list[Any], bounds: Array, bucket: int) -> Iterator[tuple[Array, Array | None]]:
        """Slice `bucket` of every block, in block order."""
        for (at, weights_at, _), row in zip(order, bounds, strict=True):
            begin, end = int(row[bucket]), int(row[bucket + 1])
            if begin == end:
                continue
            if self._arena is not None:
                keys, weights = self._arena
                yield keys[at + begin : at + end], None if weights is None else weights[at + begin : at + end]
            else:
                assert self._scratch is not None
                keys = self._scratch.read(at + begin * 8, end - begin, np.uint64)
                if self._weights is None:
                    yield keys, None
                else:
                    start = weights_at + begin * self._weights.itemsize
                    yield keys, self._scratch.read(start, end - begin, self._weights)

    def _sorted_large(
        self, pool: Pool, order: list[Any], bounds: Array, bucket: int, size: int, finish: Finish[Result]
    ) -> Iterator[Result]:
        """Sort a larger bucket than predicted: distribute it again, or stream it if all its keys are equal."""
        sample, low, high = [], None, None
        for keys, _ in self._slices(order, bounds, bucket):
            sample.append(keys[:: max(1, keys.size // 512)].copy())
            low = keys.min() if low is None else min(low, keys.min())
            high = keys.max() if high is None else max(high, keys.max())
        if low == high:
            slices = self._slices(order, bounds, bucket)
            if self._parallel == arc_keys.KEEP:
                for keys, weights in slices:
                    yield finish(keys, weights)
            else:
                self.merged += size - 1
                yield finish(*merge(slices, self._parallel))
            return
        again = Buckets(
            np.concatenate(sample),
            size,
            self._high,
            self._weights,
            self._parallel,
            self._budget,
            self._folder,
            self._threads,
        )
        try:
            for index, (keys, weights) in enumerate(self._slices(order, bounds, bucket)):
                again.add(index, np.ascontiguousarray(keys), weights)
            yield from again.sorted(pool, finish)
            self.merged += again.merged
        finally:
            again.close()

    def close(self) -> None:
        self._arena = None
        self._budget.give_back(self._held)
        self._held = 0
        if self._scratch is not None:
            self._scratch.close()
            self._scratch = None


def merge(slices: Iterator[tuple[Array, Array | None]], parallel: int) -> tuple[Array, Array | None]:
    """Slices of one repeated key, merged into one entry; weights are combined in order, as `combine` does."""
    first, weights = next(slices)
    if weights is None or parallel == arc_keys.FIRST:
        return first[:1], None if weights is None else weights[:1]
    fold = np.minimum if parallel == arc_keys.MIN else np.add
    folded = fold.accumulate(weights)[-1:]
    for _, more in slices:
        assert more is not None
        folded = fold.accumulate(np.concatenate([folded, more]))[-1:]
    return first[:1], folded


def copy(keys: Array, weights: Array | None, out: Array, out_weights: Array | None) -> None:
    out[:] = keys
    if weights is not None and out_weights is not None:
        out_weights[:] = weights


def sort(keys: Array, weights: Array | None) -> None:
    """Sort in place: a radix sort in cache, after one more distribution if the keys do not fit in the cache."""
    if keys.size <= sizes.now.few_keys:
        order = np.argsort(keys, kind="stable")
        copy(keys[order], None if weights is None else weights[order], keys, weights)
        return
    spare = np.empty_like(keys)
    spare_weights = None if weights is None else np.empty_like(weights)
    if keys.size <= 2 * sizes.now.cached_keys:
        arc_keys.radix_sort(keys, weights, spare, spare_weights)
        return
    buckets = min(MOST_BUCKETS, keys.size // sizes.now.cached_keys)
    splitters = Splitters(keys[:: max(1, keys.size >> 14)], buckets, int(keys.min()), int(keys.max()))
    starts = splitters.scatter(keys, weights, spare, spare_weights)
    for begin, end in itertools.pairwise(starts):
        part = slice(begin, end)
        arc_keys.radix_sort(
            spare[part],
            None if spare_weights is None else spare_weights[part],
            keys[part],
            None if weights is None else weights[part],
        )
    copy(spare, spare_weights, keys, weights)
