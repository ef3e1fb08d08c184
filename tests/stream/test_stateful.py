"""Any interleaving of batches (`stream/live.py`): the graph is what a dictionary says, and every maintained answer what
NetworkX says.
"""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.stream.answers import assert_same, by_vertex, cases
from tests.stream.packed import assert_answers, assert_holds
from tests.stream.plain import DELETE, INSERT, REWEIGH, Plain, RefusedError

import isthmus as ist
from isthmus import sizes

POOL = 9  # vertices that may exist
OUTSIDE = 2  # more ids, which only come with batches
UNREACHED = (2**63 - 1, -(2**63))
places = st.integers(0, POOL + OUTSIDE - 1)
wishes = st.sampled_from([INSERT, INSERT, DELETE, DELETE, REWEIGH])
whole, real = st.integers(0, 4), st.sampled_from([0.0, 0.1, 0.2, 0.7, 1.0, 3.0])
rows = st.lists(st.tuples(wishes, places, places, st.integers(0, 5)), max_size=12)
few = st.lists(places, max_size=3, unique=True)


class Streams(RuleBasedStateMachine):
    """A stream with every maintained program, beside a plain graph."""

    live: Any = None

    @initialize(
        directed=st.booleans(),
        weighted=st.booleans(),
        real=st.booleans(),
        names=st.booleans(),
        spread=st.sampled_from([1, 7]),
        edges=st.lists(
            st.tuples(st.integers(0, POOL - 1), st.integers(0, POOL - 1), st.integers(0, 5)), min_size=1, max_size=25
        ),
        few_changes=st.sampled_from([0, 2, 512]),
        settled_alone=st.sampled_from([1, 8, 1 << 21]),
        align=st.sampled_from([None, True, False]),
    )
    def start(
        self,
        directed: bool,
        weighted: bool,
        real: bool,
        names: bool,
        spread: int,
        edges: list[Any],
        few_changes: int,
        settled_alone: int,
        align: bool | None,
    ) -> None:
        self.stack = contextlib.ExitStack()
        self.stack.enter_context(sizes.using(few_changes=few_changes, settled_alone=settled_alone))
        self.plain, self.spread = Plain(directed, weighted, real, names), spread
        self.plain.put([(self.name(u), self.name(v), self.weight(w)) for u, v, w in edges])
        self.source, self.align = min(self.plain.vertices), align
        self.open(self.plain.read())

    def open(self, graph: Any) -> None:
        self.cases = cases(self.source, self.plain.weighted)
        self.live = ist.stream(graph, [case.wanted() for case in self.cases], threads=2, align=self.align)
        self.results: list[Any] = []  # of the last batches, with what they should be
        self.expected = {case.title: case.expected(self.plain, self.live.graph) for case in self.cases}

    def name(self, place: int) -> Any:
        return f"n{place}" if self.plain.names else place * self.spread - self.spread // 2

    def weight(self, number: int) -> Any:
        return [0.0, 0.1, 0.2, 0.7, 1.0, 3.0][number] if self.plain.real else number

    def named(self, rows: list[Any]) -> list[Any]:
        return [(wish, self.name(u), self.name(v), self.weight(w)) for wish, u, v, w in rows]

    def known(self, places: list[int]) -> list[Any]:
        """Edges that exist."""
        edges = sorted(self.plain.edges)
        return [edges[place % len(edges)] for place in places] if edges else []

    def batch(self, rows: list[Any], added: list[Any] = (), removed: list[Any] = (), strict: bool = False) -> None:  # type: ignore[assignment]
        """Apply a batch to both; where one refuses it, both must, and nothing has changed."""
        number, edits = self.live.number, self.plain.edits(rows, added, removed)
        try:
            if self.source in removed:
                raise RefusedError("the source")
            counts = self.plain.apply(rows, added, removed, strict)
        except RefusedError:
            with pytest.raises(ist.BatchError):
                self.live.apply_edits(edits, strict)
            assert self.live.number == number
        else:
            report = self.live.apply_edits(edits, strict)
            assert (report.number, self.live.number) == (number + 1, number + 1)
            assert {name: report.counts[name] for name in counts} == counts
            self.published()

    def published(self) -> None:
        """Note what the batch should have given. Results are looked at now or, every other time, only after later
        batches.
        """
        before = self.expected
        self.expected = {case.title: case.expected(self.plain, self.live.graph) for case in self.cases}
        for case in self.cases:
            result = self.live[case.title]
            assert result.number == self.live.number
            self.results.append((case, result, self.expected[case.title], before[case.title]))
        if self.live.number % 2:
            self.assert_results()
        del self.results[: -3 * len(self.cases)]

    def assert_results(self) -> None:
        """Results are those of their batches, whatever came later."""
        for case, result, expected, before in self.results:
            try:
                assert_same(by_vertex(result), expected, case.tol)
                assert_changes(result.changes(), before, expected, case.tol)
            except AssertionError as error:
                error.add_note(f"{case.title} after batch {result.number}; now at {self.live.number}: {self.plain}")
                raise

    @rule(rows=rows, strict=st.booleans())
    def edges(self, rows: list[Any], strict: bool) -> None:
        self.batch(self.named(rows), strict=strict)

    @rule(rows=rows, added=few, removed=few, strict=st.booleans())
    def edges_and_vertices(self, rows: list[Any], added: list[int], removed: list[int], strict: bool) -> None:
        self.batch(self.named(rows), [self.name(v) for v in added], [self.name(v) for v in removed], strict)

    @rule(removed=few, rows=rows)
    def vertices_leave(self, removed: list[int], rows: list[Any]) -> None:
        """Vertices that exist are removed; nothing else in the batch uses them."""
        gone = {self.name(v) for v in removed} & self.plain.vertices - {self.source}
        self.batch([row for row in self.named(rows) if not gone & {row[1], row[2]}], removed=sorted(gone))

    @rule(chosen=st.lists(st.integers(0, 99), min_size=1, max_size=8), w=st.integers(0, 5), again=st.booleans())
    def existing_edges(self, chosen: list[int], w: int, again: bool) -> None:
        """Existing edges are deleted, and some of them inserted again, in one batch or in two."""
        gone = list(dict.fromkeys(self.known(chosen)))
        back = [(INSERT, u, v, self.weight(w)) for u, v in gone[::2]]
        deletes = [(DELETE, u, v, self.weight(0)) for u, v in gone]
        if again:
            self.batch([*deletes, *back], strict=True)
        else:
            self.batch(deletes, strict=True)
            self.batch(back, strict=True)

    @precondition(lambda self: self.live is not None and self.plain.weighted)
    @rule(chosen=st.lists(st.integers(0, 99), min_size=1, max_size=8), w=st.integers(0, 5))
    def weights(self, chosen: list[int], w: int) -> None:
        self.batch([(REWEIGH, u, v, self.weight(w)) for u, v in self.known(chosen)], strict=True)

    @rule()
    def everything_goes(self) -> None:
        self.batch([(DELETE, u, v, self.weight(0)) for u, v in self.plain.edges])

    @rule()
    def reopen(self) -> None:
        """Save, and open the stream anew from the store."""
        with tempfile.TemporaryDirectory() as folder:
            self.live.save(Path(folder) / "now.isthmus")
            self.live.close()
            assert ist.verify(Path(folder) / "now.isthmus").ok
            with ist.open(Path(folder) / "now.isthmus") as graph:
                assert_answers(graph, self.plain)
            self.assert_results()
            self.open(Path(folder) / "now.isthmus")
        self.assert_results()

    @invariant()
    def check(self) -> None:
        if self.live is not None:
            assert_holds(self.live.graph, self.plain)
            assert_answers(self.live.graph, self.plain)
            self.trees()

    def trees(self) -> None:
        """Parents lead to the source along edges that give each vertex its value."""
        users = self.live.graph.changing_ids.users().tolist()
        for name in ("bfs", "sssp"):
            program = self.live.batches.programs[name]
            n = self.live.graph.vertices
            values, parents = program.state.values[:n].tolist(), program.state.parents[:n].tolist()
            for v, parent in enumerate(parents):
                if parent == 2**32 - 1:
                    assert users[v] == self.source or values[v] in (*UNREACHED, np.inf)
                    continue
                w = self.plain.edges[self.plain.key(users[parent], users[v])]
                assert values[v] == values[parent] + (1 if w is None or name == "bfs" else w), name
            assert all(ends_at_root(v, parents) for v in range(n)), "no cycle"

    def teardown(self) -> None:
        if self.live is not None:
            self.live.close()
            self.assert_results()
            self.stack.close()


