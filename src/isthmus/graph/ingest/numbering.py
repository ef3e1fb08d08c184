"""Vertex numbers for user ids, ascending: the smallest id is vertex 0.

There are three methods. Ids that a format declares to be 0 .. n-1 need no map. Integers in a compact range use a bitmap
with ranks. All others (sparse integers, hashes of strings) are sorted and looked up in a table, which is whole in
memory or, if the budget is too small, in segments read from a scratch file.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from isthmus.errors import GraphFormatError
from isthmus.graph.ingest.buckets import Buckets, sort
from isthmus.graph.ingest.edges import Blocks, EdgeBlock, EdgeSource, Waiting
from isthmus.graph.store.files import Array, Scratch, aligned_empty
from isthmus.graph.store.writer import Writer
from isthmus.kernels.store import arc_keys, id_search
from isthmus.memory import Budget
from isthmus.threads import Pool

SIGN = 1 << 63
SPARSEST = 64  # bitmap bits per endpoint read: beyond that a sorted table is smaller
SAMPLE = 1 << 16
Translated = tuple[EdgeBlock, tuple[Array, Array]]  # keys, and the numbers found for them so far


class Numbering(Protocol):
    """A map of all vertices that turns blocks of keys into blocks of vertex numbers."""

    vertices: int
    kind: str

    def write(self, writer: Writer) -> None: ...
    def numbered(self, edges: Waiting, pool: Pool) -> Blocks: ...
    def close(self) -> None: ...


def number_dtype(vertices: int) -> Any:
    return np.uint32 if vertices <= 1 << 32 else np.uint64


def in_pool(edges: Waiting, pool: Pool, work: Callable[[EdgeBlock], EdgeBlock]) -> Blocks:
    """Apply `work` to every waiting block, in order; each block is released when done."""

    def one(index: int) -> EdgeBlock:
        block = work(edges.load(index))
        edges.release(index)
        return block

    return pool.map(one, range(len(edges)))


class Dense:
    """Ids are 0 .. vertices - 1 already."""

    kind = "dense"

    def __init__(self, vertices: int, name: str) -> None:
        self.vertices, self._name = vertices, name

    def write(self, writer: Writer) -> None:
        pass

    def check(self, extent: tuple[int, int]) -> None:
        """Check that the ids are in range; `extent` is (lowest, highest)."""
        low, high = extent
        if low < 0 or high >= self.vertices:
            raise GraphFormatError(
                f"{self._name}: expected ids from 0 to {self.vertices - 1}, got {low if low < 0 else high}"
            )

    def number(self, block: EdgeBlock) -> EdgeBlock:
        for column in (block.sources, block.targets):
            if column.size:
                self.check((0, int(column.max())))
        return block

    def numbered(self, edges: Waiting, pool: Pool) -> Blocks:
        return in_pool(edges, pool, self.number)

    def close(self) -> None:
        pass


class Bitmap:
    """Integer ids in a compact range: one bit each, and a count of the bits before each word."""

    def __init__(self, low: int, high: int, signed: bool, budget: Budget, name: str) -> None:
        self._base = np.uint64(low % (1 << 64))
        self._low, self._signed, self._name = low, signed, name
        self._words = np.zeros((high - low) // 64 + 1, np.uint64)
        self._held = bitmap_bytes(low, high)
        self._budget = budget
        budget.take(self._held)
        self.vertices = 0
        self.kind = "int64"
        self._last = high

    def mark(self, keys: Array) -> None:
        id_search.mark(keys, self._base, self._words)

    def count(self) -> None:
        """Count the vertices; call after the last mark."""
        self._before = np.empty(self._words.size, np.uint32 if self._last - self._low < 1 << 32 else np.uint64)
        self.vertices = int(id_search.count_bits(self._words, self._before))
        if self._low == 0 and self._last + 1 == self.vertices:
            self.kind = "dense"
        elif self._last >= SIGN:
            self.kind = "uint64"

    def write(self, writer: Writer) -> None:
        if self.kind == "dense":
            return
        writer.section("ids.values", self.kind, self.vertices)
        for first in range(0, self._words.size, 1 << 14):
            words = self._words[first : first + (1 << 14)]
            keys = np.empty(words.size * 64, np.uint64)
            count = id_search.list_bits(words, first, self._base, keys)
            writer.append("ids.values", keys[:count].view(self.kind))

    def numbered(self, edges: Waiting, pool: Pool) -> Blocks:
        def work(block: EdgeBlock) -> EdgeBlock:
            if self.kind == "dense" and block.sources.itemsize == 4:
                return block
            return EdgeBlock(self._ranks(block.sources), self._ranks(block.targets), block.weights)

        return in_pool(edges, pool, work)

    def _ranks(self, keys: Array) -> Array:
        out = np.empty(keys.size, number_dtype(self.vertices))
        bad = id_search.rank_in_bitmap(keys, self._base, self._words, self._before, out)
        if bad >= 0:
            key = int(keys[bad])
            undeclared(self._name, key - (1 << 64) if self._signed and key >= SIGN else key)
        return out

    def close(self) -> None:
        self._budget.give_back(self._held)
        self._held = 0


def bitmap_bytes(low: int, high: int) -> int:
    return ((high - low) // 64 + 1) * 12


def undeclared(name: str, what: Any) -> None:
    raise GraphFormatError(f"{name}: an edge names vertex {what!r}, which the vertex file does not list")


class Segment:
    """Part of a sorted table of keys, with a directory that narrows each search."""

    def __init__(self, keys: Array, ranks: Array | None, base: int) -> None:
        self.keys, self.ranks, self.base = keys, ranks, base
        self.low = keys[0] if keys.size else np.uint64(0)
        spread = int(keys[-1]) - int(self.low) if keys.size else 0
        cells = max(1, keys.size // 4)
        self.shift = np.uint64(max(0, spread.bit_length() - cells.bit_length()))
        self.directory = np.empty((spread >> int(self.shift)) + 2, np.int64)
        id_search.fill_directory(keys, self.low, self.shift, self.directory)

    def find(self, keys: Array, flip: np.uint64, out: Array) -> int:
        """Fill in the numbers of the keys in this segment; returns how many it has."""
        return int(
            id_search.rank_in_table(
                keys, flip, self.keys, self.ranks, self.base, self.low, self.shift, self.directory, out
            )
        )


class Table:
    """Sorted keys of all vertices. `name_of` turns a missing key into text for the error message."""

    BYTES_PER_KEY = 12  # key + directory; ranks add four

    def __init__(self, kind: str, flip: int, budget: Budget, folder: Path, name: str) -> None:
        self.kind, self._flip, self._budget, self._name = kind, np.uint64(flip), budget, name
        self._folder = folder
        self._scratch: Scratch | None = None
        self._parts: list[tuple[Any, ...]] = []
        self._held = 0
        self._whole: Segment | None = None
        self.vertices = 0

    def append(self, keys: Array, ranks: Array | None = None) -> None:
        """Add more keys, ascending. `ranks`: their vertex numbers, if these do not follow the order of the keys."""
        size = keys.size * (self.BYTES_PER_KEY + (0 if ranks is None else 4)) * 2
        part = (keys, ranks, self.vertices)
        if self._scratch is None and self._budget.take(size):
            self._held += size
            self._parts.append(part)
        else:
            if self._scratch is None:
                self._spill()
            self._parts.append(self._on_disk(*part))
        self.vertices += int(keys.size)

    def _spill(self) -> None:
        """Move the whole table to disk: if half stayed in memory, there would be no memory to read the other half."""
        self._scratch = Scratch(self._folder)
        self._parts = [self._on_disk(*part) for part in self._parts]
        self._budget.give_back(self._held)
        self._held = 0

    def _on_disk(self, keys: Array, ranks: Array | None, base: int) -> tuple[int, list[int], int]:
        assert self._scratch is not None
        places = [self._scratch.append(aligned_copy(column)) for column in (keys, ranks) if column is not None]
        return int(keys.size), places, base

    def _load(self, parts: list[tuple[Any, ...]]) -> Segment:
        """One segment from consecutive parts."""
        columns: list[tuple[Array, Array | None]] = []
        for first, second, _ in parts:
            if isinstance(first, np.ndarray):
                columns.append((first, second))
            else:
                assert self._scratch is not None
                keys = self._scratch.read(second[0], first, np.uint64)
                columns.append((keys, self._scratch.read(second[1], first, np.uint32) if len(second) > 1 else None))
        keys = np.concatenate([keys for keys, _ in columns]) if columns else np.empty(0, np.uint64)
        ranks = None
        if columns and columns[0][1] is not None:
            ranks = np.concatenate([ranks for _, ranks in columns if ranks is not None])
        return Segment(keys, ranks, parts[0][2] if parts else 0)

    def keys(self) -> Iterator[Array]:
        """All keys, ascending, in pieces."""
        for part in self._parts:
            yield self._load([part]).keys

    def write(self, writer: Writer) -> None:
        """Write integer ids; string ids are written by `Names`."""
        if self.kind in ("string", "dense"):
            return
        writer.section("ids.values", self.kind, self.vertices)
        for keys in self.keys():
            writer.append("ids.values", (keys ^ self._flip).view(self.kind))

    def numbered(self, edges: Waiting, pool: Pool) -> Blocks:
        if self._scratch is None:
            if self._whole is None:
                self._whole, self._parts = self._load(self._parts), []
            whole = self._whole

            def work(block: EdgeBlock) -> EdgeBlock:
                return self._checked(self._translate(whole, (block, self._blank(block))))

            yield from in_pool(edges, pool, work)
        else:
            yield from self._numbered_by_segment(edges, pool)

    def _numbered_by_segment(self, edges: Waiting, pool: Pool) -> Blocks:
        """Load as many blocks as fit, look them up in every segment of the table, continue with the next blocks."""
        limit = self._budget.left // 3
        for group in groups(range(len(edges)), limit, lambda i: edges.size(i) * 24):
            blocks = list(pool.map(edges.load, group))
            outs = [self._blank(block) for block in blocks]
            for parts in groups(self._parts, limit, lambda part: self._size(part) * self.BYTES_PER_KEY * 2):
                segment = self._load(parts)
                translate = functools.partial(self._translate, segment)
                for _ in pool.map(translate, zip(blocks, outs, strict=True)):
                    pass
            for index, block, out in zip(group, blocks, outs, strict=True):
                edges.release(index)
                yield self._checked((block, out))

    @staticmethod
    def _size(part: tuple[Any, ...]) -> int:
        return part[0].size if isinstance(part[0], np.ndarray) else part[0]

    def _blank(self, block: EdgeBlock) -> tuple[Array, Array]:
        dtype = number_dtype(self.vertices + 1)  # one more, for the marker
        none = np.iinfo(dtype).max
        return np.full(block.sources.size, none, dtype), np.full(block.sources.size, none, dtype)

    def _translate(self, segment: Segment, pair: Translated) -> Translated:
        block, (sources, targets) = pair
        segment.find(block.sources, self._flip, sources)
        segment.find(block.targets, self._flip, targets)
        return pair

    def _checked(self, pair: Translated) -> EdgeBlock:
        block, (sources, targets) = pair
        for column, keys in ((sources, block.sources), (targets, block.targets)):
            bad = id_search.first_missing(column)
            if bad >= 0:
                key = int(keys[bad])
                signed = key - (1 << 64) if self._flip and key >= SIGN else key
                undeclared(self._name, signed if self.kind != "string" else "(a string)")
        return EdgeBlock(sources, targets, block.weights)

    def close(self) -> None:
        self._budget.give_back(self._held)
        self._held = 0
        self._parts, self._whole = [], None
        if self._scratch is not None:
            self._scratch.close()
            self._scratch = None


def aligned_copy(column: Array) -> Array:
    out = aligned_empty(column.size, column.dtype)
    out[:] = column
    return out


def groups(items: Any, limit: int, size: Callable[[Any], int]) -> Iterator[list[Any]]:
    """Groups of consecutive items whose sizes together stay within `limit`; at least one item each."""
    group: list[Any] = []
    used = 0
    for item in items:
        cost = size(item)
        if group and used + cost > limit:
            yield group
            group, used = [], 0
        group.append(item)
        used += cost
    if group:
        yield group


def number_integers(
    source: EdgeSource,
    edges: Waiting,
    declared: Waiting,
    extent: tuple[int, int],
    budget: Budget,
    folder: Path,
    pool: Pool,
) -> Numbering:
    """The numbering of integer ids within `extent`; `declared` are vertices listed beside the edges."""
    low, high = extent
    count = declared.edges + (0 if source.declares_vertices else 2 * edges.edges)
    sides = (declared,) if source.declares_vertices else (declared, edges)
    places = [(side, index) for side in sides for index in range(len(side))]
    if high - low < max(1 << 20, SPARSEST * count) and bitmap_bytes(low, high) * 2 <= budget.left:
        bitmap = Bitmap(low, high, source.signed, budget, source.name)

        def mark(place: tuple[Waiting, int]) -> None:
            block = place[0].load(place[1])
            bitmap.mark(block.sources)
            bitmap.mark(block.targets)

        for _ in pool.map(mark, places):
            pass
        bitmap.count()
        return bitmap
    flip = SIGN if source.signed else 0
    table = Table("uint64" if high >= SIGN else "int64", flip, budget, folder, source.name)
    waiting = Waiting(budget, folder)
    for keys in pool.map(lambda place: endpoints(place[0].load(place[1]), np.uint64(flip)), places):
        waiting.add(EdgeBlock(keys, np.empty(0, np.uint64)))
    for keys in sorted_keys(waiting, None, budget, folder, pool):
        table.append(keys)
    if low == 0 and high + 1 == table.vertices:
        table.kind = "dense"
    return table


def endpoints(block: EdgeBlock, flip: np.uint64) -> Array:
    """The distinct ids of a block, sorted, as unsigned keys in the same order as the ids."""
    keys = np.concatenate([block.sources.astype(np.uint64), block.targets.astype(np.uint64)]) ^ flip
    sort(keys, None)
    return keys[: id_search.unique(keys)].copy()  # a copy: a slice would keep the whole array in memory


def sorted_keys(waiting: Waiting, ranks: Any, budget: Budget, folder: Path, pool: Pool) -> Iterator[Any]:
    """The distinct `sources` of waiting blocks, sorted; or with their `targets`, as type `ranks`."""
    sample = waiting.sample(SAMPLE).sources
    buckets = Buckets(sample, waiting.edges, (1 << 64) - 1, ranks, arc_keys.FIRST, budget, folder, pool.threads)

    def part(index: int) -> None:
        block = waiting.load(index)
        buckets.add(index, block.sources, block.targets.astype(ranks) if ranks is not None else None)
        waiting.release(index)

    def finish(keys: Array, weights: Array | None) -> Any:
        return keys[: id_search.unique(keys)].copy() if weights is None else (keys, weights)

    try:
        for _ in pool.map(part, range(len(waiting))):
            pass
        yield from buckets.sorted(pool, finish)
    finally:
        buckets.close()
        waiting.close()
