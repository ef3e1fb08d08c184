"""Contribution-driven order: partitions that contribute most to the answer run first.

HyTGraph (Wang et al., ICDE 2023, and its journal version), section VI. Programs by deltas: the priority of a partition
is the sum of its active vertices' deltas. Others, such as searches and components: partitions of hubs run first. The
papers sort the top 8 % of the vertices by out-degree x in-degree to the front (`graph/order.py`) once, when data is
prepared, so that is the order in which a hub-ordered store has its partitions. In a store in natural order there is
nothing to go by, and a run says so.

Filter tasks run by priority, then the zero-copy task, then compaction, whose lists are packed meanwhile: engines
declare their stage. A loaded filter task runs once more, because most updates travel two hops.

Where this differs: the priority of a task of several partitions is the sum of theirs (the paper does not say); a vertex
whose edges are split over several partitions counts in each. The release does not sort hubs; for searches it counts
active vertices, 2 where the value is more than twice the pending one, else 1. That is not in the papers, and in hub
order it would run partitions of hubs last: they have the fewest vertices. These are pure functions for a schedule;
loading and running is elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.frontier import Array, Frontier
from isthmus.graph.lists import Lists
from isthmus.graph.partition import Partitions
from isthmus.kernels.loops import priority as kernels


def priorities(frontier: Frontier, partitions: Partitions, lists: Lists, deltas: Array, team: Any) -> Array:
    """Priority of every partition by deltas, one pass over the active vertices."""
    found = np.zeros(len(partitions), np.float64)
    if frontier.list is not None:
        kernels.contribution_of_rows(frontier.list, *lists.arrays, partitions.cuts, deltas, found)
        return found

    def one(p: int) -> None:
        found[p] = kernels.contribution_of_range(
            partitions.first[p],
            partitions.last[p],
            frontier.marks,
            frontier.all_active,
            *lists.arrays,
            partitions.cuts[p],
            partitions.cuts[p + 1],
            deltas,
        )

    team.each(one, len(partitions))
    return found


def order(stages: Array, priorities: Array | None = None) -> Array:
    """Tasks in the order they run: by stage, then by falling priority, then in the given order, which is that of the
    store.
    """
    return np.argsort(stages, kind="stable") if priorities is None else np.lexsort((-priorities, stages))
