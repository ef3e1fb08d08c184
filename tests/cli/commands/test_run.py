"""`isthmus run`, as a person or a script meets it."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from tests.caches import without_programs
from tests.cli.in_process import caller
from tests.cli.outcome import slowness
from tests.gpus import FailingCard

import isthmus as ist
from isthmus.devices.cuda import device as cuda_device
from isthmus.kernels.compile import cuda_module
from isthmus.policies.recipes import RECIPES

COMMAND = [sys.executable, "-m", "isthmus.cli.main"]
SUMMARY = {
    "algorithm",
    "graph",
    "device",
    "policy",
    "memory",
    "seconds",
    "iterations",
    "transfer",
    "engines",
    "cache",
    "result",
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    ist.generate("rmat", folder / "g.isthmus", scale=13, weights="1:20").close()
    ist.generate("path", folder / "path.isthmus", vertices=6).close()
    named = tuple(np.array(column, object) for column in (["a=1", "b", "c"], ["b", "c", "d"]))
    ist.ingest(named, folder / "named.isthmus").close()
    return folder


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, stores: Path) -> Any:
    """Run a command in this process, in the folder of the stores."""
    monkeypatch.chdir(stores)
    return caller(capsys, monkeypatch, "run")


def test_help_names_every_recipe(call: Any) -> None:
    text = " ".join(call("bfs", "--help").out.split())
    assert all(name in text for name in RECIPES)


def test_a_gpu_that_fails_ends_the_command_in_one_line(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    card, failure = FailingCard(), type("CudaAPIError", (type("CudaDriverError", (Exception,), {}),), {})
    monkeypatch.setattr(cuda_module, "found", lambda: ([cuda_module.Found(0, "lazy", (8, 0))], ""))
    monkeypatch.setattr(cuda_device, "open_card", lambda number: card)

    finish, words = card.finish, "[700] Call to cuEventSynchronize results in CUDA_ERROR_ILLEGAL_ADDRESS"

    def fail(event: Any) -> None:
        with contextlib.suppress(OSError):
            finish(event)
        raise failure(words)

    monkeypatch.setattr(card, "finish", fail)
    ended = call("bfs", "g.isthmus", "--source", 0, "--device", "cuda:0")
    assert (ended.code, ended.out) == (1, "")
    assert (
        ended.err.splitlines()[-1]
        == f"error: the GPU has failed: {words}; start the command again, or use --device cpu"
    )


ALGORITHMS = {
    "bfs": ["--source", 0],
    "sssp": ["--source", 0],
    "weakly_connected_components": [],
    "pagerank": ["--tol", 1e-3],
}


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
@pytest.mark.parametrize("policy", ["auto", "filter", "emogi"])
def test_every_algorithm_as_json(call: Any, algorithm: str, policy: str) -> None:
    how = ["--policy", policy, "--memory", "20%", "--device", "cpu", "--threads", 2, "--json"]
    outcome = call(algorithm, "g.isthmus", *ALGORITHMS[algorithm], *how)
    assert outcome.code == 0, outcome.err
    facts = outcome.json
    assert facts["repeat"]["command"].startswith(f"isthmus run {algorithm} g.isthmus ")
    assert set(facts) >= SUMMARY
    assert facts["algorithm"] == algorithm
    assert facts["device"] == "cpu"
    assert facts["graph"]["vertices"] == 8192
    assert facts["memory"]["split"]["edges"] > 0
    if policy != "auto":
        assert facts["policy"] == policy
        assert set(facts["engines"]) == {"filter" if policy == "filter" else "zero_copy"}
        assert facts["transfer"]["bytes"] > 0


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_every_algorithm_for_people(call: Any, algorithm: str) -> None:
    outcome = call(algorithm, "g.isthmus", *ALGORITHMS[algorithm])
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0].startswith(f"{algorithm} on g.isthmus, ")
    assert {"iterations", "time", "moved", "near"} <= {line.split()[0] for line in lines[1:]}
    assert "iteration 1" not in outcome.err, "no live line where there is no terminal"


def test_filter_and_emogi_give_equal_files(call: Any, stores: Path, tmp_path: Path) -> None:
    for policy in ("filter", "emogi"):
        outcome = call(
            "sssp",
            "g.isthmus",
            "--source",
            0,
            "--policy",
            policy,
            "--memory",
            "10%",
            "-o",
            tmp_path / f"{policy}.parquet",
        )
        assert outcome.code == 0
        assert f"written      {tmp_path / policy}.parquet" in outcome.out
    a, b = (pq.read_table(tmp_path / f"{policy}.parquet") for policy in ("filter", "emogi"))
    assert a.equals(b)
    with ist.open(stores / "g.isthmus") as graph:
        assert a.equals(ist.sssp(graph, 0).to_arrow())


def test_output_formats_and_options_of_searches(call: Any, tmp_path: Path) -> None:
    assert (
        call("bfs", "path.isthmus", "--source", 2, "--depth-limit", 2, "--predecessors", "-o", tmp_path / "a.csv").code
        == 0
    )
    assert pc.read_csv(tmp_path / "a.csv").to_pydict() == {
        "vertex": [0, 1, 2, 3, 4, 5], "distance": [2, 1, 0, 1, 2, None], "predecessor": [1, 2, None, 2, 3, None],
    }  # fmt: skip
    outcome = call("sssp", "path.isthmus", "--source", 0, "--cutoff", 2.5, "--output", tmp_path / "b.npy", "--json")
    assert np.load(tmp_path / "b.npy").tolist() == [0, 1, 2, *[2**63 - 1] * 3]
    assert outcome.json["result"] == {"reached": 3, "farthest": 2}
    assert outcome.json["notes"] == ["the graph has no weights: every edge counts as 1"]
    people = call("sssp", "path.isthmus", "--source", 0)
    assert "note: the graph has no weights: every edge counts as 1\n" in people.err


def test_options_of_pagerank(call: Any, stores: Path, tmp_path: Path) -> None:
    shares = ["--personalization", "0=1", "--personalization", "5=0.5", "--dangling", "3=1"]
    assert (
        call("pagerank", "g.isthmus", *shares, "--alpha", 0.5, "--weight", "--tol", 1e-7, "-o", tmp_path / "a.npy").code
        == 0
    )
    assert (
        call("pagerank", "path.isthmus", "--iterations", 3, "-o", tmp_path / "b.npy", "--json").json["iterations"] == 3
    )
    with ist.open(stores / "g.isthmus") as graph:
        expected = ist.pagerank(graph, 0.5, {0: 1, 5: 0.5}, tol=1e-7, weight=True, dangling={3: 1})
        assert np.abs(np.load(tmp_path / "a.npy") - expected.values).sum() <= 2e-7


@pytest.mark.parametrize("algorithm", ["bfs", "sssp", "widest_path", "php"])
def test_without_a_source_the_busiest_vertex_is_it(call: Any, algorithm: str, sized: Any) -> None:
    sized(degree_vertices=3)
    done = call(algorithm, "named.isthmus", "--json")
    assert done.code == 0
    with ist.open("named.isthmus") as graph:
        busiest = graph.busiest()
        assert graph.out_degree(busiest) == max(graph.out_degree(v) for v in graph.ids.users(np.arange(graph.vertices)))
    assert f"no source was given; starting from vertex {busiest}, which has the most edges" in done.err
    assert done.json["result"] == call(algorithm, "named.isthmus", "--source", busiest, "--json").json["result"]


def test_a_graph_without_vertices_has_no_busiest(tmp_path: Path) -> None:
    none = np.empty(0, np.int64)
    with pytest.raises(ist.UnknownVertexError, match="no vertex"):
        ist.read((none, none)).busiest()


def test_ids_that_are_strings(call: Any) -> None:
    assert call("bfs", "named.isthmus", "--source", "a=1", "--json").json["result"] == {"reached": 4, "depth": 3}
    assert call("pagerank", "named.isthmus", "--personalization", "a=1=2", "--json").json["result"]["converged"]
    assert call("wcc", "named.isthmus", "--json").json["result"] == {"components": 1, "largest": 4}


def test_without_a_gpu_it_is_one_clear_line(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if no source is given: nothing is said of a run that is refused."""
    monkeypatch.setattr(cuda_module, "found", lambda: ([], "no NVIDIA driver was found (libcuda.so cannot be loaded)"))
    done = call("bfs", "g.isthmus", "--device", "cuda:0")
    done.assert_refused(2, "device: cuda:0: no NVIDIA driver was found")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["bfs", "g.isthmus", "--source", 99999999], 6, "no vertex 99999999 in the graph"),
        (["bfs", "g.isthmus", "--source", "x"], 6, "no vertex 'x' in the graph; its ids are integers"),
        (["bfs", "named.isthmus", "--source", "x"], 6, "no vertex 'x' in the graph"),
        (["bfs", "g.isthmus", "--source", 0, "--depth-limit", -1], 2, "--depth-limit"),
        (["sssp", "g.isthmus", "--source", 0, "--cutoff", -1], 2, "--cutoff"),
        (["bfs", "g.isthmus", "--source", 0, "--policy", "fast"], 2, "policy: expected one of"),
        # Between these two parts stand devices of other packages, which other tests may have added to this process.
        (["bfs", "g.isthmus", "--source", 0, "--device", "tpu"], 2, "device: expected one of auto, cpu, "),
        (["bfs", "g.isthmus", "--source", 0, "--device", "tpu"], 2, "model:NAME or cuda:NUMBER, got 'tpu'"),
        (
            ["bfs", "g.isthmus", "--source", 0, "--device", "cuda:first"],
            2,
            "device: expected cuda:NUMBER, such as cuda:0, got 'cuda:first'",
        ),
        (["bfs", "g.isthmus", "--source", 0, "--memory", "much"], 2, "or for a run a share such as 10%, got 'much'"),
        (["bfs", "g.isthmus", "--source", 0, "--memory", "1kB"], 5, "bfs on <Graph: 8192 vertices"),
        (["bfs", "g.isthmus", "--source", 0, "--threads", 0], 2, "--threads"),
        (["bfs", "none.isthmus", "--source", 0], 4, "none.isthmus: no such store"),
        (
            ["bfs", "g.isthmus", "--source", 0, "-o", "out.xlsx"],
            2,
            "out.xlsx: expected a name that ends in .parquet, .csv or .npy",
        ),
        (["bfs", "g.isthmus", "--source", 0, "-o", "nowhere/out.csv"], 2, "nowhere: no such folder"),
        (["pagerank", "g.isthmus", "--alpha", 1], 2, "alpha: expected a number between 0 and 1, got 1.0"),
        (["pagerank", "g.isthmus", "--tol", 0], 2, "tol: expected a number above 0, got 0.0"),
        (["pagerank", "path.isthmus", "--weight"], 2, "has no weights"),
        (["pagerank", "g.isthmus", "--personalization", "7"], 2, "expected VERTEX=SHARE such as 7=0.5, got '7'"),
        (["pagerank", "g.isthmus", "--dangling", "7=much"], 2, "expected VERTEX=SHARE such as 7=0.5, got '7=much'"),
        (["pagerank", "g.isthmus", "--personalization", "x=1"], 6, "no vertex 'x' in the graph; its ids are integers"),
        (["nosuch", "g.isthmus"], 2, "No such command 'nosuch'"),
    ],
)
def test_mistakes(call: Any, arguments: list[Any], code: int, message: str) -> None:
    call(*arguments).assert_refused(code, message)


