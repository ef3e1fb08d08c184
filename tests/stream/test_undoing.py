"""A batch on which a program fails is undone (`stream/live.py`): graph and results are as before it, and the next batch
is exact.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.stream.answers import assert_same, by_vertex, cases
from tests.stream.plain import DELETE, INSERT, REWEIGH, Plain

import isthmus as ist

VERTICES = 24
FAILING = ("bfs", "weakly_connected_components", "pagerank", "personalized_pagerank", "core_number")


@ist.accumulative(threshold=1e-9)
def doubling(delta, degree, factor=0.2):  # type: ignore[no-untyped-def]
    return factor * delta * degree


def begun(seed: int, directed: bool, names: bool = False) -> tuple[random.Random, Plain]:
    draw = random.Random(seed)
    name = (lambda v: f"v{v:02}") if names else (lambda v: v)
    edges = [
        (name(draw.randrange(VERTICES)), name(draw.randrange(VERTICES)), draw.randrange(1, 6))
        for _ in range(3 * VERTICES)
    ]
    return draw, Plain(directed, names=names).put(edges)


def batch(
    draw: random.Random, plain: Plain, source: Any, fresh: Any, leave: bool
) -> tuple[list[Any], list[Any], list[Any]]:
    """(rows, added, removed): edges come, also to new vertices, go and get other weights; a vertex comes and one may
    leave.
    """
    removed = [draw.choice(sorted(plain.vertices - {source}))] if leave else []
    pool = sorted(plain.vertices - set(removed))
    rows: list[Any] = [(INSERT, draw.choice(pool), draw.choice(pool), draw.randrange(1, 6)) for _ in range(4)]
    known = [edge for edge in sorted(plain.edges) if not set(edge) & set(removed)]
    rows += [(draw.choice([DELETE, REWEIGH]), *draw.choice(known), draw.randrange(1, 6)) for _ in range(8)]
    return [*rows, (INSERT, draw.choice(pool), fresh(1), 2)], [fresh(2)], removed


def contents(live: Any) -> Any:
    """All of a graph that a user can see."""
    graph = live.graph.frozen()
    arrays = [graph.ids.users(np.arange(graph.vertices)).tolist()]
    for v in arrays[0]:
        near = graph.neighbors(v).tolist()
        arrays.append(sorted(zip(near, [graph.edge_weights(v, u).tolist() for u in near], strict=True)))
    about = (
        live.number,
        live.graph.number,
        live.graph.vertices,
        live.graph.edges,
        live.graph.arcs,
        live.graph.self_loops,
        live.graph.ids.kind,
    )
    return arrays, about, live.graph.snapshot.negative_weights


@pytest.mark.parametrize(("directed", "names"), [(True, False), (False, True)])
def test_a_program_that_fails_leaves_no_trace(directed: bool, names: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever program fails, before or after its own work: batches that are undone and batches that are applied take
    turns.
    """
    draw, plain = begun(5, directed, names)
    source = min(plain.vertices)
    requested = [case for case in cases(source) if not (case.algorithm == "katz" and case.options.get("weight"))]
    steps = [(title, step) for title in FAILING for step in ("correct", "compute", "late")]
    with ist.stream(plain.read(), [case.wanted() for case in requested], threads=2) as live:
        for number, (title, step) in enumerate(steps):
            fresh = (lambda k, at=number: f"w{at}.{k}") if names else (lambda k, at=number: 1000 * k + at)
            edits = batch(draw, plain, source, fresh, number % 2 == 1)
            before, held = (
                contents(live),
                {name: (live[name], by_vertex(live[name]), live[name].summary()) for name in live},
            )
            method = "correct" if step == "correct" else "compute"
            with monkeypatch.context() as patch:
                program = live.batches.programs[title]
                patch.setattr(program, method, failing(getattr(program, method), step))
                with pytest.raises(RuntimeError, match="no luck"):
                    live.apply_edits(plain.edits(*edits))
            assert contents(live) == before
            for name, (result, values, summary) in held.items():
                assert live[name] is result and by_vertex(result) == values and result.summary() == summary
            plain.apply(*edits)
            report = live.apply_edits(plain.edits(*edits))
            assert report.number == live.number == number + 1
            for case in requested if number % 3 == 0 else requested[number % 3 :: 3]:
                assert_same(by_vertex(live[case.title]), case.expected(plain, live.graph), case.tol)


