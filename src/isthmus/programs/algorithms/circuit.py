"""Voltages of a resistor network (Scaph's graph-based circuit simulation), with a proven bound on their error.

Edges are resistors and conduct both ways. Some vertices are held at voltages; at all others the currents balance
(Kirchhoff): what is injected at u, plus the sum of g(u, v) (V[v] - V[u]) over its edges, is 0. For the vertices that
have a path to a held one this is a symmetric positive definite system, and one pass over the edges multiplies by its
matrix. Conjugate gradients, preconditioned by each vertex's sum of conductances, need one such pass per iteration and
about the square root of the passes that Jacobi's iteration (pushing deltas) would: 81 instead of 3,867 on a grid of
30 x 30 with two corners held, 288 instead of 51,823 on one of 100 x 100, for the same bound of 1e-6.

The bound: let r[j] be the current that is missing at j. The error is the voltage that these currents alone would cause.
A current into j raises no voltage more than j's own, and that by at most r[j] times the resistance R[j] of any path
from j to a held vertex, since taking all other resistors away only raises it (Rayleigh). So no voltage is off by more
than the sum of R[j] |r[j]|, up to the rounding of float64. A run before finds R and the vertices without a path
(`path_resistances`). Likewise the currents that flow through the held vertices are off by at most the sum of |r[j]|
altogether.

The residual that the iteration updates drifts away from the true one by rounding, so the last pass measures it. If it
is too large, the iteration restarts from there. It stops when a restart did not even halve the residual. Where
conductances lie so far apart that the bound then exceeds a tenth of the spread of all voltages, there is no answer, but
an error.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import numpy as np

from isthmus.checks import by_vertex, finite_above_0, whole
from isthmus.errors import OptionError, StoreError
from isthmus.graph.snapshot import Snapshot
from isthmus.kernels.programs import currents as kernels
from isthmus.programs.algorithm import Answer, Kind, MaxIter, Option, Runner, algorithm
from isthmus.programs.checkpoint_checks import alike, finite, integer, real, truth
from isthmus.programs.column import Column, Within
from isthmus.programs.declaration import Monotone, monotone
from isthmus.programs.functions import Functions
from isthmus.programs.program import NOTHING_YET, Array, Facts, Program, State
from isthmus.programs.sums import over, summing, times
from isthmus.programs.weights import no_negative_weights, note_unweighted

WEIGHING, MEASURING, STEPPING = range(3)  # what a pass multiplies: ones, the voltages, the direction of a step
SUMS, DIRECTIONS = 1, 2  # where kernels find them
HELD = ("held_strengths", "held_currents")  # found by passes, in this order
# Attributes.
CHANGING = (
    "steps_left",
    "_phase",
    "_squares",
    "_measured",
    "error_bound",
    "current_bound",
    "spread",
    "range",
    "converged",
)
LARGEST = sys.float_info.max
DIGITS = 1e15  # what float64 resolves
USELESS = 0.1  # of the spread of all voltages: a larger bound that no iteration makes smaller is no answer
TOO_WIDE = (
    "circuit: expected conductances that float64 can compare, got some so far apart that it cannot tell the voltages; "
    "leave out the smallest conductances, or join the ends of the largest to one vertex"
)


def both_ways(directed: bool) -> tuple[str, ...]:
    return ("out", "in") if directed else ("out",)


def path_over_conductances(ohms: float, weight: float, most: float = LARGEST) -> float:
    return min(ohms + 1 / weight, most) if weight > 0 else inf  # type: ignore[name-defined]  # noqa: F821


def path_over_resistances(ohms: float, weight: float, most: float = LARGEST) -> float:
    return min(ohms + weight, most)


def path_resistances(held: list[Any], resistances: bool, directed: bool) -> Monotone:
    """The least resistance of a path from every vertex to one that is held."""
    declare = monotone(initial=np.inf, combine="min", start=0.0, column="ohms", sides=both_ways(directed))
    paths = declare(path_over_resistances if resistances else path_over_conductances)(held)
    paths.name = "circuit"
    return paths


class Circuit(Program):
    """Conjugate gradients for the voltages. `fixed` and `currents` map user ids to volts and amperes.

    `ohms` comes from `path_resistances`. `tol` bounds the error of every voltage relative to the spread of all of them.
    """

    name = "circuit"
    all_active = True
    pulls = True
    order_free = False
    state_bytes = 48
    columns = (Column("voltage", within=Within.EACH), Column("current", within=Within.TOTAL, figure="current_bound"))

    def __init__(
        self,
        fixed: dict[Any, float],
        currents: dict[Any, float],
        ohms: Array,
        resistances: bool = False,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        directed: bool = False,
    ) -> None:
        fixed, currents = by_vertex("fixed", fixed), by_vertex("currents", currents)
        if not fixed:
            raise OptionError("fixed: expected at least one vertex that is held at a voltage")
        both = next((vertex for vertex in currents if vertex in fixed), None)
        if both is not None:
            raise OptionError(f"currents: vertex {both!r} is held at a voltage, which sets its current")
        self.fixed, self.currents, self.ohms, self.tol, self.steps_left = (
            fixed,
            currents,
            ohms,
            finite_above_0("tol", tol),
            whole("max_iter", max_iter, 1),
        )
        self._divide = resistances
        self.sides = both_ways(directed)
        self._reference = (min(fixed.values()) + max(fixed.values())) / 2  # voltages are kept relative to it
        self._phase = WEIGHING
        self._squares = 0.0
        self._measured = np.inf
        self.error_bound = self.current_bound = np.inf
        self.spread = 0.0  # of the voltages
        self.range = 1.0  # the largest ÷ the smallest sum of conductances of a vertex that is solved for
        self.converged = False

    def reads_weights(self) -> bool:
        return True

    def functions(self, facts: Facts) -> Functions:
        return summing(True, DIRECTIONS, SUMS, over if self._divide else times)

    def begin(self, facts: Facts) -> State:
        n = facts.vertices
        held = np.array([facts.number(vertex) for vertex in self.fixed], np.int64)
        injected = np.array([facts.number(vertex) for vertex in self.currents], np.int64)
        for vertex, number in zip(self.currents, injected, strict=True):
            if np.isinf(self.ohms[number]):
                raise OptionError(
                    f"currents: vertex {vertex!r} has no path to a held vertex, so its current has nowhere to go"
                )
        voltages = np.zeros(n)
        voltages[held] = np.array(list(self.fixed.values()), np.float64) - self._reference
        arrays = {
            "voltages": voltages,
            "sums": np.zeros(n),
            "directions": np.ones(n),
            "residual": np.zeros(n),
            "strengths": np.empty(n),
            "ohms": self.ohms,
        }
        return State(
            arrays,
            None,
            (),
            {"held": held, "injected": injected, "amperes": np.array(list(self.currents.values()), np.float64)},
        )

    def before(self, state: State, frontier: Any, facts: Facts) -> None:
        if self._phase == MEASURING:
            sums = state["sums"]
            state["directions"][:] = state["voltages"]
            sums[:] = 0.0
            sums[state.extra["injected"]] = state.extra["amperes"]

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        if self._phase == WEIGHING:
            self._weigh(state)
        elif self._phase == MEASURING:
            return self._measure(state, facts)
        else:
            self._step(state, facts)
        return True

    def _weigh(self, state: State) -> None:
        """Keep each vertex's sum of conductances, which the pass found."""
        sums, strengths, held = state["sums"], state["strengths"], state.extra["held"]
        if np.isinf(sums).any():
            raise OptionError(
                "circuit: a resistance of 0 is a short circuit; join its ends to one vertex"
                if self._divide
                else "circuit: the conductances at a vertex add up to more than float64 holds"
            )
        strengths[:] = sums
        state.extra["held_strengths"] = strengths[held]
        strengths[held] = np.inf
        strengths[np.isinf(state["ohms"])] = np.inf
        solved = strengths[np.isfinite(strengths)]
        if (solved <= 0).any():  # the search came to it over an edge that its own list does not have
            raise StoreError(
                "circuit: a vertex has a path to a held one, and no edge that conducts; run isthmus verify on the store"
            )
        with np.errstate(over="ignore"):
            self.range = float(solved.max() / solved.min()) if solved.size else 1.0
        self._phase = MEASURING

    def _measure(self, state: State, facts: Facts) -> bool:
        """Measure the missing currents after a pass over the voltages; returns whether to go on."""
        voltages, sums, held = state["voltages"], state["sums"], state.extra["held"]
        state.extra["held_currents"] = state.extra["held_strengths"] * voltages[held] - sums[held]
        self._note(facts.team.split(lambda a, b: kernels.missing(a, b, *state.arrays), facts.vertices))
        stuck = self.error_bound > self._measured / 2
        self._measured = self.error_bound
        self._phase = STEPPING
        return not (self.converged or stuck or self.steps_left == 0)

    def _step(self, state: State, facts: Facts) -> None:
        """Move along the direction to the lowest point, then choose the next direction."""
        n, split = facts.vertices, facts.team.split
        _, sums, directions, residual, strengths, _ = state.arrays
        product = sum(split(lambda a, b: kernels.multiply(a, b, sums, directions, strengths), n))
        self.steps_left -= 1
        self._phase = MEASURING
        if not product > 0:  # the residual is too small to square
            return
        before = self._squares
        self._note(split(lambda a, b: kernels.move(a, b, before / product, *state.arrays), n))
        if self.converged or self.steps_left == 0:
            return
        self._phase = STEPPING
        split(lambda a, b: kernels.turn(a, b, self._squares / before, sums, directions, residual, strengths), n)

    def _note(self, parts: list[tuple[float, ...]]) -> None:
        squares, bounds, leaks, lows, highs = zip(*parts, strict=True)
        self._squares, self.error_bound, self.current_bound = sum(squares), sum(bounds), sum(leaks)
        if not np.isfinite(self._squares):
            raise OptionError(
                TOO_WIDE
                if self.range > DIGITS
                else "circuit: voltages, currents or conductances are too large for float64"
            )
        self.spread = max(highs) - min(lows)
        self.converged = self.error_bound <= self.tol * self.spread

    def remember(self, state: State) -> dict[str, Any]:
        """All arrays but the path resistances, and the attributes that change."""
        own = {name: getattr(self, name) for name in CHANGING}
        return {
            "arrays": state.arrays[:-1],
            "held": {name: state.extra[name] for name in HELD if name in state.extra},
            "own": own,
        }

    def recall(self, state: State, kept: dict[str, Any]) -> None:
        own = kept["own"]
        finite(*kept["arrays"][:-1])  # a strength may be infinite
        state.arrays = (*kept["arrays"], state["ohms"])
        for name, values in kept["held"].items():
            alike(values, np.empty(state.extra["held"].size))
            state.extra[name] = values
        self.steps_left, self._phase = (
            integer(own["steps_left"], 0, self.steps_left),
            integer(own["_phase"], WEIGHING, STEPPING),
        )
        if not kept["held"].keys() <= set(HELD) or (self._phase != WEIGHING and HELD[0] not in kept["held"]):
            raise ValueError(f"expected {HELD[0]!r} of the held vertices")
        for name in CHANGING[2:-1]:
            setattr(self, name, real(own[name]))
        self.converged = truth(own["converged"])

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        """Currents of held vertices are those of the last measurement; NaN before the first."""
        voltages, currents = state.take("voltages"), state.memory_like("sums")
        currents[:] = 0.0
        currents[state.extra["injected"]] = state.extra["amperes"]
        currents[state.extra["held"]] = state.extra.get("held_currents", np.nan)
        voltages += self._reference
        voltages[state.extra["held"]] = list(self.fixed.values())
        voltages[np.isinf(state["ohms"])] = np.nan
        return {"voltage": voltages, "current": currents}

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        voltages = columns["voltage"]
        return {
            "lowest": float(np.nanmin(voltages)),
            "highest": float(np.nanmax(voltages)),
            "floating": int(np.count_nonzero(np.isnan(voltages))),
            "error_bound": float(self.error_bound),
            "current_bound": float(self.current_bound),
            "converged": self.converged,
        }


