"""Modelled seconds: how long an iteration would take on the device of a modelled link.

The loop runs as on any link. It notes the bytes that each delivery moved and the edges that were followed. At the end
of an iteration a clock of three resources (`devices/model/resource_clock.py`) computes how long host, link and device
would have been busy. Then the device scans the frontier, and copies back what the host needs: the frontier and the
activity of every partition if the host decides, else one flag that says whether to continue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

from isthmus import sizes
from isthmus.devices.model import costs
from isthmus.devices.model.link import ModelLink
from isthmus.devices.model.resource_clock import DEVICE, HOST, LINK, Clock
from isthmus.devices.run_clock import RunClock, followed
from isthmus.engines.engine import BUFFERS, Delivery, Side
from isthmus.frontier import Activity, Frontier
from isthmus.link.link import Moved, Profile, SingleCopy
from isthmus.policies.recipe import Recipe
from isthmus.schedule.levels import levels

ROUND_SHARE = 1 / 16  # tried 1, 1/4, 1/8, 1/16, 1/64 and 0: nearly the fastest, with far fewer bytes than 1
FLAG_BYTES, ACTIVITY_BYTES = 4, 12  # whether any vertex is active; active vertices, edges and requests of a partition


class ModelledClock(RunClock):
    """The clock of one run on a modelled device."""

    in_order = True

    def __init__(self, link: ModelLink, recipe: Recipe, vertices: int, partitions: int) -> None:
        self.link, self.device = link, link.device
        self.clock = Clock(BUFFERS, self.device.host.cores)
        self._recipe = recipe
        self._back_before = link.total.back_bytes
        self._vertices = vertices
        self._back_bytes = -(-vertices // 8) + ACTIVITY_BYTES * partitions if recipe.host_decides else FLAG_BYTES
        self._worked: list[tuple[Delivery, int]] = []
        self.set_up = 0.0  # seconds before the first iteration
        self._busy = {LINK: 0.0, DEVICE: 0.0}  # seconds, so far

    def loaded(self, moved: Moved) -> dict[str, Moved]:
        return {"resident": moved}

    def brought(self, moved: Moved) -> None:
        self.clock.alone(LINK, moved.link_seconds)
        self.set_up += self.clock.finish().seconds

    def worked(self, delivery: Delivery, frontier: Frontier) -> None:
        """Note a delivery that has run. Not thread-safe."""
        self._worked.append((delivery, followed(delivery, frontier)))

    def kernel(self, delivery: Delivery, edges: int, launches: int = 1) -> float:
        return float(costs.kernel(self.device, edges, delivery.task.side.entry_bytes, launches))

    def profile(self, known: Profile, buffer_bytes: int, activity: Activity, entry_bytes: int) -> Profile:
        """The link's profile for the current activity: a copy costs its latency and a launch, and one core packs few
        lists.

        A copy is as large as a buffer, or as all active edges if they are fewer.
        """
        if not self._recipe.weighs_launches:
            return known
        size = max(1, min(buffer_bytes, int(activity.edges.sum()) * entry_bytes))
        seconds = float(costs.bulk(self.device, size)) + self.device.near.launch_seconds
        cores = 1 if activity.vertices.sum() < sizes.now.few_rows else self.device.host.cores
        packing = self.device.host.pack_bandwidth * cores
        alone = size < buffer_bytes  # a single copy, so packing does not overlap with a transfer
        if alone:
            packing = 1 / (1 / packing + seconds / size)
        figures = {**vars(self.link.profile), "bandwidth": size / seconds, "compaction": packing}
        return SingleCopy(**figures) if alone else Profile(**figures)

    def least_again(self, side: Side) -> int:
        """ROUND_SHARE of the edges that cross the link during a launch, if the recipe weighs launches."""
        if not self._recipe.weighs_launches:
            return 0
        return int(ROUND_SHARE * self.device.near.launch_seconds * self.device.link.bandwidth / side.entry_bytes)

    def rerun_levels(self, usual: int) -> int:
        return levels(self.device.near.bandwidth, self.device.link.bandwidth)

    def transfers(self, make: Callable[[Any], Any]) -> Any:
        return make(self)

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
    def device_bound(self) -> bool:  # type: ignore[override]
        """Whether the device has been busy longer than the link so far, and the recipe weighs launches."""
        return self._recipe.weighs_launches and self._busy[LINK] < self._busy[DEVICE]

    def figures(self, iterations: float) -> dict[str, float]:
        return {"modelled": self.set_up + iterations}

    @property
    def back_bytes(self) -> int:  # type: ignore[override]
        return self.link.total.back_bytes - self._back_before

    def _submit(self, job: list[tuple[Delivery, int]]) -> None:
        first = job[0][0]
        moved = Moved()
        for delivery, _ in job:
            moved.add(delivery.moved or Moved())
        streamed = first.task.engine.streams and not moved.faults  # a fault stalls the kernel until its page has come
        edges = sum(edges for _, edges in job)
        seconds = self.kernel(first, edges, 1 + sum(delivery.further_runs for delivery, _ in job))
        if not self._recipe.overlap:
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
