"""Contribution-driven order: partitions that contribute most to the answer run first.

HyTGraph (Wang et al., ICDE 2023, and its journal version), section VI. For accumulative programs the priority of a
partition is the sum of its active vertices' deltas. For searches an active vertex counts 2 where its value is more than
twice its pending value, else 1; at equal priority the earlier partition runs first, which in a hub-ordered store is
the one with the greater hubs. Filter tasks run by priority, then the zero-copy task, then compaction, whose lists are
packed meanwhile: engines declare their stage. A loaded filter task runs once more, because most updates travel two hops.

Where this differs: the priority of a task of several partitions is the sum of theirs (the paper does not say); a vertex
whose edges are split over several partitions counts in each. The rule for searches is that of the released code; the papers
have no formula for it. These are pure functions for a schedule; loading and running is elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.frontier import Array, Frontier
from isthmus.graph.lists import Lists
from isthmus.graph.partition import Partitions
from isthmus.kernels import priority as kernels


def priorities(
    frontier: Frontier, partitions: Partitions, lists: Lists, accumulative: bool, values: Array, pending: Array, team: Any
) -> Array:  # fmt: skip
    """Priority of every partition, one pass over the active vertices.

    Accumulative: `pending` are the deltas, `values` is ignored. Searches: `values` are what the vertices last sent and
    `pending` their current values; where larger is better, swap the two. With the same array twice, every active vertex
    counts 1.
    """
    found = np.zeros(len(partitions), np.float64)
    if frontier.list is not None:
        kernels.contribution_of_rows(frontier.list, *lists.arrays, partitions.cuts, accumulative, values, pending, found)
        return found

    def one(p: int) -> None:
        found[p] = kernels.contribution_of_range(
            partitions.first[p], partitions.last[p], frontier.marks, frontier.all_active, *lists.arrays,
            partitions.cuts[p], partitions.cuts[p + 1], accumulative, values, pending,
        )  # fmt: skip

    team.each(one, len(partitions))
    return found


def order(stages: Array, priorities: Array) -> Array:
    """Tasks in the order they run: by stage, then by falling priority, then in the given order."""
    return np.lexsort((-priorities, stages))
