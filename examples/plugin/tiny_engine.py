"""An engine: whole partitions, as `filter` brings them, but never more than two in a task."""

from __future__ import annotations

from typing import Self

from isthmus.engines.engine import Cost, Pass, Resources
from isthmus.engines.filter import Filter


class TwoAtOnce(Filter):
    """Reads whole partitions, two at a time."""

    name = "two_at_once"
    colour = "#aa4499"

    @classmethod
    def make(cls, resources: Resources) -> Self:
        return cls(together=2)

    @classmethod
    def pass_cost(cls, scan: Pass) -> Cost:
        """As filter, but a read is at most two of 512 partitions long."""
        requests = max(scan.reads, 256)
        return Cost(scan.block_bytes, requests, float(scan.profile.seconds(scan.block_bytes, 0)))
