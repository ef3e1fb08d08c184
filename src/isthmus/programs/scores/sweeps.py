"""PageRank by sweeps over in-edges, then a step that bounds the error of the answer.

Let G be the whole walk: G x = d P^T x + ((1 - d) |x| + d m) p, where m is the mass of x on vertices without edges, and
|x| the sum of x. PageRank is the x = G x that sums to one. Wherever two vectors have the same sum, G brings them nearer
to each other by the factor d in L1. So for any x, however it was found,

    the L1 error of G x / |x| is at most d / (1 - d) |G x - x| / |x|.

A sweep updates one vertex after another from its in-neighbours (Gauss-Seidel, as in the GAP Benchmark Suite), with m
and |x| of the sweep before, so that mass on vertices without edges is redistributed from the start. Sweeps are
over-relaxed, most on undirected graphs, whose walks are symmetric. Threads sweep in parallel and may miss each other's
latest updates; single precision halves the memory traffic. None of this needs a proof, because the last pass is a
*step*: it leaves x unchanged, computes G x in double precision from the shares as they are stored, and measures |G x -
x|. So the bound includes the rounding of x. It leaves out only the rounding of the step itself, in double precision.

A step measures a fraction of the change that the sweep before it made. This predicts when a step will meet `tol`. A
step that comes too early corrects the fraction and is discarded: sweeps go on from x.

Edges that are not all near come in deliveries, and a pass works on them in the order of arrival. A vertex whose list
came in parts, or was shared by threads, is updated after all others (`kernels/scores/passes.py`).
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.kernels.scores import passes
from isthmus.programs.checkpoint_checks import finite, real, truth
from isthmus.programs.program import Array, Facts, NearEdges, Seen, State
from isthmus.threads import Team

# Change, relative to the sum, below which single precision may slow convergence: sums over a hub lose most.
SINGLE = 1e-4
OVER_DIRECTED = 0.6  # of the way from 1 to 2 / (1 + d), below which sweeps converge: 1.05 for d = 0.85
# on undirected graphs: of 1, 1.05, 1.1, 1.15, 1.2 and 1.3 the best or near it on RMAT 17 and 20 and grids of 300 and
# 1,000.
OVER = 1.1
LEFT = 0.4  # first guess of a step's change as a fraction of the sweep's before it: 0.06 to 0.64 were seen
NONE, NO_WEIGHTS, NO_MARKS, NO_QUEUE = np.int64(0), np.empty(0, np.int32), np.empty(0, np.uint8), np.empty(0, np.uint32)


class Ranking:
    """Iterates the shares of all vertices towards PageRank, in a state of two arrays.

    `ranks` has the first ranks, in the end the answer. Between passes it is zero; passes over edges that are not all
    near add up arriving shares in it. `shares` has a share per vertex: doubles, or single precision in the first half
    of the same memory. `steps`: the next pass is a step, not a sweep.
    """

    def __init__(self, facts: Facts, weighted: bool, alpha: float, tol: float, max_iter: int) -> None:
        self._team, self._lists, self._directed, self._n = (
            facts.team,
            facts.lists.arrays,
            facts.directed,
            facts.vertices,
        )
        self._single, self._alpha, self._tol, self._max_iter = not weighted, alpha, tol, max_iter
        # Beyond 1 / alpha a vertex with all the mass, as when all teleports lead to it, would lose more mass than it
        # has.
        self._over = (
            1 + OVER_DIRECTED * (1 - alpha) / (1 + alpha) if facts.directed else min(OVER, max(1.0, 0.99 / alpha))
        )
        self._left, self._change = LEFT, np.inf
        self._sums = np.zeros(3)  # of a sweep: sum of ranks, of ranks at vertices without edges, of changes
        self._lacking = True  # some vertices may have no list
        self.steps, self.error_bound = max_iter == 1, np.inf

    def begin(self, state: State) -> None:
        """Turn the first ranks into shares."""
        if self._single:
            state["shares"] = state["shares"].view(np.float32)
        share_out, given = passes.share_out, (*self._lists, state.extra["divisors"], *state.arrays)
        sums = self._team.split(lambda a, b: share_out(a, b, *given), self._n)
        self._mass, self._stuck = (float(sum(column)) for column in zip(*sums, strict=True))
        self.set_params(state)

    def solve(self, state: State, edges: NearEdges, seen: Seen) -> None:
        """All passes, over near edges."""
        slots = edges.lists.slots
        graph = (*edges.lists.arrays, edges.targets, NO_WEIGHTS if edges.weights is None else edges.weights)
        cuts = np.empty(2 + (slots + self._n) // sizes.now.ranked_piece, np.int64)
        passes.even_cuts(edges.lists.begins, slots, cuts)
        for number in itertools.count(1):
            more = self.passed(state, number, self._near_pass(state, graph, cuts))
            seen(self._n, edges.lists.arcs)
            if not more:
                break

    def _near_pass(self, state: State, graph: Any, cuts: Array) -> float:
        """Sweep or step over pieces of about equal size; returns the change relative to the sum."""
        self.set_params(state)
        (begins, ends, *_), (ranks, shares), params, scale = graph, state.arrays, state.params, 1 / self._mass
        found, sweep, step = np.zeros(cuts.size - 1), passes.sweep_range, passes.step

        def piece(k: int) -> None:
            first, last = cuts[k], cuts[k + 1]
            if self.steps:
                found[k] = step(first, last, *graph, params[0], scale, shares, ranks)
            else:
                edges = (begins[first], ends[last - 1], NONE, NONE, NO_MARKS, True)
                sweep(first, last, *edges, *graph, (ranks, shares), (ranks, shares), params, None, NO_QUEUE, NONE)

        self._team.each(piece, found.size)
        return float(found.sum()) if self.steps else self._swept()

    def set_params(self, state: State) -> None:
        """Set the parameters of the loops: the rules of every vertex and the sums. The base is the rank from teleports
        and dangling vertices.
        """
        divisors, teleports = state.extra["divisors"], state.extra["teleports"]
        whole = float((1 - self._alpha) * self._mass + self._alpha * self._stuck)
        base = whole / self._n if teleports is None else whole
        ranked = (divisors, teleports, base, self._alpha, self._over)
        state.params = ranked, None, self._sums, state["shares"], state["shares"]

    def delivered(self, state: State, marks: Array) -> float:
        """End a pass over deliveries: update the vertices that are left; returns the change relative to the sum."""
        self.set_params(state)
        n, lists, arrays, params = self._n, self._lists, state.arrays, state.params
        if self.steps:
            (ranks, shares), ranked, receive, scale = arrays, params[0], passes.receive, 1 / self._mass
            return float(sum(self._team.split(lambda a, b: receive(a, b, *lists, ranked, scale, shares, ranks), n)))
        rest, lacking = passes.sweep_rest, self._lacking
        self._lacking = any(self._team.split(lambda a, b: rest(a, b, *lists, lacking, arrays, params, marks), n))
        return self._swept()

    def _swept(self) -> float:
        self._mass, self._stuck, change = self._sums.tolist()
        self._sums[:] = 0
        return float(change / self._mass)

    def passed(self, state: State, number: int, found: float) -> bool:
        """Choose the next pass by the change that pass `number` made or measured; False: that was the last."""
        if self.steps:
            self.error_bound = self._bound(found)
            if self.error_bound <= self._tol or number >= self._max_iter:
                return False
            ranks = state["ranks"]
            self._team.split(lambda a, b: ranks[a:b].fill(0.0), self._n)
            rounded = found > self._change  # a sweep leaves less than it changed
            self._left, self._change = max(self._left, found / max(self._change, 1e-300)), np.inf
        else:
            slow = found > self._alpha * self._change
            if slow:  # threads in lockstep, or rounding: over-relaxation slows convergence
                self._over = 1.0
            self._change, rounded = found, slow or found <= SINGLE
        if rounded and self._single:
            state["shares"], self._single = as_doubles(state["shares"], self._n, self._team), False
            self._left = LEFT
            self._over = 1.0 if self._directed else self._over  # over-relaxation pays at first only
        self.steps = number + 1 >= self._max_iter or self._bound(self._left * self._change) <= self._tol
        return True

    def _bound(self, change: float) -> float:
        return self._alpha / (1 - self._alpha) * change

    def remember(self, state: State) -> dict[str, Any]:
        numbers = (self._mass, self._stuck, self._over, self._left, self._change, self.steps, self.error_bound)
        return {"shares": state["shares"].view(np.float64), "double": not self._single, "numbers": numbers}

    def recall(self, state: State, kept: dict[str, Any]) -> None:
        doubles = state["shares"].view(np.float64)
        np.copyto(doubles, kept["shares"])
        self._single = not truth(kept["double"])
        state["shares"] = doubles.view(np.float32) if self._single else doubles
        finite(state["shares"][: self._n])
        *numbers, steps, bound = kept["numbers"]
        self._mass, self._stuck, self._over, self._left, self._change = map(real, numbers)
        self.steps, self.error_bound = truth(steps), real(bound)


def as_doubles(shares: Array, n: int, team: Team) -> Array:
    """Widen `n` shares to double precision in place: the upper half first, which overwrites none that is left to
    read.
    """
    doubles, end = shares.view(np.float64), n
    while end:
        half = (end + 1) // 2 if end > 1 else 0
        to, of = doubles[half:end], shares[half:end]
        team.split(functools.partial(copy_part, to, of), end - half)
        end = half
    return doubles


def copy_part(to: Array, of: Array, first: int, last: int) -> None:
    np.copyto(to[first:last], of[first:last])
