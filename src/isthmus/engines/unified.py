"""Unified: pages on demand, kept while there is room (ImpTM-unified-memory in HyTGraph).

On a disk lists are read through `link.pages`, which requests only missing pages from the link, one request each. A
modelled link has pages of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from isthmus.engines.engine import Cost, Delivery, Engine, GetBuffer, Pass, Resources, Side, Task
from isthmus.engines.zero_copy import lists_of
from isthmus.frontier import Frontier
from isthmus.link.link import Array, Link, Moved
from isthmus.link.pages import Pages


class Unified(Engine):
    """Reads active lists page by page."""

    name = "unified"
    code = 5
    colour = "#dd2244"
    streams = True

    @classmethod
    def make(cls, resources: Resources) -> Self:
        """Pages lie in the spare memory, unless the link has pages of its own."""
        if resources.link.has_pages:
            return cls(resources.link)
        sizes = [
            side.lists.slots * width for side in resources.sides for width in (side.width, side.weight_width) if width
        ]
        return cls(Pages(resources.link, sizes, resources.memory, resources.evicts))

    @classmethod
    def pass_cost(cls, scan: Pass) -> Cost:
        """The cost of a miss on every page; on a disk a page is a block.

        On a modelled device faults on neighbouring pages make migrations larger, so a pass comes near managed memory's
        peak rate.
        """
        if scan.pages is None:
            return Cost(scan.block_bytes, scan.blocks, float(scan.profile.seconds(0, scan.blocks)))
        page = scan.pages.page_bytes
        moved = sum(-(-size // page) * page for size in scan.sections)
        return Cost(moved, moved // scan.profile.block, moved / (scan.pages.peak_share * scan.profile.bandwidth))

    def __init__(self, pages: Link) -> None:
        self._pages = pages

    def prefetch(self, side: Side, begin: int, end: int) -> Moved:
        """Bring the pages of a side's edges begin:end near before a kernel asks for them."""
        requests = self._pages.prefetch(side.first_section, begin * side.width, end * side.width)
        if side.weight_width:
            requests += self._pages.prefetch(side.first_section + 1, begin * side.weight_width, end * side.weight_width)
        return self._pages.take() or Moved(requests * self._pages.profile.block, 0, requests)

    def tasks(self, side: Side, chosen: Array, room: int) -> list[Task]:
        return [Task(self, side, chosen)] if chosen.size else []

    def deliver(
        self, task: Task, frontier: Frontier, link: Link, get_buffer: GetBuffer, channel: int
    ) -> Iterator[Delivery]:
        block = link.profile.block
        for delivery in lists_of(task, frontier, 0, self._pages.page, get_buffer, channel, block):
            delivery.bytes = delivery.requests * block
            yield delivery
