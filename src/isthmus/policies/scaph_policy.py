"""Scaph's choice: a high-value partition moves whole and stays near; of a low-value one only the useful edges move.

Scaph (Zheng et al., ATC 2020), section 4. The value of a partition (formula 1) is the number of edges that active
vertices will use, now and later. Comparing the throughput of both ways (formulas 2-4) needs the later part, which is
unknown, so the paper decides by UD, the edges of the active vertices. A partition is of high value if

    UD > alpha x edges of the partition, or
    UD > beta x edges of the partition, and UD has grown since the last iteration.

High-value partitions are run again by `schedule/levels.py`; of low-value ones UD is packed, moved and run once. The
evaluation (section 6.3) compares four variants. HVSP treats all partitions as high-value, LVSP all as low-value. HBASE
runs a loaded partition several times in a row instead of through the queue (after CLIP). LBASE is LVSP without packing:
whole partitions run once (after Graphie) and stay near while there is room. All of them move and run whole partitions
one by one.

Where this differs: the release has only the first test. The paper does not say how often HBASE runs a partition (here:
twice), whether it keeps any near (yes), nor what UD was before the first iteration (0).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isthmus.frontier import Activity
from isthmus.link.link import Array, Profile
from isthmus.policies.policy import COMPACTION, FILTER, NOTHING, Policy

ALPHA = 0.5  # Scaph: useful edges are dominant
BETA = 0.3  # Scaph: a medium share, where it grows


@dataclass(frozen=True)
class Scaph:
    """Decides by the useful edges of this iteration and of the last one, which the caller keeps."""

    alpha: float = ALPHA
    beta: float = BETA
    extract: bool = True  # pack low-value partitions; otherwise they move whole
    queue: bool = True  # run high-value partitions again by the k-level queue; otherwise `runs` times in a row
    runs: int = 1

    def high(self, activity: Activity, last_edges: Array | None = None) -> Array:
        """Which partitions are of high value; `last_edges`: active edges one iteration ago, None before the first."""
        useful, whole = activity.edges, activity.partition_edges
        grown = useful > (0 if last_edges is None else last_edges)
        return np.asarray((useful > self.alpha * whole) | (grown & (useful > self.beta * whole)))

    def choose(self, activity: Activity, last_edges: Array | None = None) -> Array:
        """FILTER for partitions that move whole, COMPACTION for packed ones, NOTHING where nothing is active."""
        low = COMPACTION if self.extract else FILTER
        choice = np.where(self.high(activity, last_edges), FILTER, low)
        return np.where(activity.edges > 0, choice, NOTHING)


class ByValue(Policy):
    """Scaph's choice as a policy: the activity has the last iteration's edges."""

    def __init__(self, name: str, scaph: Scaph) -> None:
        self.name, self._scaph = name, scaph
        self.engines = ("filter", "compaction")

    def choose(self, activity: Activity, profile: Profile, entry_bytes: int) -> Array:
        return self._scaph.choose(activity, activity.last_edges)


ONCE = ("lvsp", "lbase")  # variants that run nothing again
PACKED = ("lvsp",)  # variants that move nothing whole, so that nothing can stay near
VARIANTS = {
    "scaph": Scaph(),
    "hvsp": Scaph(alpha=0, beta=0),
    "lvsp": Scaph(alpha=1, beta=1),
    "hbase": Scaph(queue=False, runs=2),
    "lbase": Scaph(alpha=1, beta=1, extract=False),
}
