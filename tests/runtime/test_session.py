"""Sessions: what is near stays near, within the budget; answers are those of single calls, whatever went wrong
before.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
import time
import weakref
from typing import Any

import numpy as np
import pytest
from tests import sides

import isthmus as ist
from isthmus.devices.worker import Worker
from isthmus.errors import IsthmusError, OptionError, StoreError
from isthmus.frontier import Frontier
from isthmus.link.ssd import SsdLink

N, ARCS = 3000, 40_000
FAR: dict[str, Any] = {"policy": "filter", "memory": "10%", "threads": 2}
CACHED: dict[str, Any] = {"memory": "60%", "threads": 2}

CALLS: dict[str, Any] = {
    "bfs": lambda on: on.bfs(0),
    "bfs, limit": lambda on: on.bfs(0, depth_limit=2),
    "multi_source_bfs": lambda on: on.multi_source_bfs([0, 5, 9]),
    "sssp": lambda on: on.sssp(0),
    "widest_path": lambda on: on.widest_path(0),
    "weakly_connected_components": lambda on: on.weakly_connected_components(),
    "strongly_connected_components": lambda on: on.strongly_connected_components(),
    "pagerank": lambda on: on.pagerank(tol=1e-8),
    "personalized_pagerank": lambda on: on.personalized_pagerank(0, tol=1e-8),
    "php": lambda on: on.php(0, tol=1e-8),
    "katz": lambda on: on.katz(alpha=1e-3, tol=1e-8),
    "label_propagation": lambda on: on.label_propagation(max_iter=4),
    "core_number": lambda on: on.core_number(),
    "triangle_count": lambda on: on.triangle_count(),
    "local_clustering_coefficient": lambda on: on.local_clustering_coefficient(),
    "betweenness_centrality": lambda on: on.betweenness_centrality(k=3, seed=1),
    "minimum_spanning_forest": lambda on: on.minimum_spanning_forest(),
    "run": lambda on: on.run(smallest()),
}


@ist.monotone(initial="vertex", combine="min")
def smallest(value):
    return value


class Single:
    """The same calls without a session."""

    def __init__(self, graph: Any, **how: Any) -> None:
        self._graph, self._how = graph, how

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **given: getattr(ist, name)(self._graph, *args, **given, **self._how)

    def run(self, program: Any) -> Any:
        return ist.run(program, self._graph, **self._how)


def write(path: Any, seed: int = 1, **how: Any) -> Any:
    draw = np.random.default_rng(seed)
    ends = (N * draw.random((2, ARCS)) ** 2).astype(np.int64)
    return ist.ingest((*ends, draw.integers(1, 50, ARCS).astype(np.int32)), path, vertices=N, **how)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """Directed and weighted, both sides stored."""
    with write(tmp_path_factory.mktemp("session") / "g.isthmus") as graph:
        yield graph


@pytest.fixture(scope="module")
def undirected(tmp_path_factory):
    with write(tmp_path_factory.mktemp("session") / "u.isthmus", directed=False) as graph:
        yield graph


@pytest.fixture(autouse=True)
def nothing_left(graph, undirected):
    """No thread and no open file outlives a test."""
    gc.collect()  # files that other tests have forgotten
    files, threads = len(os.listdir("/proc/self/fd")), sides.our_threads()
    yield
    assert sides.our_threads() <= threads
    assert len(os.listdir("/proc/self/fd")) == files


@pytest.fixture
def moved(monkeypatch):
    """Bytes of every read through an SSD link."""
    found, move, lock = [], SsdLink.move, threading.Lock()

    def counting(self, extents, *rest):
        with lock:
            found.append(extents.bytes)
        return move(self, extents, *rest)

    monkeypatch.setattr(SsdLink, "move", counting)
    return found


def loaded(result: Any) -> int:
    return int(result.summary()["load"]["bytes"])


def assert_same(found: Any, expected: Any) -> None:
    assert found.columns == expected.columns
    for name in found.columns:
        mine, other = found.raw(name), expected.raw(name)
        if mine.dtype.kind == "f":
            assert np.allclose(mine, other, rtol=1e-5, atol=1e-6)
        elif name != "predecessor":
            assert np.array_equal(mine, other)


# What is near stays near


def test_a_second_run_on_the_same_side_loads_nothing(graph, moved):
    with ist.session(graph) as session:
        first = session.bfs(0)
        assert loaded(first) > 4 * ARCS // 2
        assert sum(moved) > 0
        moved.clear()
        again, other = session.bfs(3), session.multi_source_bfs([0, 1])
        assert (loaded(again), loaded(other), moved) == (0, 0, [])


def test_another_side_loads_only_that_side(graph, moved):
    with ist.session(graph) as session:
        out = loaded(session.multi_source_bfs([0]))
        moved.clear()
        both = session.core_number()
        assert 0 < loaded(both) <= 2 * out, "the in-edges and their lists"
        assert 0 < sum(moved) <= out
        moved.clear()
        assert loaded(session.core_number()) == loaded(session.multi_source_bfs([1])) == 0
        assert moved == []


def test_weights_are_loaded_without_the_targets(graph, moved):
    with ist.session(graph) as session:
        session.multi_source_bfs([0])
        moved.clear()
        weights = -(-4 * graph.arcs // 4096) * 4096
        assert loaded(session.widest_path(0)) == sum(moved) == weights
        moved.clear()
        assert loaded(session.sssp(0)) == 0
        assert moved == []


def test_an_undirected_graph_has_one_side(undirected, moved):
    with ist.session(undirected) as session:
        session.multi_source_bfs([0])
        moved.clear()
        assert loaded(session.core_number()) == loaded(session.weakly_connected_components()) == 0
        assert moved == []


def test_a_graph_in_memory_loads_nothing():
    draw = np.random.default_rng(1)
    with ist.session(ist.read((draw.integers(0, 99, 900), draw.integers(0, 99, 900)))) as session:
        assert loaded(session.bfs(0)) == loaded(session.core_number()) == 0


def test_a_cache_stays_warm(undirected, moved, sized, monkeypatch):
    """What the first run kept need not be moved by the second."""
    sized(smallest_partition=4096, least_buffer=16 << 10, few_edges=0)
    sides.mostly_cache(monkeypatch, 16 << 10)
    how = {"max_iter": 3, "tol": 1e-12}
    with ist.session(undirected, **CACHED) as session:
        cold = session.pagerank(**how)
        first = sum(moved)
        assert cold.summary()["cache"]["hit_edges"] > 0
        moved.clear()
        warm = session.pagerank(**how)
        assert sum(moved) == warm.summary()["transfer"]["bytes"] < first
        assert warm.summary()["cache"]["hit_edges"] > cold.summary()["cache"]["hit_edges"]
        assert_same(session.pagerank(tol=1e-8), ist.pagerank(undirected, tol=1e-8))


@pytest.mark.parametrize("policy", ["unified:read-mostly", "scaph:lbase"])
def test_the_variant_of_a_recipe_keeps_what_is_near(graph, policy):
    with ist.session(graph, device="model:rtx2080ti", memory="60%", policy=policy) as session:
        session.multi_source_bfs([0])
        pipeline = session.near_memory._pipeline
        session.multi_source_bfs([0])
        assert session.near_memory._pipeline is pipeline is not None


# The budget


def near_bytes(session: Any) -> int:
    """What a session holds between two runs."""
    held = session.near_memory
    pipeline = held._pipeline.bytes if held._pipeline is not None else 0
    return (
        pipeline
        + sum(array.nbytes for array in held._arrays.values())
        + sum(8 * len(lists) for lists in held._lists.values())
    )


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6, 1.0, 1.5, 2.5, 6.0])
def test_the_budget_holds_whatever_runs_after_whatever(graph, share, sized):
    """Within the promise: what does not fit beside a run is let go of, and loaded again when it is wanted."""
    sized(least_buffer=16 << 10, smallest_partition=4096)
    budget = int(900_000 + share * 4 * graph.arcs)
    with ist.session(graph, memory=budget, threads=2) as session:
        for name in ("bfs", "core_number", "sssp", "pagerank", "multi_source_bfs", "bfs"):
            result = CALLS[name](session)
            assert result.summary()["memory"]["near_peak"] <= budget
            assert near_bytes(session) <= budget
            assert_same(result, CALLS[name](Single(graph)))


def test_what_does_not_fit_is_let_go(graph, sized):
    """The out-edges make room for the in-edges and come back; with room for both, they stay."""
    sized(least_buffer=16 << 10)
    with ist.session(graph) as roomy:
        needs = [CALLS[name](roomy).summary()["memory"]["near_peak"] for name in ("sssp", "pagerank")]
        assert loaded(CALLS["sssp"](roomy)) == 0
    with ist.session(graph, memory=max(needs) + 1000) as tight:
        for name in ("sssp", "pagerank", "sssp", "pagerank"):
            assert loaded(CALLS[name](tight)) > 0
            assert near_bytes(tight) <= max(needs) + 1000


def test_a_single_call_needs_no_more_than_it_did(graph):
    with ist.session(graph) as session:
        for name in ("sssp", "pagerank", "core_number"):
            split = CALLS[name](session).summary()["memory"]["split"]
            alone = CALLS[name](Single(graph)).summary()["memory"]["split"]
            assert {**split, "budget": 0} == {**alone, "budget": 0}


# Answers


EMOGI: dict[str, Any] = {"policy": "emogi", "memory": "10%", "far": "ram"}


@pytest.mark.parametrize("how", [{}, FAR, EMOGI, CACHED], ids=["near", "filter", "ram", "cached"])
def test_the_answers_of_single_calls(graph, undirected, how):
    """All algorithms in one session, there and back, so that each finds what others left."""
    for each in (graph, undirected):
        expected = {}
        with ist.session(each, **how) as session:
            for name in [*CALLS, *reversed(CALLS)]:
                if not each.directed and name == "strongly_connected_components":
                    continue
                if each.directed and name in (
                    "triangle_count",
                    "local_clustering_coefficient",
                    "minimum_spanning_forest",
                ):
                    continue
                if name not in expected:
                    expected[name] = CALLS[name](Single(each))
                assert_same(CALLS[name](session), expected[name])


def test_every_algorithm_is_a_method(graph):
    with ist.session(graph) as session:
        assert {name.split(",")[0] for name in CALLS} - {"run"} | {"circuit", "nn_inference"} <= set(dir(session))
        assert session.bfs.__doc__ == ist.bfs.__doc__.split("\n\nOptions that change")[
            0
        ] or session.bfs.__doc__.startswith("Distances")
        with pytest.raises(AttributeError, match=r"a session has no algorithm 'bsf'; there are .*bfs"):
            _ = session.bsf


@pytest.mark.parametrize("policy", ["filter", "scaph", "hytgraph", "grus", "unified", "auto"])
def test_a_modelled_device(graph, policy):
    """The second run counts what it would alone, but for what is near already."""
    how = {"device": "model:rtx2080ti", "memory": "20%", "policy": policy}
    with ist.session(graph, **how) as session:
        for name in ("bfs", "sssp", "pagerank", "bfs"):
            assert_same(CALLS[name](session), CALLS[name](Single(graph)))


def test_a_modelled_device_that_holds_all_edges(graph):
    with ist.session(graph, device="model:rtx2080ti") as session:
        first, second = session.bfs(0), session.bfs(0)
        assert loaded(first) > loaded(second) == 0
        assert first.summary()["seconds"]["modelled"] > second.summary()["seconds"]["modelled"] > 0
        assert_same(second, ist.bfs(graph, 0))


# Threads


def test_sessions_of_several_threads_on_one_graph(graph):
    names = ("bfs", "sssp", "pagerank", "core_number")
    expected = {name: CALLS[name](Single(graph)) for name in names}

    def work(number: int) -> None:
        how = FAR if number % 2 else {}
        with ist.session(graph, **how) as session:
            for turn in range(4):
                name = names[(number + turn) % 4]
                assert_same(CALLS[name](session), expected[name])

    sides.together(4, work)


@pytest.mark.parametrize("how", [{}, FAR], ids=["near", "far"])
def test_calls_of_several_threads_wait_for_their_turn(graph, how):
    names = ("bfs", "sssp", "pagerank", "core_number")
    expected = {name: CALLS[name](Single(graph)) for name in names}
    with ist.session(graph, **how) as session:
        inside, most = [0], [0]
        call = session.near_memory.count_anew

        def entered() -> Any:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            time.sleep(0.001)
            inside[0] -= 1
            return call()

        def work(number: int) -> None:
            for name in names[number:] + names[:number]:
                assert_same(CALLS[name](session), expected[name])

        session.near_memory.count_anew = entered
        sides.together(4, work)
        assert most == [1]


def test_closing_waits_for_a_run(graph):
    session, begun, seen = ist.session(graph, **FAR), threading.Event(), []

    def watch(iteration: Any) -> None:
        begun.set()
        time.sleep(0.01)
        seen.append(iteration.number)

    thread = threading.Thread(target=lambda: session.bfs(0, watch=watch))
    thread.start()
    begun.wait()
    session.close()
    before = list(seen)
    thread.join()
    assert before == seen and len(seen) > 1


# What is refused


def test_a_run_inside_a_run_is_refused(graph):
    with ist.session(graph, **FAR) as session:
        with pytest.raises(IsthmusError, match="the session is running: a program must not start another run"):
            session.bfs(0, watch=lambda _: session.bfs(1))
        assert_same(session.bfs(0), ist.bfs(graph, 0))
        assert session.bfs(0, watch=lambda _: ist.bfs(graph, 1)).values[0] == 0, "another session may"


@pytest.mark.parametrize("how", [{}, FAR, {**FAR, "far": "ram"}], ids=["near", "far", "ram"])
def test_closing_inside_a_run_is_refused(graph, how):
    """It would wait for threads that wait for it."""
    with ist.session(graph, **how) as session:
        with pytest.raises(IsthmusError, match="the session is running: it cannot be closed from inside a run"):
            session.pagerank(watch=lambda _: session.close())
        assert_same(session.pagerank(tol=1e-8), ist.pagerank(graph, tol=1e-8))


@pytest.mark.parametrize("how", [{}, FAR], ids=["near", "far"])
def test_a_session_that_is_forgotten_is_closed(graph, how):
    """Its threads and files are checked after every test."""
    session = ist.session(graph, **how)
    session.sssp(0)
    del session
    gc.collect()


def test_a_closed_session(graph):
    with ist.session(graph) as session:
        result = session.bfs(0)
    session.close()
    for call in (lambda: session.bfs(0), lambda: session.run(smallest())):
        with pytest.raises(OptionError, match="the session is closed"):
            call()
    assert "closed" in repr(session)
    assert_same(result, ist.bfs(graph, 0))


@pytest.mark.parametrize(
    "given", [{"memory": "1GB"}, {"policy": "filter"}, {"threads": 1, "device": "cpu"}, {"verify": True}]
)
def test_options_of_the_session_are_refused_in_a_call(graph, given):
    with ist.session(graph) as session:
        for call in (lambda: session.bfs(0, **given), lambda: session.run(smallest(), **given)):
            with pytest.raises(OptionError, match=f"a session sets {', '.join(given)} for all its calls; give it when"):
                call()


def test_unknown_options_are_named(graph):
    with pytest.raises(
        OptionError, match=r"session: unknown option memroy \(did you mean memory\?\); it has device, memory"
    ):
        ist.session(graph, memroy="1GB")
    with (
        ist.session(graph) as session,
        pytest.raises(OptionError, match=r"bfs: unknown option depth \(did you mean depth_limit\?\)"),
    ):
        session.bfs(0, depth=3)


def test_options_of_a_wrong_kind_are_named(graph):
    with pytest.raises(OptionError, match=r"without: expected several names, such as \('cache',\), got 'cache'"):
        ist.session(graph, without="cache")
    with pytest.raises(OptionError, match="policy: expected the name of a recipe, got 3"):
        ist.bfs(graph, 0, policy=3)


def test_only_graphs_and_programs(graph):
    with pytest.raises(
        OptionError, match=r"session: expected a graph, got the path 'g\.isthmus'; open it with isthmus\.open"
    ):
        ist.session("g.isthmus")
    with (
        ist.session(graph) as session,
        pytest.raises(OptionError, match="run: expected a program, got the algorithm bfs; call isthmus"),
    ):
        session.run("bfs")


# After something went wrong


def test_an_argument_that_is_wrong_leaves_what_is_near(graph):
    with ist.session(graph, **FAR) as session:
        session.sssp(0)
        pipeline = session.near_memory._pipeline
        assert pipeline is not None
        for call in (
            lambda: session.sssp(-1),
            lambda: session.sssp(0, cutoff=-1),
            lambda: session.sssp(0, checkpoint=graph.path),
        ):
            with pytest.raises(IsthmusError):
                call()
        assert session.near_memory._pipeline is pipeline
        assert_same(session.sssp(0), ist.sssp(graph, 0))


def test_a_failed_run_leaves_nothing_in_memory(graph, monkeypatch):
    """Nor is there a cycle that waits for the garbage collector, even where reads for the next iteration were under
    way.
    """
    made, init = [], Frontier.__init__

    def seen(self: Frontier, *given: Any) -> None:
        init(self, *given)
        made.append(weakref.ref(self))

    def watch(iteration: Any) -> None:
        if iteration.number == 2:
            raise ZeroDivisionError

    monkeypatch.setattr(Frontier, "__init__", seen)
    with ist.session(graph, **FAR) as session:
        gc.disable()
        try:
            with contextlib.suppress(ZeroDivisionError):
                session.pagerank(tol=1e-12, watch=watch)
            assert [each() for each in made] == [None]
        finally:
            gc.enable()


@pytest.mark.parametrize("how", [{"threads": 3}, FAR], ids=["near", "far"])
def test_an_interrupt_while_threads_start(graph, how, monkeypatch):
    """When they run already, and the caller waits for the news. None is left behind, and closing waits for none in
    vain.
    """
    start = threading.Thread.start

    def once() -> Any:
        left = [1]

        def interrupted(thread: threading.Thread) -> None:
            start(thread)
            if threading.current_thread() is threading.main_thread() and left:
                left.pop()
                raise KeyboardInterrupt

        return interrupted

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(threading.Thread, "start", once())
        ist.session(graph, **how)
    with ist.session(graph, **how) as session:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(threading.Thread, "start", once())
            session.pagerank(tol=1e-4)
        assert_same(session.sssp(0), ist.sssp(graph, 0))


def test_an_interrupt_before_a_session_is_closed(graph, monkeypatch):
    """It takes no more calls, and another call of close, or of nobody, releases what it has."""

    def interrupted(work: Any) -> None:
        raise KeyboardInterrupt

    for again in (True, False):
        session = ist.session(graph, **FAR)
        session.bfs(0)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr("isthmus.runtime.session.uninterrupted", interrupted)
            session.close()
        with pytest.raises(OptionError, match="the session is closed"):
            session.bfs(0)
        if again:
            session.close()
        del session
        gc.collect()


@pytest.mark.parametrize("how", [{"threads": 2}, FAR], ids=["near", "far"])
@pytest.mark.parametrize("act", ["run", "close", "forget"])
def test_a_fork_has_no_session(graph, how, act):
    """The threads are not copied: the child must not wait for them, nor stop those of its parent."""
    with ist.session(graph, **how) as session:
        session.bfs(0)
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(60)
            with contextlib.suppress(BaseException):
                if act == "run":
                    with pytest.raises(IsthmusError, match="the session was opened before this process was forked"):
                        session.bfs(0)
                elif act == "close":
                    session.close()
                else:
                    del session
                    gc.collect()
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert_same(session.bfs(0), ist.bfs(graph, 0))


@pytest.mark.parametrize("how", [{}, FAR, CACHED, {**FAR, "policy": "scaph"}], ids=["near", "far", "cached", "scaph"])
@pytest.mark.parametrize("failure", [KeyboardInterrupt, ZeroDivisionError])
def test_a_run_that_was_stopped_leaves_a_session_that_works(graph, how, failure):
    """At the first iteration or later, while reads are under way."""
    with ist.session(graph, **how) as session:
        for at in (0, 1, 3):
            seen = []

            def watch(iteration: Any, at: int = at, seen: list[Any] = seen) -> None:
                seen.append(iteration)
                if len(seen) > at:
                    raise failure

            with pytest.raises(failure):
                session.pagerank(tol=1e-12, watch=watch)
            assert_same(session.pagerank(tol=1e-8), ist.pagerank(graph, tol=1e-8))
            assert_same(session.sssp(0), ist.sssp(graph, 0))


def test_an_interrupt_while_members_work(graph, monkeypatch, sized):
    """The first member is interrupted in its piece, the others end theirs."""
    sized(piece=300, alone=0)
    pieces, turns = Worker.pieces, []

    def interrupted(self: Worker, *given: Any) -> Any:
        def wrap(piece: Any) -> Any:
            def work(member: int) -> None:
                piece(member)
                turns.append(member)
                if member == 0 and len(turns) > 50:
                    turns.clear()
                    raise KeyboardInterrupt

            return work

        return [wrap(piece) for piece in pieces(self, *given)]

    with ist.session(graph, **{**FAR, "threads": 4}) as session:
        for _ in range(5):
            with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
                patch.setattr(Worker, "pieces", interrupted)
                session.pagerank(tol=1e-14)
            assert_same(session.sssp(0), ist.sssp(graph, 0))


def test_a_read_that_failed_leaves_a_session_that_works(graph, monkeypatch):
    move = SsdLink.move
    for how in ({}, FAR):
        with ist.session(graph, **how) as session:
            for at in (0, 1, 5):
                left = [at]

                def failing(self: SsdLink, *given: Any, left: list[int] = left) -> int:
                    left[0] -= 1
                    if left[0] < 0:
                        raise StoreError("out.targets: byte 0: gone")
                    return move(self, *given)

                with monkeypatch.context() as patch:
                    patch.setattr(SsdLink, "move", failing)
                    if how or at == 0:
                        with pytest.raises(StoreError, match="gone"):
                            session.pagerank(tol=1e-12)
                assert_same(session.pagerank(tol=1e-8), ist.pagerank(graph, tol=1e-8))


# Results outlive what they came from


@pytest.mark.parametrize("order", ["natural", "hub"])
def test_results_stay_valid(tmp_path, order):
    """When the session and the graph are closed, and when another graph has taken the store's place."""
    path = tmp_path / "g.isthmus"
    with write(path, order=order) as graph:
        expected = {name: CALLS[name](Single(graph)).to_arrow() for name in ("bfs", "sssp", "pagerank")}
        with ist.session(graph) as session:
            found = {name: CALLS[name](session) for name in expected}
    write(path, seed=2, overwrite=True, order=order).close()
    for name, result in found.items():
        assert result.to_arrow().column_names == expected[name].column_names
        assert result.to_arrow()["vertex"].equals(expected[name]["vertex"])
        assert np.allclose(result.to_arrow()[1].to_numpy(), expected[name][1].to_numpy(), equal_nan=True)
        result.save(tmp_path / f"{name}.parquet")


def test_a_session_goes_on_when_its_store_is_replaced(tmp_path):
    """It holds the files it opened, not what the path names by now."""
    path = tmp_path / "g.isthmus"
    with write(path) as graph, ist.session(graph, **FAR) as session:
        before = session.sssp(0)
        write(path, seed=2, overwrite=True).close()
        assert_same(session.sssp(0), before)
        assert_same(session.pagerank(tol=1e-8), ist.pagerank(graph, tol=1e-8))
