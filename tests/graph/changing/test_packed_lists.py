"""Packed lists: growth, density after every rebalance, alignment, hubs; and batches of every awkward kind, in any order
of rows.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tests.stream.packed import assert_answers, assert_holds, assert_packed
from tests.stream.plain import DELETE, INSERT, REWEIGH, Plain, RefusedError

import isthmus as ist
from isthmus.graph.changing.change import sorted_pairs
from isthmus.graph.changing.changing_graph import ChangingGraph
from isthmus.graph.changing.packed_lists import LOOSE, SPARSE, TIGHT, aligned_slots, leaf_size
from isthmus.kernels.changing import packed_array

KINDS = [(directed, weighted) for directed in (True, False) for weighted in (True, False)]


class Both:
    """A changing graph and a plain one, which get the same batches."""

    def __init__(self, plain: Plain, align: bool | None = None, threads: int = 2) -> None:
        self.plain, self.graph = plain, ChangingGraph(plain.read(), threads, align)
        assert_holds(self.graph, plain)

    def apply(self, rows: list[Any], added: Any = (), removed: Any = (), strict: bool = False) -> dict[str, int]:
        edits = self.plain.edits(rows, added, removed)
        counts = self.plain.apply(rows, added, removed, strict)
        change = self.graph.apply(edits, strict)
        assert {name: change.counts[name] for name in counts} == counts
        assert_holds(self.graph, self.plain)
        return change.counts

    def refuses(self, rows: list[Any], message: str, strict: bool = True, **vertices: Any) -> None:
        """The whole batch is refused, and nothing has changed."""
        number, before = (
            self.graph.number,
            [[array.copy() for array in side.arrays()] for side in self.graph.sides.values()],
        )
        with pytest.raises(RefusedError):
            self.plain.apply(rows, **vertices, strict=strict)
        with pytest.raises(ist.BatchError, match=message):
            self.graph.apply(self.plain.edits(rows, **vertices), strict)
        after = [side.arrays() for side in self.graph.sides.values()]
        for one, other in zip(before, after, strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
        assert self.graph.number == number
        assert_holds(self.graph, self.plain)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every choice of windows is checked: disjoint, in order, each the smallest around its crowded vertices that is not
    too dense.
    """
    plain, seen = packed_array.choose_windows, []

    def choose(
        crowded: Any, needs: Any, begins: Any, ends: Any, n: int, unit: int, leaf: int, height: int, *rest: Any
    ) -> int:
        count = plain(crowded, needs, begins, ends, n, unit, leaf, height, *rest)
        need = np.where(needs[:n] > 0, needs[:n], ends[:n] - begins[:n])
        need = -(-need // unit) * unit

        def fits(first: int, last: int, h: int) -> bool:
            bound = TIGHT + (LOOSE - TIGHT) * h / max(height, 1)
            return bool(need[first:last].sum() <= bound * (begins[last] - begins[first]))

        windows = rest[-1][: max(count, 0)].tolist()
        seen.append((count, windows))
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(windows))
        for u in crowded.tolist():
            dyadic = [
                (u // (leaf << h) * (leaf << h), min((u // (leaf << h) + 1) * (leaf << h), n), h)
                for h in range(height + 1)
            ]
            if count < 0:
                continue
            smallest = next((first, last) for first, last, h in dyadic if fits(first, last, h))
            around = [window for window in windows if window[0] <= u < window[1]]
            assert len(around) == 1 and around[0][0] <= smallest[0] and smallest[1] <= around[0][1]
            assert next(fits(first, last, h) for first, last, h in dyadic if [first, last] == around[0])
        if count < 0:
            assert not fits(0, n, height), "it grows only if the root is too dense"
        return int(count)

    monkeypatch.setattr(packed_array, "choose_windows", choose)
    return seen


@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize(("directed", "weighted"), KINDS)
def test_growth_and_rebalancing(directed: bool, weighted: bool, align: bool, watched: list[Any]) -> None:
    """Insertions at a few crowded vertices, then everywhere: windows are respread, the array doubles; then all is
    deleted again.
    """
    draw = np.random.default_rng(1)
    both = Both(Plain(directed, weighted).put([(k, k + 1, 1) for k in range(60)]), align)
    side, sizes = both.graph.sides["out"], [both.graph.sides["out"].slots]
    for number in range(14):
        near = 6 if number < 5 else 60
        rows = [
            (INSERT, int(draw.integers(0, near)), int(draw.integers(0, 300)), int(draw.integers(1, 9)))
            for _ in range(300)
        ]
        both.apply(rows)
        sizes.append(side.slots)
        need = aligned_slots(side.lists().degrees(), side._unit)
        if sizes[-1] > sizes[-2]:
            assert sizes[-1] >= 2 * sizes[-2], "it grows at least twofold"
            assert need <= LOOSE * side.slots, "and is not too dense then"
    assert any(count > 0 for count, _ in watched) and any(count < 0 for count, _ in watched), "both respread and grown"
    every = [(DELETE, u, v, 0) for u, v in both.plain.edges]
    for part in range(8):
        both.apply(every[part::8])
    assert side.arcs == 0 and side.slots <= max(sizes) / 2, "nearly empty arrays are given back"
    for k in range(5):  # vertices that come after the array was halved begin on lines as well
        both.apply([(INSERT, 100 + k, 3, 1)], added=[200 + k])


def test_halving_happens_only_below_the_bound() -> None:
    both = Both(Plain(False, False).put([(u, v, None) for u in range(40) for v in range(u)]), True)
    side = both.graph.sides["out"]
    for u in range(40):
        before = side.slots
        both.apply([(DELETE, u, v, 0) for v in range(u)])
        if side.slots < before:
            assert aligned_slots(side.lists().degrees(), side._unit) <= SPARSE * before


def test_one_large_deletion_gives_back_more_than_half() -> None:
    both = Both(Plain(False, False).put([(u, v, None) for u in range(100) for v in range(u)]), False)
    side = both.graph.sides["out"]
    before = side.slots
    both.apply([(DELETE, u, v, 0) for u in range(5, 100) for v in range(u)])
    assert side.slots < before / 8 and side.arcs >= SPARSE * side.slots


def test_alignment_can_be_chosen() -> None:
    edges = [(u, v, 1) for u in range(50) for v in range(50) if (u * v) % 3]
    for align, unit in ((True, 32), (False, 1), (None, 1)):
        both = Both(Plain().put(edges), align)
        assert both.graph.sides["out"]._unit == unit
        with both.graph as graph:
            assert all(begin % unit == 0 for begin in graph.snapshot.lists("out").begins.tolist())
            assert graph.sides["out"].targets.ctypes.data % 128 == 0 == graph.sides["out"].weights.ctypes.data % 128
    dense = Both(Plain().put([(u, v, 1) for u in range(100) for v in range(100)]))
    assert dense.graph.sides["out"]._unit == 32, "where it takes little memory, lists are aligned"


@pytest.mark.parametrize(("directed", "weighted"), KINDS)
def test_hubs(directed: bool, weighted: bool) -> None:
    """A list of thousands: grown at once, thinned at once, and both in one batch."""
    both = Both(Plain(directed, weighted).put([(0, 1, 1), (2, 3, 1)]))
    both.apply([(INSERT, 0, v, v % 7) for v in range(3000)], strict=False)
    assert both.graph.out_degree(0) == 3000 and both.graph.self_loops == 1
    both.apply(
        [(DELETE, 0, v, 0) for v in range(0, 3000, 2)] + [(REWEIGH, 0, v, 9) for v in range(1, 3000, 2)],
        strict=weighted,
    )
    both.apply(
        [(DELETE, 0, v, 0) for v in range(1, 3000, 3) if v % 2] + [(INSERT, 0, v, 3) for v in range(0, 3000, 4)],
        strict=True,
    )
    both.apply([], removed=[0])
    assert both.graph.edges == 1


@pytest.mark.parametrize(("directed", "weighted"), KINDS)
def test_from_nothing_and_back(directed: bool, weighted: bool) -> None:
    """A graph without vertices, one vertex, a self loop, and nothing again."""
    both = Both(Plain(directed, weighted))
    assert both.graph.vertices == both.graph.sides["out"].slots == 0
    both.apply([])
    both.apply([(DELETE, 5, 6, 0), (REWEIGH, 5, 5, 0)])
    both.apply([], added=[5])
    assert both.graph.vertices == 1
    both.apply([(INSERT, 5, 5, 2)])
    assert_answers(both.graph, both.plain)
    both.apply([(INSERT, 5, 5, 4), (DELETE, 5, 5, 0), (INSERT, 5, 5, 6)])
    both.apply([], removed=[5])
    assert both.graph.vertices == 0
    both.apply([(INSERT, -3, 8, 1)], added=[-9])
    both.apply([], removed=[8, -3, -9])
    assert both.graph.vertices == 0 and both.graph.frozen().vertices == 0


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("directed", "weighted"), KINDS)
def test_parallel_and_missing_edges(directed: bool, weighted: bool, strict: bool) -> None:
    """Counted, or an error for the whole batch; the rows of a batch count in order of arrival."""
    both = Both(Plain(directed, weighted).put([(1, 2, 5), (2, 3, 6), (3, 3, 7)]))
    batches: list[tuple[list[Any], str | None]] = [
        ([(INSERT, 1, 2, 8)], "it exists"),
        ([(INSERT, 7, 8, 1), (INSERT, 7, 8, 2)], "row 1: cannot insert the edge 7 -> 8: it exists"),
        ([(DELETE, 1, 9, 0)], "does not exist"),
        ([(DELETE, 1, 2, 0), (DELETE, 1, 2, 0)], "row 1: the edge 1 -> 2 does not exist"),
        ([(DELETE, 3, 3, 0), (INSERT, 3, 3, 1)], None),
        ([(INSERT, 4, 4, 1), (DELETE, 4, 4, 0)], None),
        ([(DELETE, 2, 3, 0), (REWEIGH, 2, 3, 4)], "row 1: the edge 2 -> 3 does not exist"),
        ([(INSERT, 2, 1, 3), (DELETE, 2, 1, 0)], None if directed else "it exists"),
    ]
    for rows, message in batches:
        if strict and message is not None:
            both.refuses(rows, message)
        else:
            both.apply(rows, strict=strict)


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("directed", [True, False])
def test_vertices_come_and_go(directed: bool, names: bool) -> None:
    name = (lambda k: f"n{k}") if names else (lambda k: 3 * k)
    both = Both(Plain(directed, True, names=names).put([(name(u), name(v), u + v) for u in range(8) for v in range(u)]))
    both.refuses([(INSERT, name(2), name(9), 1)], "removed and used in the same batch", strict=False, removed=[name(2)])
    both.refuses([], "removed and used in the same batch", strict=False, removed=[name(2)], added=[name(2)])
    both.refuses([], "cannot be removed: it does not exist", removed=[name(40)])
    both.refuses([], "cannot be added: it exists", added=[name(1)])
    both.apply([], removed=[name(0), name(7), name(3)])
    both.apply([(INSERT, name(3), name(4), 5)], added=[name(0)])
    both.apply([(DELETE, name(3), name(4), 5)], removed=[name(1)], added=[name(11)])
    both.apply([], removed=sorted(both.plain.vertices)[1:])
    assert both.graph.vertices == 1
    both.apply([(INSERT, name(k), name(k), 1) for k in range(20)])
    assert_answers(both.graph, both.plain)