def assert_changes(found: dict[str, Any], before: dict[Any, Any], now: dict[Any, Any], tol: float) -> None:
    """`changes()` is the difference of two results: vertices that came or went have no old or new value."""
    listed = dict(
        zip(found["vertex"].tolist(), zip(values(found["old"]), values(found["new"]), strict=True), strict=True)
    )
    assert list(listed) == sorted(listed)
    different = {v: (before.get(v), now.get(v)) for v in before.keys() | now.keys() if before.get(v) != now.get(v)}
    if not tol:
        assert listed == different
        return
    for v, pair in listed.items():  # scores: those that were computed again, and some were not, as the bound has room
        for value, expected in zip(pair, (before.get(v), now.get(v)), strict=True):
            assert value == expected if expected is None else abs(value - expected) <= tol
    assert all(
        v in listed or abs(old - new) <= 3 * tol
        for v, (old, new) in different.items()
        if old is not None and new is not None
    )


def values(column: Any) -> list[Any]:
    return [None if value is np.ma.masked else value for value in column.tolist()]


def ends_at_root(v: int, parents: list[int]) -> bool:
    for _ in parents:
        if parents[v] == 2**32 - 1:
            return True
        v = parents[v]
    return False


TestStreams = Streams.TestCase
TestStreams.settings = settings(
    max_examples=25,
    stateful_step_count=10,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
