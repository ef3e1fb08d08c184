"""A side of made-up edges behind a link to memory, for tests of engines and caches.

Edge e leads to vertex e and weighs 3 e + 1, so that what was delivered says where it came from.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from isthmus.engines.engine import Buffer, Delivery, Rows, Side
from isthmus.frontier import Frontier
from isthmus.graph.lists import Lists
from isthmus.graph.partition import cut
from isthmus.graph.store.files import aligned_empty
from isthmus.link.link import Extents, Link
from isthmus.link.ram import PROFILE, RamLink
from isthmus.runtime.near import budget

BLOCK = 64
Edges = Counter[tuple[int, int, int]]  # (vertex, target, weight)


@dataclass
class Far:
    """Edges of vertices with these degrees."""

    side: Side
    link: Link

    @property
    def vertices(self) -> int:
        return len(self.side.lists)

    def edges(self, active: Iterable[int]) -> Edges:
        begins, ends = self.side.lists.arrays
        return Counter(
            (u, e, 3 * e + 1 if self.side.weight_width else 0) for u in active for e in range(begins[u], ends[u])
        )

    def frontier(self, active: Iterable[int] | None, dense: bool = False) -> Frontier:
        found = Frontier(self.vertices, 1)
        found.start(None if active is None else np.array(sorted(active), np.int64))
        if dense:
            found.list = None
        return found

    def buffer(self, blocks: int = 24) -> Buffer:
        return Buffer(aligned_empty(blocks * BLOCK, np.uint8), (self.side.width, self.side.weight_width), BLOCK)


def far(
    degrees: Iterable[int],
    target: Any = np.uint32,
    weight: Any = np.int32,
    partition: int = 256,
    name: str = "out",
    gaps: Iterable[int] | None = None,
) -> Far:
    """A side whose partitions have about `partition` bytes; `gaps`: slots without an edge behind each list."""
    lists = lists_of(degrees, gaps)
    slots = np.arange(lists.slots)
    sections = [slots.astype(target)] + ([(3 * slots + 1).astype(weight)] if weight is not None else [])
    return Far(
        make_side(lists, target, weight, partition, name, BLOCK), RamLink(sections, replace(PROFILE, block=BLOCK))
    )


def lists_of(degrees: Iterable[int], gaps: Iterable[int] | None = None) -> Lists:
    """Lists of these lengths, with these gaps behind them or with none."""
    lengths = np.array(list(degrees), np.int64)
    if gaps is None:
        return Lists.of(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))
    ends_of_gaps = np.cumsum(lengths + np.array(list(gaps), np.int64))
    begins = np.concatenate([[0], ends_of_gaps[:-1]]).astype(np.int64)[: lengths.size]
    return Lists(begins, begins + lengths, int(ends_of_gaps[-1]) if lengths.size else 0)


def make_side(lists: Lists, target: Any, weight: Any, partition: int, name: str, block: int) -> Side:
    widths = np.dtype(target).itemsize, 0 if weight is None else np.dtype(weight).itemsize
    return Side(name, lists, cut(lists, sum(widths), partition), *widths, target, weight, 0, block)


class Endless(Link):
    """Sections of any length, worked out when they are read: targets e % 2**32 (4 bytes), weights e % 1000 (4
    bytes).
    """

    def __init__(self, block: int = 4096) -> None:
        self.profile, self.notes = replace(PROFILE, block=block), []

    def move(self, extents: Extents, buffer: Any, channel: int = 0) -> int:
        for section, offset, length, place in extents.each():
            entries = np.arange(offset // 4, (offset + length) // 4)
            buffer[place : place + length] = (entries % (1000 if section else 1 << 32)).astype(np.uint32).view(np.uint8)
        return extents.lengths.size

    def close(self) -> None:
        pass


def mostly_cache(monkeypatch: pytest.MonkeyPatch, buffer: int) -> None:
    """Runs whose recipe keeps edges near get buffers of at most `buffer` bytes; the rest of their budget is for the
    cache.
    """
    split = budget.split_budget

    def planned(*given: Any) -> budget.Split:
        near = split(*given)
        if near.cache or (given[0].keeps and not near.resident):
            spare = max(0, near.edges - budget.BUFFERS * buffer)
            near.edges, near.cache = near.edges - spare, near.cache + spare
        return near

    monkeypatch.setattr(budget, "split_budget", planned)


def edges_of(delivery: Delivery, frontier: Frontier) -> Edges:
    """The active edges a delivery holds."""
    found: Edges = Counter()
    edges, lists = delivery.edges, delivery.task.side.lists

    def add(u: int, at: int, weight_at: int, length: int) -> None:
        targets = delivery.targets[at : at + length].tolist()
        weights = (
            [0] * length if delivery.weights is None else delivery.weights[weight_at : weight_at + length].tolist()
        )
        assert len(targets) == len(weights) == length
        found.update((u, t, int(w)) for t, w in zip(targets, weights, strict=True))

    if isinstance(edges, Rows):
        for u, at, weight_at, length in zip(
            edges.vertices, edges.begins, edges.weight_begins, edges.lengths, strict=True
        ):
            add(int(u), int(at), int(weight_at), int(length))
        return found
    for k in range(edges.first.size):
        for u in frontier.rows(int(edges.first[k]), int(edges.last[k])).tolist():
            low, high = max(lists.begins[u], edges.begin[k]), min(lists.ends[u], edges.end[k])
            if low < high:
                add(u, int(low - edges.base[k]), int(low - edges.weight_base[k]), int(high - low))
    return found


def delivered(
    deliveries: Iterable[Delivery], frontier: Frontier, keep: Callable[[Delivery], None] | None = None
) -> Edges:
    """All active edges of deliveries, each of which `keep` may look at."""
    found: Edges = Counter()
    for delivery in deliveries:
        found += edges_of(delivery, frontier)
        if keep is not None:
            keep(delivery)
    return found


def our_threads() -> set[threading.Thread]:
    """Threads that Isthmus has started; what earlier tests have left to the collector may be among them."""
    return {thread for thread in threading.enumerate() if thread.name.startswith("isthmus")}


def together(count: int, work: Callable[[int], None]) -> None:
    """work(0) ... work(count - 1), each in a thread, all from the same moment on; raises what one of them raised."""
    start, failures = threading.Barrier(count), []

    def run(number: int) -> None:
        start.wait()
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
