"""PageRank with a guaranteed bound, or by a fixed number of synchronous iterations.

x = (1 - d) p + d P^T x, where a walk at a vertex without out-edges teleports. One iteration replaces x by the right
side, which brings any two vectors nearer to each other by the factor d in L1. So x is off by at most d / (1 - d) |x - x
before|; the run stops when that is at most `tol`. Power iteration converges by the same factor, so the bound shrinks as
fast as the error. Where in-edges are stored, `programs/scores/sweeps.py` converges in fewer passes.

Another `dangling` distribution q takes a second solve: with x and y the PageRanks for teleports p and q, and m the mass
of x on vertices without edges, the answer is (1 - t) x + t y, t / (1 - t) = d m / (1 - d).

By iterations, as LDBC Graphalytics defines it: exactly `iterations` rounds from 1/n. The result depends on their
number.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from isthmus.checks import above_0, between_0_and_1, by_vertex, is_real, whole
from isthmus.errors import OptionError
from isthmus.graph.snapshot import Snapshot
from isthmus.kernels.scores import passes
from isthmus.programs.algorithm import Answer, Kind, Live, MaxIter, Option, Runner, UseWeights, algorithm
from isthmus.programs.checkpoint_checks import finite, real, truth
from isthmus.programs.column import Column, Within
from isthmus.programs.functions import Functions
from isthmus.programs.program import NOTHING_YET, Array, Facts, NearEdges, Program, Seen, State
from isthmus.programs.scores.sweeps import Ranking
from isthmus.programs.strengths import strengths_of
from isthmus.programs.sums import alone, summing, times
from isthmus.programs.weights import need_weights


class PageRank(Program):
    """PageRank with an L1 error of at most `tol`. `teleport` maps vertices (user ids) to shares; None: even.

    `strengths`: the sum of each vertex's edge weights, to follow edges in proportion to their weights.
    `beside`: bytes per vertex that the caller holds meanwhile.
    """

    name = "pagerank"
    all_active = True
    order_free = False  # every edge counts once per iteration
    sweeps = True  # in place, where in-edges are stored
    columns = (Column("pagerank", within=Within.TOTAL),)

    def __init__(
        self,
        alpha: float = 0.85,
        tol: float = 1e-6,
        max_iter: int = 1000,
        teleport: dict[Any, float] | None = None,
        strengths: Array | None = None,
        pulls: bool = True,
        beside: int = 0,
    ) -> None:
        self.alpha, self.tol, self.max_iter = (
            between_0_and_1("alpha", alpha),
            above_0("tol", tol),
            whole("max_iter", max_iter, 1),
        )
        self.teleport, self.strengths = teleport, strengths
        self.pulls = pulls
        self.sides = ("in",) if pulls else ("out",)
        self.state_bytes = 16 + (4 if strengths is None else 8) + (8 if teleport is not None else 0) + beside
        self.error_bound = float("inf")
        self.converged = False
        self._ranking: Ranking | None = None

    def reads_weights(self) -> bool:
        return self.strengths is not None

    def functions(self, facts: Facts) -> Functions:
        return summing(self.pulls, 1, 0, times if self.strengths is not None else alone)

    def begin(self, facts: Facts) -> State:
        n = facts.vertices
        teleports = None if self.teleport is None else teleport_vector(self.teleport, facts)
        ranks = np.empty(n)
        facts.team.split(lambda a, b: np.copyto(ranks[a:b], 1 / n if teleports is None else teleports[a:b]), n)
        if not n:  # an empty answer has no error
            self.error_bound, self.converged = 0.0, True
        extra = {"divisors": self._divisors(facts), "teleports": teleports}
        state = State({"ranks": ranks, "shares": np.empty(n)}, None, (), extra)
        if self.sweeps and self.pulls and n:
            assert self.max_iter is not None
            self._ranking = Ranking(facts, self.strengths is not None, self.alpha, self.tol, self.max_iter)
            self._ranking.begin(state)
        return state

    def _divisors(self, facts: Facts) -> Array | None:
        """What a vertex's rank is divided by before it is sent; None: the length of its list."""
        if self.strengths is None and (not facts.directed or not self.pulls):
            return None
        return facts.degrees() if self.strengths is None else self.strengths

    def loops(self, state: State) -> tuple[Any, Any] | None:
        return None if self._ranking is None or self._ranking.steps else (passes.sweep_rows, passes.sweep_range)

    def before(self, state: State, frontier: Any, facts: Facts) -> None:
        if self._ranking is not None:
            self._ranking.set_params(state)
            return
        divisors, kernel = state.extra["divisors"], passes.share_out
        sums = facts.team.split(lambda a, b: kernel(a, b, *facts.lists.arrays, divisors, *state.arrays), facts.vertices)
        self._stuck = sum(stuck for _, stuck in sums)

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        if self._ranking is not None:
            more = self._ranking.passed(state, iteration, self._ranking.delivered(state, frontier.next_marks))
            self._proved()
            return more
        ranks, shares = state.arrays
        rules = (state.extra["divisors"], state.extra["teleports"], self._base(state), self.alpha, 1.0)
        lists = facts.lists.arrays
        change = sum(
            facts.team.split(lambda a, b: passes.receive(a, b, *lists, rules, 1.0, shares, ranks), facts.vertices)
        )
        return self._goes_on(change)

    def _base(self, state: State) -> float:
        """The rank from teleports and from vertices without edges: per vertex if teleports are even, else in total."""
        whole = float(1 - self.alpha + self.alpha * self._stuck)
        return whole / max(state["ranks"].size, 1) if state.extra["teleports"] is None else whole

    def _goes_on(self, change: float) -> bool:
        self.error_bound = self.alpha / (1 - self.alpha) * change
        self.converged = self.error_bound <= self.tol
        return not self.converged

    def _proved(self) -> None:
        assert self._ranking is not None
        self.error_bound = self._ranking.error_bound
        self.converged = self.error_bound <= self.tol

    def remember(self, state: State) -> dict[str, Any]:
        if self._ranking is not None:
            return self._ranking.remember(state)
        return {"ranks": state["ranks"], "bound": (self.error_bound, self.converged)}

    def recall(self, state: State, kept: dict[str, Any]) -> None:
        if self._ranking is not None:
            self._ranking.recall(state, kept)
            return
        finite(kept["ranks"])
        state["ranks"] = kept["ranks"]
        self.error_bound, self.converged = real(kept["bound"][0]), truth(kept["bound"][1])

    def solve(self, state: State, facts: Facts, edges: NearEdges, seen: Seen) -> bool:
        if self._ranking is None:
            return not facts.vertices
        self._ranking.solve(state, edges, seen)
        self._proved()
        return True

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        return {"pagerank": state.take("ranks")}  # two of them may be combined in place, see `Walk`

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        ranks = columns["pagerank"]
        return {
            "highest": float(ranks.max()) if ranks.size else 0.0,
            "error_bound": self.error_bound,
            "converged": self.converged,
        }


