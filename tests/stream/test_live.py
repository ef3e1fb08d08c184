"""Streams: after every batch each maintained result is what a run from scratch gives, and little was read for it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.stream.edits import Model

import isthmus as ist

TOL = 1e-7
NOBODY = 0xFFFFFFFF


@ist.monotone(initial=np.inf, combine="min", start=0, column="length")
def by_degree(length, weight, degree):  # type: ignore[no-untyped-def]
    return length + weight + min(degree, 3)


@ist.monotone(initial="vertex", combine="max")
def largest(label):  # type: ignore[no-untyped-def]
    return label


def searches(source: Any) -> list[Any]:
    return [
        ist.BFS(source=source),
        ist.SSSP(source=source),
        ist.WidestPath(source=source),
        ist.WeaklyConnectedComponents(),
        by_degree(source=source),
        largest(),
    ]


def from_scratch(name: str, graph: Any, source: Any) -> Any:
    if name in ("by_degree", "largest"):
        return ist.run(by_degree(source=source) if name == "by_degree" else largest(), graph)
    return getattr(ist, name)(graph, *(() if name.startswith("weakly") else (source,)))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(8))
def test_searches_are_exact_after_every_batch(seed: int) -> None:
    model = Model(seed, (4, 12, 80)[seed % 3], names=seed % 4 == 3)
    with ist.stream(model.graph(), searches(model.source), threads=2) as live:
        for number in range(1, 9):
            live.apply(**model.batch())
            assert live.number == number
            for name in live:
                expected, found = from_scratch(name, live.graph, model.source), live[name]
                assert found.number == number
                assert found.vertices.tolist() == sorted(model.vertices)
                assert found.filled().tolist() == expected.filled().tolist(), name
            assert_trees(live, model)
        assert_as_read_anew(live, model)


def assert_trees(live: Any, model: Model) -> None:
    """Every reached vertex but the source has a parent, along an edge that gives it its value."""
    users = live.graph.changing_ids.users().tolist()
    for name in ("bfs", "sssp"):
        program = live.batches.programs[name]
        for v, user in enumerate(users):
            parent = int(program.state.parents[v])
            if parent == NOBODY:
                assert user == model.source or program.state.values[v] == 2**63 - 1
            else:
                weight = model.edges[model.key(users[parent], user)]
                assert program.state.values[v] == program.state.values[parent] + (1 if name == "bfs" else weight)


def assert_as_read_anew(live: Any, model: Model) -> None:
    graph = model.graph()
    if model.source in graph:
        expected = dict(
            zip(
                graph.ids.natural(0, graph.vertices).tolist(),
                ist.sssp(graph, model.source).filled().tolist(),
                strict=True,
            )
        )
        found = dict(zip(live["sssp"].vertices.tolist(), live["sssp"].filled().tolist(), strict=True))
        assert all(found[v] == distance for v, distance in expected.items())


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(5))
def test_scores_stay_within_their_bound(seed: int) -> None:
    model = Model(seed + 100, (4, 12, 80)[seed % 3])
    model.edges = {edge: w + 1 for edge, w in model.edges.items()}
    source = model.source
    programs = [
        ist.PageRank(tol=TOL),
        ist.PageRank(tol=TOL, weight=True, name="weighted"),
        ist.PageRank(tol=TOL, personalization={source: 1}, name="own"),
        ist.PHP(source=source, tol=TOL),
        ist.Katz(alpha=0.01, tol=TOL),
    ]
    with ist.stream(model.graph(), programs, threads=2) as live:
        for _ in range(8):
            batch = model.batch()
            batch["inserts"] = batch["inserts"] and [(u, v, w + 1) for u, v, w in batch["inserts"]]
            live.apply(**batch)
            graph = live.graph
            expected = {
                "pagerank": ist.pagerank(graph, tol=1e-10),
                "weighted": ist.pagerank(graph, tol=1e-10, weight=True),
                "own": ist.pagerank(graph, tol=1e-10, personalization={source: 1}),
                "php": ist.php(graph, source, tol=1e-10),
                "katz": ist.katz(graph, alpha=0.01, tol=1e-10),
            }
            for name, exact in expected.items():
                assert np.abs(live[name].values - exact.values).sum() <= 1.01 * TOL, name


def test_small_batches_read_little() -> None:
    """A recomputation in disguise would read all edges."""
    graph = ist.generate("rmat", scale=13, weights="1:9", seed=5)
    with ist.stream(
        graph, [ist.BFS(source=0), ist.SSSP(source=0), ist.WeaklyConnectedComponents(), ist.PageRank(tol=1e-3)]
    ) as live:
        draw = np.random.default_rng(1)
        for _ in range(5):
            sources, targets = draw.integers(0, graph.vertices, (2, 10))
            gone = [(int(u), int(live.graph.neighbors(u)[0])) for u in sources if live.graph.degree(u)]
            report = live.apply(inserts=(sources, targets, np.ones(10, np.int32)), deletes=gone)
            for name in ("bfs", "sssp", "weakly_connected_components"):
                assert report.programs[name]["edges_read"] < graph.arcs / 8, name
        assert live["bfs"].filled().tolist() == ist.bfs(live.graph, 0).filled().tolist()


def test_insertions_alone_need_no_correction() -> None:
    with ist.stream(ist.generate("path", vertices=50), [ist.BFS(source=0)]) as live:
        report = live.apply(inserts=[(0, 40)])
        assert report.programs["bfs"] == {"affected": 29, "edges_read": pytest.approx(62, abs=6)}
        assert live["bfs"].changes()["vertex"].tolist() == list(range(21, 50))


def test_changes_and_older_results() -> None:
    with ist.stream(ist.generate("path", vertices=5, directed=True), [ist.BFS(source=0)]) as live:
        first = live["bfs"]
        live.apply(deletes=[(1, 2)], inserts=[(0, 4)])
        second = live["bfs"]
        found = second.changes()
        assert found["vertex"].tolist() == [2, 3, 4]
        assert found["old"].tolist() == [2, 3, 4] and found["new"].tolist() == [None, None, 1]
        live.apply(inserts=[(4, 7)])
        assert first.filled().tolist() == [0, 1, 2, 3, 4], "as it was, though two batches came after it"
        assert second.filled().tolist()[:2] == [0, 1] and (first.number, second.number) == (0, 1)
        assert live["bfs"].vertices.tolist() == [0, 1, 2, 3, 4, 7]


@pytest.mark.parametrize("names", [False, True])
def test_an_older_result_keeps_its_vertices(names: bool) -> None:
    """Also when new vertices come before its own in the order of ids, or take the numbers of removed ones."""
    kind, name = (object, lambda k: f"n{k}") if names else (np.int64, int)
    ends = [np.array([name(k) for k in column], kind) for column in ((5, 6, 8), (6, 7, 9))]
    with ist.stream(
        ist.read(tuple(ends), directed=False), [ist.BFS(source=name(5)), ist.WeaklyConnectedComponents()]
    ) as live:
        older = [live[program] for program in live]
        live.apply(inserts=[(name(k), name(k + 1)) for k in range(100, 150)] + [(name(1), name(9)), (name(0), name(1))])
        between = [live[program] for program in live]
        live.apply(remove_vertices=[name(6), name(0)])
        assert [result.vertices.tolist() for result in older] == [[name(k) for k in range(5, 10)]] * 2
        assert older[0].values.tolist() == [0, 1, 2, None, None] and older[1].values.tolist() == [
            name(k) for k in (5, 5, 5, 8, 8)
        ]
        found = dict(zip(between[1].vertices.tolist(), between[1].values.tolist(), strict=True))
        assert (found[name(7)], found[name(9)], found[name(8)], found[name(150)]) == (
            name(5),
            name(0),
            name(0),
            name(100),
        )


def test_readers_in_other_threads_see_one_batch() -> None:
    """Every result is that of one batch: the first edge of a path has the batch's number for its weight, the others
    have 1.
    """
    graph = ist.read((np.array([0]), np.array([1]), np.array([1], np.int64)), directed=True)
    with ist.stream(graph, [ist.SSSP(source=0)], threads=1) as live:
        live.apply(inserts=[(k, k + 1, 1) for k in range(1, 200)])
        wrong, over = [], threading.Event()

        def read() -> None:
            while not over.is_set():
                result = live["sssp"]
                values = result.filled()
                if not (np.diff(values[1:]) == 1).all() or int(values[1]) != max(1, result.number):
                    wrong.append((result.number, values))

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        for number in range(2, 150):
            live.apply(updates=[(0, 1, number)])
        over.set()
        for reader in readers:
            reader.join()
        assert not wrong


def test_bad_batches_change_nothing() -> None:
    with ist.stream(ist.generate("path", vertices=4), [ist.BFS(source=0)]) as live:
        before = live["bfs"].filled().tolist()
        with pytest.raises(ist.BatchError, match="vertex 0 is the source of bfs and cannot be removed"):
            live.apply(remove_vertices=[0])
        with pytest.raises(ist.BatchError, match="does not exist"):
            live.apply(deletes=[(0, 3)], strict=True)
        assert live.number == 0 and live["bfs"].filled().tolist() == before


def test_mistakes() -> None:
    graph = ist.generate("path", vertices=4)
    with pytest.raises(ist.OptionError, match="two programs are called bfs; give one of them a name"):
        ist.stream(graph, [ist.BFS(source=0), ist.BFS(source=1)])
    with pytest.raises(ist.OptionError, match="label_propagation cannot be kept current"):
        ist.stream(graph, ["label_propagation"])
    with pytest.raises(ist.OptionError, match=r"expected a program such as isthmus\.SSSP"):
        ist.stream(graph, [7])
    with pytest.raises(ist.OptionError, match=r"BFS: .*unexpected keyword argument 'origin'"):
        ist.stream(graph, [ist.BFS(origin=0)])
    with pytest.raises(ist.UnknownVertexError, match="no vertex 9"):
        ist.stream(graph, [ist.BFS(source=9)])
    with (
        ist.stream(graph, [ist.BFS(source=0)]) as live,
        pytest.raises(KeyError, match="the stream maintains no 'sssp'; it has bfs"),
    ):
        live["sssp"]


def test_no_stream_opens_on_a_half_applied_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(change: Any) -> None:
        raise KeyboardInterrupt

    with ist.stream(ist.read(([0, 1], [1, 2])), [ist.BFS(source=0)]) as live:
        monkeypatch.setattr(live.graph, "renumber", stop)
        with pytest.raises(KeyboardInterrupt):
            live.apply(remove_vertices=[2])
        with pytest.raises(ist.BatchError, match="a batch was stopped while it was applied"):
            ist.stream(live.graph, [ist.BFS(source=0)])


def test_a_stream_opens_on_a_graph_between_two_of_its_batches() -> None:
    opened: list[Any] = []
    with ist.stream(ist.read(([0, 1], [1, 2])), []) as live:
        thread = threading.Thread(target=lambda: opened.append(ist.stream(live.graph, [ist.BFS(source=0)])))
        with live.graph.lock:  # as while a batch is applied
            thread.start()
            thread.join(0.5)
            assert opened == []
            live.apply(inserts=[(2, 3)])
        thread.join(60)
        with opened[0] as other:
            assert other.graph.has_edge(2, 3) and other["bfs"][3] == 3


def test_a_misspelt_option_is_refused_by_name(tmp_path: Path) -> None:
    graph = ist.generate("path", vertices=4)
    with pytest.raises(ist.OptionError, match=r"stream: unknown option memry \(did you mean memory\?\); it has"):
        ist.stream(graph, memry="1GB")  # type: ignore[call-arg]
    with pytest.raises(ist.OptionError, match=r"stream: unknown option ondisk \(did you mean on_disk\?\)"):
        ist.stream(graph, log=tmp_path / "log", ondisk=True)  # type: ignore[call-arg]
    assert not (tmp_path / "log").exists()
