"""The clock of a run: what the loop tells it, and what it answers.

On this machine seconds are measured, so `RunClock` answers nothing of its own. A modelled device computes how long a
run would take there (`devices/model/modelled_clock.py`), and its answers decide what pays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from isthmus.engines.engine import Delivery, Ranges, Rows, Side
from isthmus.frontier import Activity, Frontier
from isthmus.graph.lists import Lists
from isthmus.kernels.loops import rows
from isthmus.link.link import Moved, Profile


class RunClock:
    """The clock of a run whose seconds are measured."""

    in_order = False  # launches run one after the other, so that counts repeat exactly
    device_bound = False  # the device has been busy longer than the link, so that no further run is free
    back_bytes: int | None = None  # from the device to its host; None: the link does not count them

    def loaded(self, moved: Moved) -> dict[str, Moved]:
        """What was loaded before the first iteration, by engine, if it counts as a transfer of the run."""
        return {}

    def brought(self, moved: Moved) -> None:
        """Bytes crossed the link before the first iteration."""

    def worked(self, delivery: Delivery, frontier: Frontier) -> None:
        """A delivery has run."""

    def profile(self, known: Profile, buffer_bytes: int, activity: Activity, entry_bytes: int) -> Profile:
        """The costs of the link for the current activity."""
        return known

    def least_again(self, side: Side) -> int:
        """The fewest edges for which a further run of a delivery pays."""
        return 0

    def rerun_levels(self, usual: int) -> int:
        """How often a partition that stays near may run in an iteration."""
        return usual

    def transfers(self, make: Callable[[Any], Any]) -> Any:
        """What says when partitions that stay near have arrived, made by `make` of a modelled clock; None: the readers
        do.
        """
        return None

    def iteration(self) -> float | None:
        """Seconds of the iteration that has just ended on a modelled device; None: they are measured."""
        return None

    def figures(self, iterations: float) -> dict[str, float]:
        """Further seconds for the summary; `iterations`: the sum of those of all iterations."""
        return {}


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