def checked_shares(name: str, shares: Any) -> dict[Any, float] | None:
    """Shares by vertex as a dictionary, or None; OptionError if they are something else."""
    if shares is None:
        return None
    given = by_vertex(name, shares)
    for vertex, share in given.items():
        if share < 0:
            raise OptionError(f"{name}: expected shares of at least 0, got {share:g} for vertex {vertex!r}")
    if not any(given.values()):
        raise OptionError(f"{name}: expected at least one vertex with a share above 0")
    return given


def teleport_vector(shares: dict[Any, float], facts: Facts) -> Array:
    """Shares by user id as a vector that sums to one."""
    vector = np.zeros(facts.vertices)
    most = max(shares.values())
    for vertex, share in shares.items():
        vector[facts.number(vertex)] += share / most  # so that the sum stays finite
    vector /= vector.sum()
    return vector


class FixedPageRank(PageRank):
    """PageRank after exactly `iterations` synchronous rounds (LDBC Graphalytics)."""

    sweeps = False

    def __init__(self, alpha: float, iterations: int, pulls: bool = True) -> None:
        if not is_real(alpha) or not 0 <= alpha <= 1:
            raise OptionError(f"alpha: expected a number from 0 to 1, got {alpha!r}")
        super().__init__(pulls=pulls)
        self.alpha, self.max_iter = alpha, whole("iterations", iterations, 0)

    def share_done(self, state: State, iteration: int) -> float | None:
        return iteration / self.max_iter if self.max_iter else None

    def _goes_on(self, change: float) -> bool:
        return True

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        return {"pagerank": state.given("ranks")}

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        ranks = columns["pagerank"]
        return {"highest": float(ranks.max()) if ranks.size else 0.0}


Shares = Annotated[
    dict[Any, float] | None, Option("Share of a vertex; may be repeated.", metavar="SHARE", kind=Kind.BY_VERTEX)
]