def test_a_damaged_block_is_found(call: Any, tmp_path: Path) -> None:
    ist.generate("rmat", tmp_path / "bad.isthmus", scale=13).close()
    with (tmp_path / "bad.isthmus" / "out.targets").open("r+b") as file:
        file.seek(5 * 4096)
        byte = file.read(1)
        file.seek(5 * 4096)
        file.write(bytes([byte[0] ^ 1]))
    for how in ([], ["--memory", "10%", "--policy", "filter"], ["--memory", "10%", "--policy", "emogi"]):
        outcome = call("pagerank", tmp_path / "bad.isthmus", "-o", tmp_path / "out.npy", *how)
        assert (outcome.code, outcome.out) == (4, "")
        where = "bad.isthmus/out.targets: block 5 at byte 20480: the checksum does not match; the store is damaged\n"
        assert outcome.err.endswith(where)
    assert not (tmp_path / "out.npy").exists()
    assert call("pagerank", tmp_path / "bad.isthmus", "--no-verify", "-o", tmp_path / "out.npy").code == 0, (
        "trusted, if asked to"
    )


def process(*arguments: Any, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *map(str, arguments)], text=True, capture_output=True, timeout=110, **more)


def on_a_terminal(*arguments: Any) -> str:
    """What a command shows where standard error is a terminal."""
    near, far = pty.openpty()
    running = subprocess.Popen(
        [*COMMAND, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=far, env={**os.environ, "TERM": "xterm"}
    )
    os.close(far)
    shown = b""
    while True:
        try:
            part = os.read(near, 65536)
        except OSError:  # the other end has gone
            break
        if not part:
            break
        shown += part
    os.close(near)
    assert running.wait(60) == 0
    return shown.decode(errors="replace")


def test_a_live_line_on_a_terminal_only(tmp_path: Path) -> None:
    ist.generate("grid", tmp_path / "g.isthmus", rows=300, columns=300).close()
    command = ["run", "bfs", tmp_path / "g.isthmus", "--source", 0, "--memory", "10%", "--policy", "filter"]
    shown = on_a_terminal(*command)
    assert "bfs: iteration " in shown
    assert " active, " in shown
    assert " edges/s, " in shown
    assert " moved, " in shown
    assert "bfs: iteration" not in process(*command).stderr


@pytest.mark.alone
def test_the_first_run_says_that_it_compiles_and_the_second_is_quick(tmp_path: Path) -> None:
    """From shell to shell; the machine may be busy, so the best of three counts."""
    ist.generate("uniform", tmp_path / "g.isthmus", vertices=300, edges=1000).close()
    environment = {**os.environ, "ISTHMUS_CACHE": str(without_programs(tmp_path / "cache"))}
    command = ["run", "bfs", tmp_path / "g.isthmus", "--source", 0, "--memory", "50%", "--policy", "filter"]
    start = time.monotonic()
    first = process(*command, env=environment)
    assert time.monotonic() - start < 30
    assert (first.returncode, first.stdout.startswith("bfs on ")) == (0, True)
    assert f"note: compiling bfs (once; kept in {tmp_path}/cache/kernels)\n" in first.stderr
    assert "\ncompiling    " in first.stdout
    best = 99.0
    for _ in range(3):
        start = time.monotonic()
        again = process(*command, env=environment)
        best = min(best, time.monotonic() - start)
        assert "compiling" not in again.stdout + again.stderr
        assert again.returncode == 0
    assert best < 1.5 * slowness()


def test_a_missing_hub_order_is_printed(call: Any) -> None:
    told = call(
        "sssp", "g.isthmus", "--source", 0, "--memory", "10%", "--policy", "hytgraph", "--device", "model:rtx2080ti"
    )
    assert told.code == 0 and "hytgraph cannot run hubs first, as published; ingest it with --order hub" in " ".join(
        told.err.split()
    )
