"""PageRank over near edges: sweeps in place, then a step that proves how far off the answer is.

Let G be the whole walk: G x = d P^T x + ((1 - d) |x| + d m) p, where m is the mass of x on vertices without edges, and |x|
the sum of x. PageRank is the x = G x that sums to one. Wherever two vectors have the same sum, G brings them nearer to
each other by the factor d in L1, so for any x, however it was found,

    G x / |x| is off by at most d / (1 - d) |G x - x| / |x|.

A sweep renews one vertex after another from its in-neighbours (Gauss-Seidel, as in the GAP Benchmark Suite), with m and
|x| of the sweep before, so that mass without edges does not have to run down first. It goes a little too far each
time (over-relaxation), most so on undirected graphs, whose walks are symmetric. Threads sweep side by side and see what they see of each
other; single precision halves the traffic that sweeps are made of. None of that needs a proof, for the last pass is a *step*:
it leaves x as it is, in the very numbers that the shares hold, works out G x in double precision, and measures |G x - x|.
What rounding did to x is thus in the bound; only that of double precision in the step itself is not.

What a step finds is a share of what the sweep before it changed, which tells when one is worth its while. A step that comes too
early corrects the share and is forgotten: sweeps go on from x.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.kernels import sweeps
from isthmus.programs.program import Array, Facts, NearEdges, Seen

PIECE = 1 << 18  # vertices and edges per call: under a millisecond, so that members end together
SINGLE = 1e-4  # changes, relative to the sum, from which on single precision may be in the way: sums over a hub lose most
OVER_DIRECTED = 0.6  # of the way from 1 to 2 / (1 + d), below which sweeps converge: 1.05 for d = 0.85
OVER = 1.1  # on undirected graphs: of 1, 1.05, 1.1, 1.15, 1.2 and 1.3 the best or near it on RMAT 17 and 20 and grids of 300 and 1,000
LEFT = 0.4  # of a sweep's change, what a step then finds, at a guess: 0.06 to 0.64 were seen


class Ranking:
    """Shares of all vertices on the way to PageRank; `ranks` holds what to start with, then the answer."""

    def __init__(
        self, facts: Facts, edges: NearEdges, divisors: Array | None, teleports: Array | None, alpha: float, ranks: Array, doubles: Array,
        seen: Seen,
    ) -> None:  # fmt: skip
        self._team, self._seen, self._alpha, self._ranks, self._doubles = facts.team, seen, alpha, ranks, doubles
        self._graph = (edges.offsets, edges.targets, edges.weights, divisors, teleports)
        self._arcs = int(edges.offsets[-1])
        self._cuts = np.empty(2 + (self._arcs + facts.vertices) // PIECE, np.int64)
        sweeps.even_cuts(edges.offsets, self._cuts)
        self._over = 1 + OVER_DIRECTED * (1 - alpha) / (1 + alpha) if facts.directed else OVER
        self._directed = facts.directed
        self._shares = doubles if edges.weights is not None else np.empty(facts.vertices, np.float32)
        self._share_out()

    def run(self, tol: float, max_iter: int) -> float:
        """Sweep until a step proves an error of at most `tol`, or as often as allowed; returns the bound."""
        left, change = LEFT, np.inf
        for number in range(1, max_iter + 1):
            if number < max_iter and self._bound(left * change) > tol:
                before, change = change, self._sweep()
                slow = change > self._alpha * before
                if slow:  # threads in step with each other, or rounding: too far is in the way
                    self._over = 1.0
                rounded = slow or change <= SINGLE
            else:
                found = self._step()
                if self._bound(found) <= tol or number == max_iter:
                    break
                rounded = found > change  # a sweep leaves less than it changed
                left, change = max(left, found / max(change, 1e-300)), np.inf
            if rounded and self._shares is not self._doubles:
                self._shares, left = self._doubled(), LEFT
                self._over = 1.0 if self._directed else self._over  # pays at first only
        return self._bound(found)

    def _bound(self, change: float) -> float:
        return self._alpha / (1 - self._alpha) * change

    def _sweep(self) -> float:
        """Renew all shares; returns the change relative to their sum."""
        kernel, graph, base = sweeps.sweep, self._graph, self._base()
        sums = self._each(lambda a, b: kernel(a, b, *graph, base, self._alpha, self._over, self._shares))
        self._mass, self._stuck, change = (sum(column) for column in zip(*sums, strict=True))
        return float(change / self._mass)

    def _step(self) -> float:
        kernel, graph, base, scale = sweeps.step, self._graph, self._base(), 1 / self._mass
        return float(sum(self._each(lambda a, b: kernel(a, b, *graph, base, self._alpha, scale, self._shares, self._ranks))))

    def _base(self) -> float:
        """What teleports and vertices without edges give: to each vertex if evenly, else in all."""
        whole = float((1 - self._alpha) * self._mass + self._alpha * self._stuck)
        return whole / self._ranks.size if self._graph[-1] is None else whole

    def _each(self, work: Any) -> list[Any]:
        """What work(first, last) returns for pieces of about as many vertices and edges."""
        cuts, found = self._cuts, [None] * (self._cuts.size - 1)

        def piece(k: int) -> None:
            found[k] = work(cuts[k], cuts[k + 1])

        self._team.each(piece, len(found))
        self._seen(self._ranks.size, self._arcs)
        return found

    def _share_out(self) -> None:
        offsets, divisors, n = self._graph[0], self._graph[3], self._ranks.size
        sums = self._team.split(lambda a, b: sweeps.share_out(a, b, offsets, divisors, self._ranks, self._shares), n)
        self._mass, self._stuck = (sum(column) for column in zip(*sums, strict=True))

    def _doubled(self) -> Array:
        """The shares in double precision."""
        shares, doubles = self._shares, self._doubles
        self._team.split(lambda a, b: np.copyto(doubles[a:b], shares[a:b]), doubles.size)
        return doubles
