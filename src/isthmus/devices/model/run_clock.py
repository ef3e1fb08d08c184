"""Modelled seconds: how long an iteration would take on the device of a modelled link.

The loop runs as on any link. It notes the bytes that each delivery moved and the edges that were followed. At the end
of an iteration a clock of three resources (`devices/model/resource_clock.py`) computes how long host, link and device
would have been busy. Then the device scans the frontier, and copies back what the host needs: the frontier and the
activity of every partition if the host decides, else one flag that says whether to continue.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import numpy as np

from isthmus import sizes
from isthmus.devices.model import costs
from isthmus.devices.model.link import ModelLink
from isthmus.devices.model.resource_clock import DEVICE, HOST, LINK, Clock
from isthmus.engines.engine import Delivery, Ranges, Rows, Side
from isthmus.frontier import Activity, Frontier
from isthmus.graph.lists import Lists
from isthmus.kernels.loops import rows
from isthmus.link.link import Moved, Profile, SingleCopy
from isthmus.policies.recipes import Recipe
from isthmus.runtime.near.budget import BUFFERS

ROUND_SHARE = 1 / 16  # tried 1, 1/4, 1/8, 1/16, 1/64 and 0: nearly the fastest, with far fewer bytes than 1
FLAG_BYTES, ACTIVITY_BYTES = 4, 12  # whether any vertex is active; active vertices, edges and requests of a partition


class Modelled:
    """The clock of one run."""

    def __init__(self, link: ModelLink, recipe: Recipe, vertices: int, partitions: int) -> None:
        self.link, self.device = link, link.device
        self.clock = Clock(BUFFERS, self.device.host.cores)
        self._overlap = recipe.overlap
        self._vertices = vertices
        self._back_bytes = -(-vertices // 8) + ACTIVITY_BYTES * partitions if recipe.host_decides else FLAG_BYTES
        self._worked: list[tuple[Delivery, int]] = []
        self.set_up = 0.0  # seconds before the first iteration
        self._busy = {LINK: 0.0, DEVICE: 0.0}  # seconds, so far

    def brought(self, moved: Moved | None) -> None:
        """Charge bytes that crossed the link before the first iteration."""
        if moved is not None:
            self.clock.alone(LINK, moved.link_seconds)
            self.set_up += self.clock.finish().seconds

    def worked(self, delivery: Delivery, frontier: Frontier) -> None:
        """Note a delivery that has run. Not thread-safe."""
        self._worked.append((delivery, followed(delivery, frontier)))

    def kernel(self, delivery: Delivery, edges: int, launches: int = 1) -> float:
        return float(costs.kernel(self.device, edges, delivery.task.side.entry_bytes, launches))

    def profile(self, room: int, activity: Activity, entry_bytes: int) -> Profile:
        """The link's profile for the current activity: a copy costs its latency and a launch, and one core packs few
        lists.

        A copy is as large as a buffer of `room` bytes, or as all active edges if they are fewer.
        """
        size = max(1, min(room, int(activity.edges.sum()) * entry_bytes))
        seconds = float(costs.bulk(self.device, size)) + self.device.near.launch_seconds
        cores = 1 if activity.vertices.sum() < sizes.now.few_rows else self.device.host.cores
        packing = self.device.host.pack_bandwidth * cores
        alone = size < room  # a single copy, so packing does not overlap with a transfer
        if alone:
            packing = 1 / (1 / packing + seconds / size)
        figures = {**vars(self.link.profile), "bandwidth": size / seconds, "compaction": packing}
        return SingleCopy(**figures) if alone else Profile(**figures)

    def least_again(self, side: Side) -> int:
        """The fewest edges for which a further run pays: ROUND_SHARE of those that cross the link during its launch."""
        return int(ROUND_SHARE * self.device.near.launch_seconds * self.device.link.bandwidth / side.entry_bytes)

    def submit(self) -> None:
        """Submit the deliveries noted so far to the clock."""
        for job in jobs(self._worked):
            self._submit(job)
        self._worked = []

    def iteration(self) -> float:
        """Modelled seconds of the iteration that has just ended."""
        self.submit()
        self.clock.alone(DEVICE, float(costs.scan(self.device, self._vertices)))
        with self.link.lend() as channel:
            self.link.copy_back(self._back_bytes, channel)
            self.clock.alone(LINK, self.link.take(channel).link_seconds)
        line = self.clock.finish()
        for resource in self._busy:
            self._busy[resource] += line.busy(resource)
        return line.seconds

    @property
    def link_bound(self) -> bool:
        """Whether the link has been busy longer than the device, so far."""
        return self._busy[LINK] >= self._busy[DEVICE]

    def _submit(self, job: list[tuple[Delivery, int]]) -> None:
        first = job[0][0]
        moved = Moved()
        for delivery, _ in job:
            moved.add(delivery.moved or Moved())
        streamed = first.task.engine.streams and not moved.faults  # a fault stalls the kernel until its page has come
        edges = sum(edges for _, edges in job)
        seconds = self.kernel(first, edges, 1 + sum(delivery.further_runs for delivery, _ in job))
        if not self._overlap:
            for resource, busy in ((HOST, moved.host_seconds), (LINK, moved.link_seconds), (DEVICE, seconds)):
                self.clock.alone(resource, busy)
            return
        self.clock.submit(
            moved.host_seconds, moved.link_seconds, seconds, streamed=streamed, buffered=first.buffer is not None
        )


def jobs(worked: list[tuple[Delivery, int]]) -> Iterable[list[tuple[Delivery, int]]]:
    """Deliveries in order of arrival, grouped where one kernel would fetch them."""
    ordered = sorted(worked, key=lambda each: each[0].number)

    def key(each: tuple[Delivery, int]) -> tuple[int, int]:
        delivery = each[0]
        return id(delivery.task), -1 if delivery.task.engine.streams else delivery.number

    return (list(group) for _, group in groupby(ordered, key))


def followed(delivery: Delivery, frontier: Frontier) -> int:
    """Edges that were followed, further runs included."""
    edges, lists = delivery.edges, delivery.task.side.lists
    if isinstance(edges, Rows):
        return int(edges.lengths.sum()) + delivery.again_edges
    counted = frontier.counted_edges(lists, edges.begin, edges.end)
    return (marked_edges(edges, lists, frontier) if counted is None else counted) + delivery.again_edges


def marked_edges(edges: Ranges, lists: Lists, frontier: Frontier) -> int:
    """Active edges in ranges, by one pass over the marks."""
    count = edges.first.size
    found = np.zeros((3, count), np.int64)
    for k in range(count):
        rows.activity_of_range(
            k,
            edges.first[k],
            edges.last[k],
            frontier.marks,
            frontier.all_active,
            *lists.arrays,
            edges.begin[k],
            edges.end[k],
            1,
            0,
            1,
            True,
            *found,
        )
    return int(found[1].sum())
