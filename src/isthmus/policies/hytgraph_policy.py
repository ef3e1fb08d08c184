"""HyTGraph's choice: the engine that costs a partition the fewest round trips of the link.

HyTGraph (Wang et al., ICDE 2023, and its journal version), section V and Algorithm 1. A request carries m bytes (the
link's block), a round trip MR requests. Per partition:

    (1) filter      ceil(bytes of its edges / m / MR), gaps between lists included
    (2) compaction  ceil(packed bytes / m / MR) + packed bytes / packing rate,
                    packed bytes = bytes of its active edges + active vertices x index bytes
    (3) zero-copy   ceil(requests of its active lists / MR) x RTTzc, RTTzc = gamma + (1 - gamma) x share of active edges

Compaction is chosen where (2) < alpha x (1) and (2) < beta x (3), else the cheaper of the other two. The paper leaves
the second term of (2) out when it selects, and so do we by default.

Where this differs:
- Algorithm 1, lines 15-24, drops every (k+1)th filter partition in a row; `policies/combine.py` does not.
- At a tie the text takes filter and the algorithm zero-copy. We follow the text: with every edge active and every
  request full, both move the same bytes, and the paper says that PageRank filters everything at first.
- The paper has two gammas and two betas. Here they are 0.625 and 0.4; those of the cache are in `cache/ranking.py`.
- The released code has fixed thresholds instead of (1)-(3) and merges nothing.

(3) counts every list's own requests, including misaligned ones and both arrays of a weighted list. `Activity.blocks`
must count them so: if neighbouring lists share a block, zero-copy looks cheaper than it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isthmus.frontier import Activity
from isthmus.link.link import Array, Profile
from isthmus.policies.policy import COMPACTION, FILTER, INDEX_BYTES, NAMES, NOTHING, ZERO_COPY, Policy

ALPHA = 0.8  # HyTGraph, after Subway: compaction pays below 80 % active edges
BETA = 0.4  # HyTGraph: and where lists are so short that single requests are mostly empty
GAMMA = 0.625  # HyTGraph, after EMOGI: the part of a round trip that even an empty request costs
IN_A_ROUND_TRIP = 256  # PCIe 3.0: requests in flight at once
ENGINES = frozenset({FILTER, COMPACTION, ZERO_COPY})


@dataclass(frozen=True)
class Costs:
    """Round trips that each engine would take, per partition."""

    filter: Array
    compaction: Array
    zero_copy: Array


class HyTGraph(Policy):
    """Algorithm 1, lines 2-13. `engines`: those to choose from; alpha = 0 also switches compaction off, gamma = 1 the
    damping.

    `round_up` counts whole round trips, as the paper does with partitions of 1,000 of them. Where a partition takes
    only a few round trips, as in a scaled-down experiment, choices are better without it.
    """

    name = "hytgraph"

    def __init__(
        self,
        alpha: float = ALPHA,
        beta: float = BETA,
        gamma: float = GAMMA,
        in_a_round_trip: int = IN_A_ROUND_TRIP,
        index_bytes: int = INDEX_BYTES,
        packing_rate: float = np.inf,
        round_up: bool = True,
        engines: frozenset[int] = ENGINES,
    ) -> None:
        self._alpha, self._beta, self._gamma = alpha, beta, gamma
        self._in_a_round_trip, self._index_bytes = in_a_round_trip, index_bytes
        self._packing_rate = packing_rate  # bytes in the time of one round trip; infinite: transfer alone counts
        self._round_up, self._engines = round_up, engines
        self.engines = tuple(NAMES[code] for code in sorted(engines))

    def costs(self, activity: Activity, profile: Profile, entry_bytes: int) -> Costs:
        """Formulas (1), (2) and (3), with a round trip of 1."""
        full = profile.block * self._in_a_round_trip
        packed = activity.edges * entry_bytes + activity.vertices * self._index_bytes
        share = activity.edges / np.maximum(activity.partition_edges, 1)
        return Costs(
            self._trips(activity.partition_slots * entry_bytes, full),
            self._trips(packed, full) + packed / self._packing_rate,
            self._trips(activity.blocks, self._in_a_round_trip) * (self._gamma + (1 - self._gamma) * share),
        )

    def _trips(self, amounts: Array, full: int) -> Array:
        return np.asarray(-(-amounts // full) if self._round_up else amounts / full)

    def choose(self, activity: Activity, profile: Profile, entry_bytes: int) -> Array:
        costs = self.costs(activity, profile, entry_bytes)
        whole, packed, single = (
            cost if engine in self._engines else np.full(cost.shape, np.inf)
            for engine, cost in ((FILTER, costs.filter), (COMPACTION, costs.compaction), (ZERO_COPY, costs.zero_copy))
        )
        with np.errstate(invalid="ignore"):  # 0 x infinity: alpha or beta and an engine switched off
            pack = (packed < self._alpha * whole) & (packed < self._beta * single)
        return np.where(
            activity.edges > 0, np.where(pack, COMPACTION, np.where(single < whole, ZERO_COPY, FILTER)), NOTHING
        )
