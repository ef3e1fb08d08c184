"""Community detection by label propagation as LDBC Graphalytics defines it (CDLP, after Raghavan et al. 2007).

Every vertex starts with its own label. In each of `max_iter` synchronous rounds it takes the commonest label among its
neighbours, the smallest at a tie. In-edges and out-edges both count, so a neighbour in both directions counts twice. An
undirected edge counts once at each end.

The commonest label needs the whole list of a vertex, so a round takes the vertices window by window
(`windows.Windows`): labels are gathered in a table, each list is sorted, and the longest stretch of equal labels wins.
A hub whose list is larger than the table makes a window of its own, in which the table counts labels instead. Each edge
moves once per round and side, except in partitions that two windows share. A round that changes nothing is the last.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from isthmus import sizes
from isthmus.checks import whole
from isthmus.kernels.compile.atomics import atomic_add
from isthmus.kernels.programs import labels as kernels
from isthmus.programs.algorithm import Answer, Option, Runner, algorithm
from isthmus.programs.checkpoint_checks import exactly, integer, within
from isthmus.programs.column import Column, Holds
from isthmus.programs.functions import Functions
from isthmus.programs.program import Array, Facts, Program, State
from isthmus.programs.vertex_choice import label_counts
from isthmus.programs.windows import Windows


def counts_labels(u: Any, degree: Any, state: Any, params: Any) -> Any:
    return params[0] != 0


def gather(counting: Any, u: Any, v: Any, w: Any, state: Any, params: Any) -> Any:
    """Put v's label into u's list, or count it."""
    labels, cursors, table, _ = state
    if counting:
        atomic_add(table, np.int64(labels[v]), np.uint32(1))
    else:
        table[np.int64(atomic_add(cursors, u, np.uint32(1)))] = labels[v]
    return False


class LabelPropagation(Program):
    """Labels after `max_iter` rounds, as places in natural order."""

    name = "label_propagation"
    columns = (Column("labels", Holds.PLACES),)
    order_free = False
    needs_spare_memory = True
    state_bytes = 17  # labels old and new, cursors, the table, a mask of those that start

    def __init__(self, max_iter: int = 10, directed: bool = True) -> None:
        self.rounds = whole("max_iter", max_iter, 0)
        self.sides = ("out", "in") if directed else ("out",)
        self.done = 0

    def reads_weights(self) -> bool:
        return False

    def functions(self, facts: Facts) -> Functions:
        return Functions(counts_labels, gather)

    def begin(self, facts: Facts) -> State:
        n = facts.vertices
        naturals = facts.naturals()
        labels = np.arange(n, dtype=np.uint32) if naturals is None else naturals.astype(np.uint32)
        windows = Windows.of(facts, 4)
        arrays = {
            "labels": labels,
            "cursors": np.empty(n, np.uint32),
            "table": np.empty(windows.room, np.uint32),
            "fresh": np.empty(n, np.uint32),
        }
        start = windows.start() if self.rounds else np.empty(0, np.int64)
        return State(arrays, start, (0,), {"windows": windows, "first": 0, "changed": 0})

    def before(self, state: State, frontier: Any, facts: Facts) -> None:
        """Make room for the lists of this window."""
        windows, first = state.extra["windows"], state.extra["first"]
        last = windows.end(first)
        counting = windows.entries(first, last) > windows.room
        state.params = (int(counting),)
        if counting:
            state["table"][: facts.vertices] = 0
            return
        begin, cursors = windows.before(first), state["cursors"]
        facts.team.split(
            lambda a, b: kernels.lay_out(first + a, first + b, begin, windows.arcs_before, cursors), last - first
        )

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        windows, first = state.extra["windows"], state.extra["first"]
        last = windows.end(first)
        state.extra["changed"] += (
            self._count(state, facts, first) if state.params[0] else self._choose(state, facts, first, last)
        )
        if last == facts.vertices:
            state["labels"], state["fresh"] = state["fresh"], state["labels"]
            self.done += 1
            if self.done == self.rounds or not state.extra["changed"]:
                return False
            last, state.extra["changed"] = 0, 0
        state.extra["first"] = last
        frontier.wake(last, windows.end(last))
        return True

    def share_done(self, state: State, iteration: int) -> float | None:
        """By rounds, and within one by edges. It may end earlier, when no label changes."""
        windows = state.extra["windows"]
        within = (
            windows.before(state.extra["first"]) / windows.arcs if windows.arcs and self.done < self.rounds else 0.0
        )
        return (self.done + within) / self.rounds if self.rounds else None

    def _choose(self, state: State, facts: Facts, first: int, last: int) -> int:
        """Sort every list of the window, and take its commonest label."""
        labels, cursors, table, fresh = state.arrays
        ends = cursors[first:last]  # of one type with `wanted`, or all would be converted
        wanted = np.arange(sizes.now.sorted_piece, int(ends[-1]), sizes.now.sorted_piece, dtype=ends.dtype)
        cuts = np.unique(np.searchsorted(ends, wanted, "right"))
        bounds = [first, *(first + cuts).tolist(), last]
        changed = np.zeros(len(bounds) - 1, np.int64)

        def part(k: int) -> None:
            changed[k] = kernels.choose_labels(first, bounds[k], bounds[k + 1], cursors, table, labels, fresh)

        facts.team.each(part, changed.size)
        return int(changed.sum())

    def _count(self, state: State, facts: Facts, hub: int) -> int:
        """Give the hub the label that was counted most; returns whether that changed it."""
        labels, _, table, fresh = state.arrays
        parts = facts.team.split(lambda a, b: kernels.most_counted(table, a, b), facts.vertices)
        fresh[hub] = max(parts, key=lambda part: part[1])[0]  # the first of equals
        return int(fresh[hub] != labels[hub])

    def remember(self, state: State) -> dict[str, Any]:
        """Labels old and new, and how far the round is; the table is for one window only."""
        return {
            "labels": state["labels"],
            "fresh": state["fresh"],
            "first": state.extra["first"],
            "changed": state.extra["changed"],
            "done": self.done,
        }

    def recall(self, state: State, kept: dict[str, Any]) -> None:
        state["labels"], state["fresh"] = kept["labels"], kept["fresh"]
        state.extra |= {
            "first": integer(kept["first"], 0, kept["labels"].size - 1),
            "changed": integer(kept["changed"], 0),
        }
        self.done = integer(kept["done"], 0, self.rounds)

    def check_recalled(self, state: State, frontier: Any, facts: Facts) -> None:
        """A kernel takes labels for indices, and expects room in its table for the lists of active vertices."""
        within(state["labels"], facts.vertices - 1)
        within(state["fresh"][: state.extra["first"]], facts.vertices - 1)
        exactly(frontier, state.extra["first"], state.extra["windows"].end(state.extra["first"]))

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        return {"labels": state.given("labels")}

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        count, largest = label_counts(columns["labels"], state.memory_like("cursors"))
        return {"communities": count, "largest": largest, "rounds": self.done}


@algorithm(not_live="its labels depend on every round before, so one edge may change all later rounds")
def label_propagation(run: Runner, max_iter: Annotated[int, Option("Rounds of propagation.", least=0)] = 10) -> Answer:
    """Communities by synchronous label propagation (LDBC's CDLP), along in-edges and out-edges."""
    return run(LabelPropagation(max_iter, run.graph.directed))
