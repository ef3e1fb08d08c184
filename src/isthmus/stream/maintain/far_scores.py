"""Scores kept current where lists are far: by the lists of few vertices, or by a few passes over all edges.

A vertex whose list is read sends its residual and, along the same edges, corrects the messages that it sent with an old
divisor. Each such step shrinks the sum of both, which bounds the error, by at least (1 - factor) of the vertex's part.
So if few vertices have the whole sum, except for half of what the bound allows, their lists are read, and stay near
while these vertices send repeatedly.

Otherwise there are passes over all edges, as for near lists (`maintained_scores.py`). A sweep leaves about a tenth of
the residuals, so few are needed, unless small parts of the graph, such as two vertices by themselves, converge slowly;
these parts are then finished by their lists. Each pass is a program that the loop of every run carries out, which reads
ahead.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.kernels.compile.atomics import atomic_add
from isthmus.kernels.scores import deltas, passes
from isthmus.programs.functions import Functions
from isthmus.programs.program import Facts, Program, State
from isthmus.programs.scores.deltas import Spreading, Sums
from isthmus.runtime.execute import execute
from isthmus.runtime.options import quiet
from isthmus.runtime.session import Session
from isthmus.stream.maintain.maintained import Array
from isthmus.stream.maintain.maintained_scores import ATTEMPTS, ROOM, STUCK, MaintainedSpreading, Passes, for_kernels
from isthmus.stream.maintain.neighbours import Neighbours
from isthmus.stream.maintain.registry import maintains
from isthmus.stream.maintain.residuals import ROUNDING

# of what the bound allows: a pass that sends mostly leaves less than two thirds, a sweep less than a fifth, unmeasured.
SENT = 1.5
NEARLY = 1.25  # of what the bound allows: residuals that are measured, and then sent if they are more than is allowed
# a sweep that changes more than this part of the change of the sweep before: the rest is probably in few places.
SLOW = 0.5
PART = 2  # lists of few vertices may take at most half of the time of a pass
UNSENT = 0.5  # part of what the bound allows that is not sent when lists of few vertices are read
HALF = 0.5  # lists of few vertices are read only if they send at least this part of all that is to be sent
LEAST = 0.1  # part of what the bound allows: no step aims for less


@maintains(Spreading, in_memory=False)
class MaintainedFarSpreading(MaintainedSpreading):
    """Values, residuals and divisors, and the lists of few vertices for a moment."""

    def __init__(self, program: Spreading, session: Session, name: str | None = None) -> None:
        super().__init__(program, session, name)
        self._neighbours = Neighbours(self)

    def near_bytes(self, vertices: int) -> int:
        return super().near_bytes(vertices) + self._neighbours.near_bytes(vertices)

    def _passes(self) -> Passes:
        return FarPasses(self)

    def _catch_up(self) -> None:
        """Note the errors of messages. They are corrected when their lists are read."""
        self.program.off = 0.0 if self.bounds_each else self._lost
        if self._behind.size and not self.program.fixed_divisors:
            self.program.off += float(self._off()[0].sum())
            self._behind = self._behind[self.state["divisors"][self._behind] != self._strength[self._behind]]

    def _go_on(self) -> None:
        if self.bounds_each:
            super()._go_on()
            return
        self._take_marked()
        self._halting, spent = SLOW, 0
        for _ in range(ATTEMPTS):
            self._catch_up()
            if self._holds() and not self._pressing().size:
                return
            density, cost = self._choose(self.graph.arcs // PART - spent)
            if cost:
                self._spread(density)
                self._halting, spent = SLOW, spent + cost
            else:
                self._sweep()
                self._halting, spent = STUCK, 0

    def _sweep(self) -> None:
        """Bring all values up to date by few passes: by sending, if that is probably done at once, else by sweeps."""
        sums, n, off = self._sums(), self.graph.vertices, self.program.off
        self.program.off = self._lost  # a pass corrects the others
        if sums.left + off <= SENT * self.program.enough(Sums(sums.total, 0.0, 0.0), 1.0):
            self.program.off = off
            super()._sweep()
            return
        values, residual, _, divisors = (array[:n] for array in self.state.arrays)
        self.team.split(lambda a, b: np.add(values[a:b], residual[a:b], out=values[a:b]), n)
        self.team.split(lambda a, b: np.copyto(divisors[a:b], self._strength[a:b]), n)
        self._behind, self.program.off = self._behind[:0], 0.0
        self._sweep_values(self._passes())
        self.effort.affected += n

    def _sweep_values(self, passes: Passes) -> None:
        super()._sweep_values(passes)
        self._expected = self._found

    def _swept_enough(self) -> tuple[float, float]:
        """Sweeps end with residuals that cancel, so the better bound holds. To send what is left takes one pass,
        another sweep two.
        """
        allowed = self.program.enough(Sums(self._sums().total, 0.0, 0.0), 1.0)
        return NEARLY * allowed, SENT * allowed

    def _pressing(self) -> Array:
        """Vertices whose messages must be corrected at once."""
        return self._behind[self._off()[1]] if self._behind.size else self._behind

    def _choose(self, most: int) -> tuple[float, int]:
        """The density from which on vertices should send, and the cost of reading their lists: the edges that a pass
        reads in that time.

        The cost is at most `most`, and the lists fit in the table. Density 0: such vertices have less than half of what
        is to be sent.
        """
        n, factor, amounts = self.graph.vertices, self.state.params[0], self.state["deltas"]
        residual = self.state["residual"]
        self.team.split(lambda a, b: np.abs(residual[a:b], out=amounts[a:b]), n)
        lists, pressing, sums = self.ends_of("out"), self._pressing(), self._sums()
        if self._behind.size:
            amounts[self._behind] += self._off()[0] / factor
        totals, edges, vertices = self._by_density(amounts, lists)
        enough = self.program.enough(sums, ROOM) + self.program.off / factor
        enough = max(enough, LEAST * self.program.allowed(sums.total + sums.surplus))
        read = from_the_top(edges) + float((lists[1][pressing] - lists[0][pressing]).sum())
        costs = read + sizes.now.lone_list * (from_the_top(vertices) + pressing.size)
        at = needed = int(np.searchsorted(np.cumsum(totals), UNSENT * enough, side="right"))
        while at < deltas.BINS and (read[at] > self._neighbours.capacity or costs[at] > most):
            at += 1
        if (
            costs[at] > most
            or read[at] > self._neighbours.capacity
            or (at > needed and totals[at:].sum() < HALF * totals.sum())
        ):
            return 0.0, 0
        if at == deltas.BINS:
            return np.inf, int(costs[at])
        # Vertices without edges cost nothing.
        return float(np.ldexp(1.0, deltas.LOWEST + at - 1)), 1 + int(costs[at])

    def _by_density(self, amounts: Array, lists: tuple[Array, Array]) -> Array:
        """Sums of amounts, edges and lists in bins of their density (`kernels/scores/deltas.py`)."""

        def part(first: int, last: int) -> Array:
            sums = np.zeros((3, deltas.BINS))
            deltas.sort_by_density(first, last, amounts, *lists, *sums)
            return sums

        total = np.zeros((3, deltas.BINS))
        for sums in self.team.split(part, self.graph.vertices):
            total += sums
        return total

    def _spread(self, density: float) -> None:
        """Let vertices with at least this density send, and send again whenever they reach it."""
        n, (values, residual, amounts, divisors) = self.graph.vertices, self.state.arrays
        whole, (factor, _, absorber) = self.ends_of("out"), self.state.params
        self.team.split(lambda a, b: deltas.mark_dense(a, b, amounts, *whole, density, self._marks), n)
        self._marks[self._pressing()] = 1
        rows = self._take_marked()
        if self._queue.size < n:
            self._queue = np.empty(self._room, np.uint32)
        held = (*self._neighbours.of(rows), self._neighbours.weights)
        scores = (values, residual, divisors, self._strength, factor, absorber)
        vertices, _, total = deltas.spread_held(
            rows, density, sizes.now.settled_alone, *whole, *held, *scores, self._marks, self._queue
        )
        self.effort.affected += int(vertices)
        self._lost += ROUNDING * float(total)


def from_the_top(amounts: Array) -> Array:
    """The sums of all that follow each entry, with itself; 0 at the end."""
    return np.append(amounts[::-1].cumsum()[::-1], 0.0)


class FarPasses(Passes):
    """Passes over edges that are far, by the loop of every run."""

    def _pass(self, renews: bool, own: Array) -> None:
        scores = self._scores
        if renews:  # residuals add up lists that come in parts
            self._team.split(lambda a, b: self._residual[a:b].fill(0.0), self._n)
        arrays = (self._values, self._residual, self._shares, self._divisors)
        program = (Renewing if renews else Collecting)(scores.program, arrays, scores.state.params, own)
        scores.session.near_memory.follow(scores.graph.snapshot)
        execute(program, scores.session, quiet, None, None)
        self._sums = program.sums


def nothing(params: Any) -> Any:
    return 0.0


def sent(total: Any, u: Any, w: Any, state: Any, params: Any) -> Any:
    return total + state[1][u] * w


def received(v: Any, total: Any, state: Any, params: Any) -> Any:
    if v != params[1][4]:
        atomic_add(state[0], v, params[1][3] * total)


class Renewing(Program):
    """Renews the values of a `Spreading` in place; `sums` then has the sums of values, of those at vertices that send
    nothing, and of changes. Residuals are zeros, and are left so.
    """

    order_free = False  # each edge counts once
    all_active = True
    pulls = True
    max_iter = 1
    runs_again = True  # a batch takes several passes
    sides = ("in",)
    state_bytes = Spreading.state_bytes
    renews = True

    def __init__(
        self, program: Spreading, arrays: tuple[Array, ...], params: tuple[float, float, int], own: Array
    ) -> None:
        """`arrays`: values, residuals, shares and divisors. `own`: what a vertex has without any edge, by vertex or
        once for all.
        """
        factor, _, absorber = params
        self.name, self._weights, self.sums = program.name, program.reads_weights(), np.zeros(3)
        state, params = for_kernels(arrays, factor, absorber, own, self.renews, self.sums)
        self._state = State(state, None, params)

    def reads_weights(self) -> bool:
        return self._weights

    def functions(self, facts: Facts) -> Functions:
        return Functions(nothing=nothing, sent=sent, received=received)

    def begin(self, facts: Facts) -> State:
        return self._state

    def loops(self, state: State) -> tuple[Any, Any]:
        return passes.sweep_rows, passes.sweep_range

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        """Renew the vertices that are left."""
        given, rest = (*facts.lists.arrays, True, state.arrays, state.params, frontier.next_marks), passes.sweep_rest
        facts.team.split(lambda a, b: rest(a, b, *given), facts.vertices)
        return False

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        return {}


class Collecting(Renewing):
    """Adds to the residuals of a `Spreading` what its shares bring along all edges."""

    renews = False

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        return False