def test_many_changes_by_several_threads(sized: Any) -> None:
    """As by one thread alone."""
    sized(few_changes=0)
    draw = np.random.default_rng(4)
    one, two = (Both(Plain().put([(k, k + 1, 1) for k in range(300)]), threads=threads) for threads in (1, 2))
    for _ in range(4):
        wishes = draw.choice([INSERT, INSERT, DELETE, REWEIGH], 900).tolist()
        rows = list(
            zip(wishes, *draw.integers(0, 300, (2, 900)).tolist(), draw.integers(1, 9, 900).tolist(), strict=True)
        )
        assert one.apply(rows) == two.apply(rows)


def test_positions_have_64_bits() -> None:
    both = Both(Plain().put([(0, 1, 1)]))
    begins, ends, *_ = both.graph.sides["out"].arrays()
    assert begins.dtype == ends.dtype == np.int64
    draw = np.random.default_rng(2)
    for vertices in (5, 2**31 + 1, 2**40):  # the last does not fit into keys of 64 bits
        us, vs = draw.integers(0, vertices + 1, (2, 500))
        us[::3], vs[::5] = us[0], vertices
        assert sorted_pairs(us, vs, vertices).tolist() == np.lexsort((vs, us)).tolist()


def test_leaves_cover_all_vertices() -> None:
    for n in (*range(1, 200), 10**6, 2**31):
        leaf, height = leaf_size(n)
        assert leaf << height >= n and (height == 0 or leaf << (height - 1) < n)


def test_lists_of_a_changing_graph_open_another() -> None:
    """Their lists have gaps and are not sorted; the copy goes its own way."""
    both = Both(Plain(False).put([(u, v, u) for u in range(9) for v in range(u)]))
    both.apply([(DELETE, 3, 1, 0), (INSERT, 20, 3, 1)], removed=[5])
    plain = Plain(False, True, edges=dict(both.plain.edges), vertices=set(both.plain.vertices))
    with ChangingGraph(both.graph) as copy:
        assert_holds(copy, plain)
        both.apply([(INSERT, 30, 31, 1)])
        assert_holds(copy, plain)
        assert_packed(copy.sides["out"])