def failing(work: Any, step: str) -> Any:
    """A step of a batch that fails, at once or when its work is done."""

    def fails(change: Any) -> None:
        if step != "compute":
            work(change)
        raise RuntimeError("no luck")

    return fails


@pytest.mark.parametrize("directed", [True, False])
def test_katz_whose_alpha_becomes_too_large(directed: bool) -> None:
    _, plain = begun(7, directed)
    wanted = [
        ist.SSSP(source=min(plain.vertices)),
        ist.WeaklyConnectedComponents(),
        ist.PageRank(),
        ist.Katz(alpha=0.06),
        ist.CoreNumber(),
    ]
    clique = [(INSERT, u, v, 1) for u in range(100, 120) for v in range(100, 120) if u != v]
    with ist.stream(plain.read(), wanted, threads=2) as live:
        before, held = contents(live), {name: live[name] for name in live}
        values = {name: result.values.copy() for name, result in held.items()}
        for _ in range(2):
            with pytest.raises(
                ist.BatchError,
                match=r"batch 1: katz does not converge on this graph: alpha: 0\.06 is too large .*; nothing "
                r"was applied",
            ):
                live.apply_edits(plain.edits([*clique, (DELETE, *min(plain.edges), 1)]))
            assert contents(live) == before and live.check() == {}
            assert all(live[name] is held[name] and np.array_equal(values[name], live[name].values) for name in live)
        live.apply(inserts=[(100, min(plain.vertices), 2)])
        assert live.number == 1 and live.check() == {}
        assert live["sssp"].changes()["vertex"].tolist() == ([] if directed else [100])


def test_a_batch_that_was_undone_is_not_in_the_log(tmp_path: Path) -> None:
    path = ist.generate("path", vertices=10)
    clique = [(u, v) for u in range(10) for v in range(u)]
    with ist.stream(path, [ist.Katz(alpha=0.2), ist.BFS(source=0)], log=tmp_path / "log") as live:
        live.apply(inserts=[(0, 10)])
        with pytest.raises(ist.BatchError, match="batch 2: katz does not converge"):
            live.apply(inserts=clique, id="large")
        assert not live.apply(inserts=[(0, 11)], id="large").repeated
        values = live["katz"].values.copy()
    with ist.stream(log=tmp_path / "log") as again:
        assert again.number == 2 and again.graph.edges == 11 and again.check() == {}
        assert np.allclose(again["katz"].values, values, rtol=1e-5)


def test_a_batch_that_is_in_the_log_already_is_not_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that cannot fail let the log sync meanwhile; if one fails nevertheless, the stream ends, and has the
    batch when opened.
    """
    with ist.stream(ist.generate("path", vertices=10), [ist.BFS(source=0)], log=tmp_path / "log") as live:
        before = live["bfs"].values.tolist()
        with monkeypatch.context() as patch:
            patch.setattr(live.batches.programs["bfs"], "compute", failing(None, "compute"))
            with pytest.raises(RuntimeError, match="no luck"):
                live.apply(inserts=[(0, 9)])
        with pytest.raises(ist.BatchError, match="the stream has ended"):
            live.apply(inserts=[(0, 8)])
        assert live["bfs"].values.tolist() == before
    with ist.stream(log=tmp_path / "log") as again:
        assert again.number == 1 and again["bfs"].values.tolist()[9] == 1


def test_katz_on_the_brink() -> None:
    """Where alpha is exactly 1 / the largest eigenvalue, scores grow, but so slowly that they stay finite for long."""
    with ist.stream(ist.generate("path", vertices=10), [ist.Katz(alpha=0.5, tol=1e-3)]) as live:
        with pytest.raises(
            ist.BatchError,
            match=r"alpha: 0\.5 is too large for this graph, or nearly so: 1000 iterations were not enough",
        ):
            live.apply(inserts=[(9, 0)])
        assert live.number == 0 and live.check() == {}


def test_values_of_a_users_program_that_grow_without_end() -> None:
    with ist.stream(ist.generate("path", vertices=6), [doubling(), ist.BFS(source=0)]) as live:
        before = live["doubling"].values.copy()
        every = [(u, v) for u in range(6) for v in range(u)]
        with pytest.raises(
            ist.BatchError,
            match="batch 1: doubling does not converge on this graph: its values grow without end; nothing was",
        ):
            live.apply(inserts=every)
        assert live.number == 0 and live.graph.edges == 5 and np.array_equal(before, live["doubling"].values)
        live.apply(inserts=[(5, 6)])
        assert live["bfs"].values.tolist() == [0, 1, 2, 3, 4, 5, 6]
