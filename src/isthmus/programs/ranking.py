"""PageRank over in-edges: sweeps in place, then a step that proves how far off the answer is.

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

Edges that are not all near come in deliveries, which passes go over as they come. A list that came in parts, or was shared by threads, has
its vertex renewed when all the others were.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.kernels import sweeps
from isthmus.programs.program import Array, Facts, NearEdges, Seen

SINGLE = 1e-4  # changes, relative to the sum, from which on single precision may be in the way: sums over a hub lose most
OVER_DIRECTED = 0.6  # of the way from 1 to 2 / (1 + d), below which sweeps converge: 1.05 for d = 0.85
OVER = 1.1  # on undirected graphs: of 1, 1.05, 1.1, 1.15, 1.2 and 1.3 the best or near it on RMAT 17 and 20 and grids of 300 and 1,000
LEFT = 0.4  # of a sweep's change, what a step then finds, at a guess: 0.06 to 0.64 were seen
NONE, NO_WEIGHTS, NO_MARKS, NO_QUEUE = np.int64(0), np.empty(0, np.int32), np.empty(0, np.uint8), np.empty(0, np.uint32)


class Ranking:
    """Shares of all vertices on the way to PageRank; `ranks` holds what to start with, in the end the answer.

    `steps` says what the next pass is. Between passes the ranks are zeros, where passes over edges that are not all near add up
    the shares that arrive. Shares in single precision lie in the first half of `doubles`.
    """

    def __init__(
        self, facts: Facts, divisors: Array | None, teleports: Array | None, weighted: bool, alpha: float, tol: float, max_iter: int,
        ranks: Array, doubles: Array,
    ) -> None:  # fmt: skip
        self._team, self._lists, self._directed, self._doubles = facts.team, facts.lists.arrays, facts.directed, doubles
        self._divisors, self._teleports, self._alpha, self._tol, self._max_iter = divisors, teleports, alpha, tol, max_iter
        # Beyond 1 / alpha a vertex that has all the mass, as after a teleport to one, would lose more than that.
        self._over = 1 + OVER_DIRECTED * (1 - alpha) / (1 + alpha) if facts.directed else min(OVER, max(1.0, 0.99 / alpha))
        self._left, self._change = LEFT, np.inf
        self._sums = np.zeros(3)  # of a sweep: ranks, those without an edge to follow, changes
        self._lacking = True  # some vertices may have no list
        self.steps, self.error_bound = max_iter == 1, np.inf
        self.ranks, self.shares = ranks, doubles if weighted else doubles.view(np.float32)[: ranks.size]
        share_out = sweeps.share_out
        sums = self._team.split(lambda a, b: share_out(a, b, *self._lists, divisors, ranks, self.shares), ranks.size)
        self._mass, self._stuck = (float(sum(column)) for column in zip(*sums, strict=True))

    def solve(self, edges: NearEdges, seen: Seen) -> None:
        """All passes, over near edges."""
        slots = edges.lists.slots
        graph = (*edges.lists.arrays, edges.targets, NO_WEIGHTS if edges.weights is None else edges.weights)
        cuts = np.empty(2 + (slots + self.ranks.size) // sizes.now.ranked_piece, np.int64)
        sweeps.even_cuts(edges.lists.begins, slots, cuts)
        for number in itertools.count(1):
            more = self.passed(number, self._near_pass(graph, cuts))
            seen(self.ranks.size, edges.lists.arcs)
            if not more:
                break

    def _near_pass(self, graph: Any, cuts: Array) -> float:
        """Sweep or step over pieces of about as many vertices and edges; returns the change relative to the sum."""
        (begins, ends, *_), state, params, scale = graph, self.state, self.params, 1 / self._mass
        found, sweep, step = np.zeros(cuts.size - 1), sweeps.sweep_range, sweeps.step

        def piece(k: int) -> None:
            first, last = cuts[k], cuts[k + 1]
            if self.steps:
                found[k] = step(first, last, *graph, params[0], scale, self.shares, self.ranks)
            else:
                edges = (begins[first], ends[last - 1], NONE, NONE, NO_MARKS, True)
                sweep(first, last, *edges, *graph, state, params, None, NO_QUEUE, NONE)

        self._team.each(piece, found.size)
        return float(found.sum()) if self.steps else self._swept()

    @property
    def state(self) -> tuple[Array, Array]:
        """What loops work on."""
        return self.ranks, self.shares

    @property
    def params(self) -> tuple[Any, ...]:
        """What loops go by: the rules of every vertex, with the base of this pass, what teleports and vertices without edges give."""
        whole = float((1 - self._alpha) * self._mass + self._alpha * self._stuck)
        base = whole / self.ranks.size if self._teleports is None else whole
        return (self._divisors, self._teleports, base, self._alpha, self._over), self._sums

    def delivered(self, marks: Array) -> float:
        """A pass over deliveries is at its end: see to the vertices that these could not; returns the change relative to the sum."""
        n, lists, state, params = self.ranks.size, self._lists, self.state, self.params
        if self.steps:
            (ranks, shares), (rules, _), receive, scale = state, params, sweeps.receive, 1 / self._mass
            return float(sum(self._team.split(lambda a, b: receive(a, b, *lists, rules, scale, shares, ranks), n)))
        rest, lacking = sweeps.sweep_rest, self._lacking
        self._lacking = any(self._team.split(lambda a, b: rest(a, b, *lists, lacking, state, params, marks), n))
        return self._swept()

    def _swept(self) -> float:
        self._mass, self._stuck, change = self._sums.tolist()
        self._sums[:] = 0
        return float(change / self._mass)

    def passed(self, number: int, found: float) -> bool:
        """Decide by the change that pass `number` made, or as a step found, what the next one is; False: there is none."""
        if self.steps:
            self.error_bound = self._bound(found)
            if self.error_bound <= self._tol or number >= self._max_iter:
                return False
            self._team.split(lambda a, b: self.ranks[a:b].fill(0.0), self.ranks.size)
            rounded = found > self._change  # a sweep leaves less than it changed
            self._left, self._change = max(self._left, found / max(self._change, 1e-300)), np.inf
        else:
            slow = found > self._alpha * self._change
            if slow:  # threads in step with each other, or rounding: too far is in the way
                self._over = 1.0
            self._change, rounded = found, slow or found <= SINGLE
        if rounded and self.shares is not self._doubles:
            self._double()
            self._left = LEFT
            self._over = 1.0 if self._directed else self._over  # pays at first only
        self.steps = number + 1 >= self._max_iter or self._bound(self._left * self._change) <= self._tol
        return True

    def _bound(self, change: float) -> float:
        return self._alpha / (1 - self._alpha) * change

    def _double(self) -> None:
        """Go on in double precision. The upper half has room where no share is left to be read; then the upper half of the rest."""
        single, doubles, end = self.shares, self._doubles, self.ranks.size
        while end:
            half = (end + 1) // 2 if end > 1 else 0
            to, of = doubles[half:end], single[half:end]
            self._team.split(lambda a, b, to=to, of=of: np.copyto(to[a:b], of[a:b]), end - half)
            end = half
        self.shares = doubles

    def remember(self) -> dict[str, Any]:
        numbers = (self._mass, self._stuck, self._over, self._left, self._change, self.steps, self.error_bound)
        return {"shares": self._doubles, "double": self.shares is self._doubles, "numbers": numbers}

    def recall(self, kept: dict[str, Any]) -> None:
        np.copyto(self._doubles, kept["shares"])
        self.shares = self._doubles if kept["double"] else self._doubles.view(np.float32)[: self.ranks.size]
        self._mass, self._stuck, self._over, self._left, self._change, self.steps, self.error_bound = kept["numbers"]