def live_pagerank(graph: Snapshot, **options: Any) -> Program:
    """PageRank that a stream keeps current."""
    from isthmus.programs.scores import deltas  # it imports this file

    return deltas.live_pagerank(graph, **options)


@algorithm(place=4, live=Live("PageRank", live_pagerank))
def pagerank(
    run: Runner,
    alpha: Annotated[float, Option("Damping: the chance of following an edge.")] = 0.85,
    personalization: Shares = None,
    max_iter: MaxIter = 1000,
    tol: Annotated[float, Option("Bound on the L1 error of the result.")] = 1e-6,
    weight: UseWeights = False,
    dangling: Shares = None,
    iterations: Annotated[
        int | None, Option("Exactly this many rounds, as LDBC Graphalytics defines them.", least=0)
    ] = None,
) -> Answer:
    """Importance by random walk, with a guaranteed error bound.

    `tol` bounds the L1 error of the answer; with `iterations` exactly so many rounds run (LDBC Graphalytics).
    `personalization` and `dangling` map vertices to shares; `weight` follows edges in proportion to their weights.
    """
    if iterations is not None:
        if personalization is not None or dangling is not None or weight:
            raise OptionError("a fixed number of iterations is LDBC's PageRank: no personalization, dangling or weight")
        return run(FixedPageRank(alpha, iterations, run.graph.has_in_edges))
    need_weights(run, weight, "pagerank")
    personalization, dangling = checked_shares("personalization", personalization), checked_shares("dangling", dangling)
    two = dangling is not None and dangling != personalization
    walk = Walk(run, alpha, max_iter, tol, weight)
    run.must_fit(
        walk.program(tol, dangling if two else personalization, NOTHING_YET if weight else None, 8 if two else 0)
    )
    return walk.with_dangling(personalization, dangling) if two else walk.solve(tol, personalization)


class Walk:
    """PageRank of one graph with some options, for one teleport vector or for two."""

    def __init__(self, run: Runner, alpha: float, max_iter: int, tol: float, weight: bool) -> None:
        self._run, self._alpha, self._max_iter, self._tol, self._weight = run, alpha, max_iter, tol, weight
        self._strengths: Array | None = None

    def program(self, tol: float, teleport: Any, strengths: Array | None, beside: int = 0) -> PageRank:
        """The program to run: by pulling, or by deltas on modelled devices and from far memory by published recipes."""
        from isthmus.programs.scores.deltas import DeltaPageRank  # it imports this file

        pulling = PageRank(self._alpha, tol, self._max_iter, teleport, strengths, self._run.graph.has_in_edges, beside)
        if self._run.sweeps(pulling):
            return pulling
        return DeltaPageRank(self._alpha, tol, self._max_iter, teleport, strengths, beside)

    def solve(self, tol: float, teleport: Any, beside: int = 0) -> Answer:
        """PageRank for one teleport vector, with an error of at most `tol`."""
        if self._weight and self._strengths is None:
            self._strengths = strengths_of(self._run)
        program = self.program(tol, teleport, self._strengths, beside)
        answer = self._run(program)
        if not program.converged:
            reached = f"the error is bounded by {program.error_bound:.3g}, not by tol = {tol:g}"
            self._run.note(f"stopped after {self._max_iter} iterations; {reached}")
        return answer

    def with_dangling(self, teleport: Any, dangling: Any) -> Answer:
        """PageRank with a `dangling` distribution: (1 - t) x + t y, with x and y the PageRanks for the two teleport
        vectors.

        t follows from the mass of x on vertices without edges, so that errors grow by at most 1 / (1 - alpha).
        """
        alpha, within = self._alpha, self._tol * (1 - self._alpha) * 0.9
        first = self.solve(within, teleport)
        second = self.solve(within, dangling, beside=8)
        ends = (self._run.graph.out_degrees() if self._strengths is None else self._strengths) == 0
        x, y = first.columns["pagerank"], second.columns["pagerank"]
        stuck = float(x[ends].sum())
        share = alpha * stuck / (1 - alpha + alpha * stuck)
        x *= 1 - share
        y *= share
        x += y
        # A vector that is off by e has at most e / 2 too much mass anywhere, and x and y are at most 2 apart.
        p, q = first.figures["error_bound"], second.figures["error_bound"]
        slope = alpha * (1 - alpha) / (1 - alpha + alpha * max(stuck - p / 2, 0)) ** 2
        bound = (1 - share) * p + share * q + slope * p
        first.figures = {
            "highest": float(x.max()) if x.size else 0.0,
            "error_bound": bound,
            "converged": bound <= self._tol,
        }
        return first