def ends(graph: Snapshot) -> Any:
    """Voltages to test a circuit with: the first vertex at 1, the last at 0."""
    vertices = [graph.ids.natural(at, at + 1)[0] for at in {0, graph.vertices - 1}] if graph.vertices else []
    return {vertex: 1.0 - place for place, vertex in enumerate(vertices)}


@algorithm(not_live="the voltages everywhere are one solution of all equations")
def circuit(
    run: Runner,
    fixed: Annotated[
        dict[Any, float],
        Option(
            "Hold a vertex at a voltage; may be repeated.",
            flag="--fix",
            metavar="VOLTS",
            kind=Kind.BY_VERTEX,
            sample=ends,
        ),
    ],
    currents: Annotated[
        dict[Any, float] | None,
        Option("Inject a current; may be repeated.", flag="--current", metavar="AMPERES", kind=Kind.BY_VERTEX),
    ] = None,
    resistances: Annotated[bool, Option("Weights are resistances, not conductances.")] = False,
    tol: Annotated[float, Option("Bound on the error of every voltage, relative to the spread of all.")] = 1e-6,
    max_iter: MaxIter = 10_000,
) -> Answer:
    """Voltages of a resistor network, with a guaranteed error bound.

    Weights are conductances. No voltage is off by more than `tol` times the difference of the highest and the lowest.
    Edge directions are ignored. A vertex without a path to a held one has no voltage: it is masked (null in Arrow).
    """
    no_negative_weights(run, "circuit")
    directed = run.graph.directed

    def program(ohms: Array) -> Circuit:
        return Circuit(fixed, {} if currents is None else currents, ohms, resistances, tol, max_iter, directed)

    run.must_fit(program(NOTHING_YET))
    solver = program(run(path_resistances(list(fixed), resistances, directed)).columns["ohms"])
    answer = run(solver)
    rounding = solver.steps_left > 0 or solver.range > DIGITS  # not the iterations alone limit the answer
    if rounding and not solver.converged and not solver.error_bound < USELESS * solver.spread:
        raise OptionError(TOO_WIDE)
    if not solver.converged:
        why = f"stopped after {max_iter} iterations" if solver.steps_left == 0 else "rounding allows no smaller bound"
        run.note(f"{why}; voltages may be off by {solver.error_bound:.3g}, more than tol = {tol:g} of their spread")
    if floating := answer.figures["floating"]:
        run.note(f"{floating} vertices have no path to a held vertex: their voltages are undefined")
    note_unweighted(run)
    return answer
