"""The benchmark in memory runs, its checks can tell right from wrong, and contestants that break its rules are out."""

from __future__ import annotations

import importlib
import json
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.gpus import LazyCard

import isthmus as ist
from isthmus.devices.cuda import device as cuda_device
from isthmus.kernels.compile import cuda_module

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def module(monkeypatch):
    """A module of the benchmarks, by name."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


@pytest.fixture
def graph(tmp_path):
    return ist.generate(
        "rmat", tmp_path / "graph.isthmus", scale=8, edge_factor=4, weights="1:9", seed=2, directed=True
    )


@pytest.mark.timeout(260)
def test_in_memory_runs_and_verifies(tmp_path):
    figures = tmp_path / "figures.json"
    command = [
        sys.executable,
        BENCHMARKS / "inmemory.py",
        "--graphs",
        "grid9",
        "--rounds",
        "1",
        "--peers",
        "scipy",
        "--json",
        figures,
    ]
    done = subprocess.run(
        [*map(str, command), "--folder", str(tmp_path)], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    cells = json.loads(figures.read_text())["cells"]
    assert [cell["algorithm"] for cell in cells] == ["bfs", "sssp", "wcc", "pagerank"]
    assert all(not cell["left"] and cell["pairs"]["scipy"]["ratio"] > 0 for cell in cells)
    assert "| grid9 | bfs | " in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figures.json", "grid9.isthmus"], (
        "the graph stays, and nothing else"
    )


@pytest.mark.timeout(260)
def test_streams_on_disk_run_and_are_compared(tmp_path):
    command = [
        sys.executable,
        BENCHMARKS / "disk_streams.py",
        "--graph",
        "rmat9",
        "--size",
        "50",
        "--batches",
        "4",
        "--folder",
        tmp_path,
    ]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert "| sssp | " in done.stdout and "| pagerank | " in done.stdout and "(met)" in done.stdout


@pytest.mark.parametrize("name", sorted(path.stem for path in BENCHMARKS.glob("*.py")))
def test_every_benchmark_finds_what_it_imports(module, name):
    assert module(name).__doc__


def test_runs_from_disk_are_held_against_the_disk(module, graph, monkeypatch):
    outofcore, measured = module("outofcore"), []
    known = SimpleNamespace(profile=lambda name: outofcore.GUESS)  # measuring takes seconds
    monkeypatch.setattr(outofcore, "measure_stored", lambda array, rounds: measured.append(array.name) or known)
    found = outofcore.cell(graph, "pagerank", "10%", "filter", 1)
    assert measured == ["out.targets"] and found["link"] > 0 and found["ratio"] > 0


def test_a_users_program_meets_the_built_in(module, monkeypatch, tmp_path):
    own = module("own")
    graph = ist.generate("rmat", tmp_path / "graph.isthmus", scale=8, weights="1:9")
    monkeypatch.setattr(own, "PROGRAMS", own.PROGRAMS[:1])
    [row] = own.own_programs("kron8", graph, 1, judged=0)
    assert row[:3] == ["kron8", "widest_path", "in memory"] and row[-1] in ("met", "MISSED")
    [row] = own.own_programs("kron8", graph, 1, judged=1e9)
    assert row[-1] == "shown"
    monkeypatch.setattr(own, "PROGRAMS", [("widest_path", False, True, lambda source: own.smallest, own.WidestPath)])
    with pytest.raises(AssertionError, match="the answers differ"):
        own.own_programs("kron8", graph, 1, judged=0)


@pytest.mark.parametrize("weighted", [False, True])
def test_only_the_true_distances_are_proved(module, graph, weighted):
    check = module("check")
    values = (ist.sssp if weighted else ist.bfs)(graph, 0).filled()
    right = np.where(values == np.iinfo(np.int64).max, check.UNREACHED, values)
    check.prove_distances(graph, 0, right, weighted)
    reached = int(np.argmax(right))
    for vertex, value, complaint in (
        (0, 1, "the source"),
        (reached, right[reached] + 1, "skips"),
        (reached, right[reached] - 1, "by no edge"),
        (reached, check.UNREACHED, "skips"),
        (int(np.argmin(right)), 3, "skips|by no edge"),  # unreached
    ):
        wrong = right.copy()
        wrong[vertex] = value
        with pytest.raises(AssertionError, match=complaint):
            check.prove_distances(graph, 0, wrong, weighted)


def test_components_are_worked_out_anew(module, graph):
    check = module("check")
    assert np.array_equal(check.components(graph), ist.weakly_connected_components(graph).values)
    assert check.smallest_members(np.array([7, 7, 3, 9, 3])).tolist() == [0, 0, 2, 3, 2]


def test_a_residual_bounds_the_error_of_pagerank(module, graph):
    check = module("check")
    exact = ist.pagerank(graph, tol=1e-13).values
    assert check.pagerank_bound(graph, exact) < 1e-11
    rough = ist.pagerank(graph, tol=1e-1).values
    error = check.pagerank_error(rough, exact)
    assert 1e-11 < error <= check.pagerank_bound(graph, rough)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_exported_graphs_are_read_back(module, tmp_path, directed, weighted):
    graph = ist.generate("rmat", tmp_path / "a.isthmus", scale=7, weights="1:9", directed=directed)
    again = ist.read(module("gapbs").export(graph, weighted))
    assert (again.directed, again.weighted, again.vertices) == (directed, weighted, graph.vertices)
    for section in ("out.offsets", "out.targets", "out.weights")[: 2 + weighted]:
        assert np.array_equal(again.store.read(section), graph.store.read(section))


def test_replayed_sweeps_converge_to_pagerank(module, graph):
    exact = ist.pagerank(graph, tol=1e-12).values
    changes, error = module("gapbs").replay(graph, exact)
    assert error <= module("contest").ERROR < changes[0]
    assert changes[-1] < changes[0] / 100


@pytest.fixture
def truth(module, graph, tmp_path):
    return module("contest").Truth(graph, "bfs", [0], tmp_path)


def test_who_builds_too_long_or_too_large_is_out(module, monkeypatch, truth):
    contest = module("contest")
    with pytest.raises(contest.TooLarge, match="building: over 0 s"):
        contest.Peer("scipy", truth, 0.0)
    monkeypatch.setattr(contest, "available", lambda: contest.LEAST_FREE - 1)
    with pytest.raises(contest.TooLarge, match="building: too little memory"):
        contest.Peer("scipy", truth, 60.0)


def test_who_answers_late_wrongly_or_not_at_all_is_out(module, truth):
    contest = module("contest")
    peer = contest.Peer("scipy", truth, 60.0)
    try:
        peer.settle(0)
        truth.answers[0] = "another"
        with pytest.raises(contest.Left, match="WRONG answer"):
            peer.trial(0)
        peer._limit = 0.2
        peer._process.send_signal(signal.SIGSTOP)
        with pytest.raises(contest.Left, match="over 0 s"):
            peer.trial(0)
        peer._process.kill()
        with pytest.raises(contest.Left, match="failed: ended with -9"):
            peer.trial(0)
    finally:
        peer.close()


def test_only_long_cells_are_judged(module):
    inmemory, pair = module("inmemory"), module("contest").Pair
    short = inmemory.Cell("a", "bfs", pairs={"scipy": pair([0.02, 0.03], [0.01, 0.02])})
    slow = inmemory.Cell("b", "bfs", pairs={"scipy": pair([0.2], [0.1]), "igraph": pair([0.2], [0.4])})
    fast = inmemory.Cell("c", "bfs", pairs={"scipy": pair([0.1], [0.8])})
    assert inmemory.mean_ratio([short, slow, fast], "scipy") == (pytest.approx(0.5), 2)
    contest = inmemory.Contest(["igraph", "scipy"], 1, 60)
    contest.cells = [short, slow, fast]
    rows = {row[0]: row[1:] for row in inmemory.verdicts(contest)[1:]}
    assert rows["bfs: ours ÷ scipy, geometric mean over 2 graphs"] == ["0.50", "≤ 1.0", "met"]
    assert rows["worst cell, ours ÷ best library (b, bfs, scipy)"] == ["2.00", "≤ 1.2", "MISSED"]


def script(path: Path, text: str) -> None:
    path.write_text(f"#!{sys.executable}\nprint({text!r})\n")
    path.chmod(0o755)


def test_systems_that_are_not_here_count_with_known_seconds(module, monkeypatch, tmp_path):
    for name in ("GRIDGRAPH", "BLAZE"):
        monkeypatch.delenv(name, raising=False)
    with ist.generate("rmat", tmp_path / "graph.isthmus", scale=8, seed=1) as graph:
        head, *rows = module("systems").measured(graph, tmp_path, 1, 1)
    assert head[1:4] == ["Isthmus s", "GridGraph s, elsewhere", "Blaze s, elsewhere"]
    assert [row[0] for row in rows] == ["bfs", "wcc", "pagerank"] and all(row[-1] in ("met", "MISSED") for row in rows)


def test_other_systems_get_every_arc_and_wrong_answers_are_told(module, monkeypatch, tmp_path):
    systems = module("systems")
    monkeypatch.setattr(systems, "AT_ONCE", 100)
    with ist.generate("rmat", tmp_path / "graph.isthmus", scale=8, seed=1) as graph:
        truth = systems.Truth(graph, graph.busiest())
        targets = graph.store.read("out.targets")
        sources = np.repeat(np.arange(graph.vertices), np.diff(truth.offsets))
        (tmp_path / "preprocess").write_text(
            f"#!{sys.executable}\nimport shutil, sys, pathlib\npathlib.Path(sys.argv[4]).mkdir()\n"
            "shutil.copy(sys.argv[2], sys.argv[4] + '/edges')\n"
        )
        (tmp_path / "preprocess").chmod(0o755)
        other = systems.GridGraph(tmp_path, truth, tmp_path, 1)
        assert np.array_equal(
            np.fromfile(tmp_path / "graph.grid" / "edges", np.int32).reshape(-1, 2),
            np.stack([sources, targets], axis=1),
        )
        script(tmp_path / "bfs", f"discovered {truth.reached} vertices from 0 in 0.25 seconds.")
        assert other.bfs() == 0.25
        script(tmp_path / "bfs", "discovered 1 vertices from 0 in 0.25 seconds.")
        with pytest.raises(SystemExit, match="reaches: 1 instead of"):
            other.bfs()
        script(tmp_path / "pagerank", "5 iterations of pagerank took 0.50 seconds")
        truth.ranks.astype(np.float32).tofile(tmp_path / "graph.grid" / "pagerank")
        assert other.pagerank() == 0.5
        (truth.ranks + 1).astype(np.float32).tofile(tmp_path / "graph.grid" / "pagerank")
        with pytest.raises(SystemExit, match="PageRank is wrong"):
            other.pagerank()
        other = systems.Blaze(tmp_path, truth, tmp_path, 1)
        assert np.array_equal(np.fromfile(tmp_path / "graph.adj", np.uint32)[: graph.arcs], targets)
        index = (tmp_path / "graph.index").read_bytes()
        begin = -(-(4 + graph.vertices // 16) * 8 // 64) * 64
        assert np.array_equal(np.frombuffer(index, np.uint32, graph.vertices, begin), np.diff(truth.offsets))
        assert np.array_equal(np.frombuffer(index, np.uint64, graph.vertices // 16, 32), truth.offsets[:-1:16])
        script(
            tmp_path / "wcc", f"(largest component: 0, size: {truth.largest} [0.9])\nSTAT, WCC_MAIN, Time, TMAX, 1500"
        )
        assert other.wcc() == 1.5
        script(tmp_path / "wcc", "(largest component: 0, size: 1 [0.9])\nSTAT, WCC_MAIN, Time, TMAX, 1500")
        with pytest.raises(SystemExit, match="largest component: 1 instead of"):
            other.wcc()


# ---- two versions


@pytest.mark.timeout(260)
def test_two_versions_meet(tmp_path):
    """This tree against itself: every cell has figures of both sides; what a tree does not know is said."""
    figures, source = tmp_path / "figures.json", BENCHMARKS.parent / "src"
    command = [
        sys.executable,
        BENCHMARKS / "versions.py",
        "--before",
        source,
        "--graphs",
        "grid9",
        "--rounds",
        "2",
        "--memory",
        "10%",
    ]
    command += [
        "--recipes",
        "filter",
        "nosuch",
        "--algorithms",
        "bfs",
        "pagerank",
        "--folder",
        tmp_path,
        "--json",
        figures,
    ]
    done = subprocess.run(
        [*map(str, command), "--only", "runs"], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    cells = json.loads(figures.read_text())
    assert [(c["algorithm"], c["memory"], c["recipe"]) for c in cells] == [
        ("bfs", None, "auto"),
        ("pagerank", None, "auto"),
        ("bfs", "10%", "filter"),
        ("bfs", "10%", "nosuch"),
        ("pagerank", "10%", "filter"),
        ("pagerank", "10%", "nosuch"),
    ]
    for cell in cells:
        if cell["recipe"] == "nosuch":
            assert cell["left"].startswith("before: ") and "nosuch" in cell["left"]
        else:
            assert all(len(cell[kind][side]) == 2 for kind in ("total", "wall") for side in ("before", "after"))
            assert min(cell["peak"].values()) > 50e6
    assert "| grid9 | bfs | 10%, filter | " in done.stdout


def test_versions_judge_slow_cells_only(module):
    versions = module("versions")
    slow, fast = versions.Cell("a", "bfs"), versions.Cell("b", "sssp", "10%")
    for cell, before, after in ((slow, 2.0, 3.0), (fast, 0.01, 0.05)):
        cell.total = cell.wall = {"before": [before] * 3, "after": [after, after, 99.0]}
        cell.peak = {"before": 100_000_000, "after": 150_000_000}
    assert (slow.judged, fast.judged) == (True, False)
    rows = versions.cells_table([slow, fast])
    assert rows[1] == ["a", "bfs", "in memory", "2.000 s", "3.000 s", "1.50", "1.50", "100 MB", "150 MB"]
    assert rows[2][5] == "~5.00"
    assert versions.summary([slow, fast])[0].endswith("over 1 cells: 1.500")
    assert versions.summary([fast]) == ["No cell took 0.1 s, so none is judged."]


@pytest.mark.parametrize(("algorithm", "near"), [("bfs", False), ("pagerank", True)])
def test_versions_compare_answers(module, algorithm, near):
    versions = module("versions")
    assert versions.same(algorithm, np.array([0.5, 0.5]), np.array([0.5, 0.5]))
    assert versions.same(algorithm, np.array([0.5, 0.5]), np.array([0.50001, 0.5])) is near
    assert not versions.same(algorithm, np.array([0.5, 0.5]), np.array([0.6, 0.4]))


def test_answers_of_a_gpu_are_verified(module, monkeypatch, tmp_path, capsys):
    gpu, card = module("gpu"), LazyCard()
    monkeypatch.setattr(cuda_module, "found", lambda: ([cuda_module.Found(0, "lazy", (8, 0))], ""))
    monkeypatch.setattr(cuda_device, "open_card", lambda number: card)
    options = SimpleNamespace(device="cuda:0", memory="10%", rounds=1)
    assert gpu.measured("rmat6", options, tmp_path)
    shown = capsys.readouterr().out
    for row in (
        "sssp | hytgraph",
        "pagerank | unified",
        "bfs | grus",
        "sssp | subway from disk",
        "grapin",
        "grapin-page",
        "auto",
    ):
        assert f"| {row} | " in shown
    assert "WRONG" not in shown and card.held == {}
    for name in ("RECIPES", "FROM_DISK"):
        monkeypatch.setattr(gpu, name, ("filter",))
    monkeypatch.setattr(gpu, "same", lambda found, expected: False)
    assert not gpu.measured("rmat6", options, tmp_path)
    runs, streams = capsys.readouterr().out.split("sssp in a stream")
    # Three rows of each algorithm, and every recipe of streams.
    assert runs.count("WRONG") == 12 and streams.count("WRONG") == 4


def test_a_machine_without_a_gpu_is_told(module, monkeypatch, capsys):
    monkeypatch.setattr(cuda_module, "found", lambda: ([], "no driver"))
    monkeypatch.setattr(sys, "argv", ["gpu.py"])
    assert module("gpu").main() == 2
    assert capsys.readouterr().err == "cuda:0: no driver\n"
