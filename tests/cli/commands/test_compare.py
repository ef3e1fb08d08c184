"""`isthmus compare`, `isthmus plan` and `--report`, as a person or a script meets them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli.in_process import caller
from tests.cli.outcome import PATIENT

import isthmus as ist
from isthmus.policies.recipes import RECIPES
from isthmus.runtime import public


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compare")
    ist.generate("rmat", folder / "g.isthmus", scale=13, weights="1:20").close()
    return folder


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, stores: Path) -> Any:
    """Run a command in this process, in the folder of the stores."""
    monkeypatch.chdir(stores)
    return caller(capsys, monkeypatch)


JOBS = {
    "bfs": ["--source", 0],
    "sssp": ["--source", 0, "--predecessors"],
    "wcc": [],
    "pagerank": ["--tol", 1e-3],
    "katz": ["--alpha", 1e-4],
    "php": ["--source", 0, "--tol", 1e-3],
    "multi_source_bfs": ["--source", 0, "--source", 1],
    "label_propagation": ["--max-iter", 2],
    "core_number": [],
    "minimum_spanning_forest": [],
    "triangle_count": [],
    "local_clustering_coefficient": [],
}


@pytest.mark.parametrize("job", list(JOBS))
def test_every_algorithm_is_compared(call: Any, job: str) -> None:
    outcome = call(
        "compare",
        job,
        "g.isthmus",
        *JOBS[job],
        "--memory",
        "20%",
        "--policies",
        "filter,emogi",
        "--rounds",
        1,
        "--json",
    )
    assert outcome.code == 0, outcome.err
    runs = outcome.json["runs"]
    assert [run["recipe"] for run in runs] == ["filter", "emogi"]
    assert runs[0]["result"].keys() == runs[1]["result"].keys()
    assert outcome.json["fastest"] in ("filter", "emogi")
    assert all(len(run["rounds"]) == 1 for run in runs)


@pytest.mark.parametrize("job", list(JOBS))
def test_every_algorithm_is_planned(call: Any, job: str) -> None:
    outcome = call("plan", job, "g.isthmus", *JOBS[job], "--memory", "20%", "--json")
    assert outcome.code == 0, outcome.err
    facts = outcome.json
    assert facts["memory"]["least"] <= facts["memory"]["budget"]
    assert set(facts["pass"]) == {"filter", "compaction", "zero_copy", "unified"}
    run = call("run", job, "g.isthmus", *JOBS[job], "--memory", "20%", "--json").json
    assert facts["algorithm"] == run["algorithm"]


def test_all_recipes_by_default(call: Any) -> None:
    outcome = call("compare", "bfs", "g.isthmus", "--source", 0, "--memory", "20%", "--rounds", 2)
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    assert lines[0] == "bfs on g.isthmus, cpu"
    assert lines[1].split()[:3] == ["recipe", "seconds", "x"]
    # a mix of engines may take a second line.
    assert [line.split()[0] for line in lines[2:-1] if line[0] != " "] == list(RECIPES)
    assert lines[-1].startswith("Answers agree. Fastest: ")
    assert lines[-1].removeprefix("Answers agree. Fastest: ").rstrip(".") in RECIPES
    assert all(len(line) <= 80 for line in lines)


def test_a_recipe_that_fails_is_shown_and_the_others_go_on(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def bfs(graph: Any, policy: str, **how: Any) -> Any:
        if policy == "emogi":
            raise ist.BudgetError("emogi needs 5 GB")
        return real(graph, policy=policy, **how)

    real = ist.bfs
    monkeypatch.setattr(public, "function_of", lambda algorithm: bfs)
    arguments = (
        "compare",
        "bfs",
        "g.isthmus",
        "--source",
        0,
        "--memory",
        "20%",
        "--policies",
        "emogi, filter",
        "--rounds",
        1,
    )
    outcome = call(*arguments)
    assert outcome.code == 5
    assert outcome.out.splitlines()[-1] == "Answers agree. Fastest: filter."
    assert outcome.err.splitlines()[-1] == "error: emogi: emogi needs 5 GB"
    outcome = call(*arguments, "--json")
    assert outcome.code == 5
    assert outcome.json["failed"] == [{"recipe": "emogi", "error": "emogi needs 5 GB"}]
    assert [run["recipe"] for run in outcome.json["runs"]] == ["filter"]


def test_answers_that_differ_are_an_error(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def bfs(graph: Any, policy: str, **how: Any) -> Any:
        result = real(graph, policy=policy, **how)
        result.raw("distance")[3] += policy == "emogi"
        return result

    real = ist.bfs
    monkeypatch.setattr(public, "function_of", lambda algorithm: bfs)
    outcome = call(
        "compare", "bfs", "g.isthmus", "--source", 0, "--memory", "20%", "--policies", "filter,emogi", "--rounds", 1
    )
    assert (outcome.code, outcome.out) == (1, "")
    assert "error: bfs: filter and emogi disagree: distance of vertex 3 is " in outcome.err


def test_nothing_to_compare_when_all_fits(call: Any) -> None:
    outcome = call("compare", "bfs", "g.isthmus", "--source", 0, "--policies", "auto,filter", "--rounds", 1)
    assert outcome.code == 0
    assert "note: all edges fit in near memory" in outcome.err
    outcome = call(
        "compare", "bfs", "g.isthmus", "--source", 0, "--memory", "20%", "--policies", "filter", "--rounds", 1
    )
    assert "all edges fit" not in outcome.err


def test_reports(call: Any, tmp_path: Path) -> None:
    outcome = call(
        "run",
        "bfs",
        "g.isthmus",
        "--source",
        0,
        "--memory",
        "20%",
        "--report",
        tmp_path / "run.html",
        "-o",
        tmp_path / "a.csv",
    )
    assert outcome.code == 0, outcome.err
    assert [line.split()[1] for line in outcome.out.splitlines() if line.startswith("written")] == [
        str(tmp_path / "a.csv"),
        str(tmp_path / "run.html"),
    ]
    assert "<h1>bfs on g.isthmus</h1>" in (tmp_path / "run.html").read_text()
    facts = call(
        "run", "bfs", "g.isthmus", "--source", 0, "--memory", "20%", "--report", tmp_path / "run.html", "--json"
    ).json
    assert str(facts["seconds"]["total"]) in (tmp_path / "run.html").read_text()
    arguments = (
        "compare",
        "bfs",
        "g.isthmus",
        "--source",
        0,
        "--memory",
        "20%",
        "--policies",
        "filter,emogi",
        "--rounds",
        1,
    )
    outcome = call(*arguments, "--report", tmp_path / "all.html")
    assert outcome.code == 0, outcome.err
    assert f"written  {tmp_path}/all.html" in outcome.out
    assert "<h2>emogi</h2>" in (tmp_path / "all.html").read_text()


@pytest.mark.parametrize("command", ["run", "compare"])
def test_a_report_that_cannot_be_is_refused_before_the_run(
    call: Any, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(public, "function_of", lambda algorithm: pytest.fail("it ran"))
    for name, message in (("a.pdf", "a.pdf: expected a name that ends in .html"), ("no/a.html", "no: no such folder")):
        outcome = call(command, "bfs", "g.isthmus", "--source", 0, "--report", tmp_path / name)
        assert (outcome.code, outcome.out) == (2, "")
        assert message in outcome.err


def test_a_plan_for_people(call: Any) -> None:
    outcome = call("plan", "pagerank", "g.isthmus", "--memory", "20%", "--policy", "filter")
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    assert lines[0] == "pagerank on g.isthmus, filter"
    rows = {line.strip().split("  ")[0] for line in lines}
    assert {
        "budget",
        "vertex state",
        "offsets",
        "frontier",
        "staging buffers",
        "least budget",
        "all in memory",
        "link",
    } <= rows
    assert [line.split()[0] for line in lines[-4:]] == ["filter", "zero-copy", "compaction", "unified"]


def test_a_budget_too_small_names_the_least_that_works_as_run_does(call: Any) -> None:
    least = call("plan", "pagerank", "g.isthmus", "--json").json["memory"]["least"]
    planned, ran = (call(command, "pagerank", "g.isthmus", "--memory", least - 1) for command in ("plan", "run"))
    assert (planned.code, planned.out) == (5, "")
    assert (planned.code, planned.err) == (ran.code, ran.err)
    assert call("run", "pagerank", "g.isthmus", "--memory", least, "--json").code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["compare", "bfs", "g.isthmus", "--source", 0, "--policies", "filter,fast"], 2, "policy: expected one of"),
        (["compare", "bfs", "g.isthmus", "--source", 0, "--policies", ""], 2, "policy: expected one of"),
        (["compare", "bfs", "g.isthmus", "--source", 0, "--rounds", 0], 2, "--rounds"),
        (["compare", "bfs", "g.isthmus", "--source", 0, "--policy", "auto"], 2, "--policy"),
        (["compare", "bfs", "g.isthmus", "--source", 99999999], 6, "no vertex 99999999 in the graph"),
        (["compare", "bfs", "g.isthmus", "--source", 0, "--memory", "1kB"], 5, "needs at least"),
        (["compare", "bfs", "g.isthmus", "--source", 0, "--memory", "much"], 2, "expected a size such as"),
        (["compare", "bfs", "g.isthmus", "--source", 0, "--device", "tpu"], 2, "device: expected"),
        (["compare", "bfs", "none.isthmus", "--source", 0], 4, "none.isthmus: no such store"),
        (["compare", "nosuch", "g.isthmus"], 2, "No such command 'nosuch'"),
        (["plan", "bfs", "g.isthmus", "--source", 0, "--memory", "much"], 2, "expected a size such as"),
        (["plan", "bfs", "g.isthmus", "--source", 0, "--policy", "fast"], 2, "policy: expected one of"),
        (["plan", "bfs", "g.isthmus", "--source", 0, "--device", "tpu"], 2, "device: expected"),
        (["plan", "pagerank", "g.isthmus", "--alpha", 2], 2, "alpha: expected a number"),
        (["plan", "bfs", "none.isthmus", "--source", 0], 4, "none.isthmus: no such store"),
    ],
)
def test_mistakes(call: Any, arguments: list[Any], code: int, message: str) -> None:
    call(*arguments).assert_refused(code, message)


def open_files(pid: int) -> list[str]:
    found = []
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(os.readlink(file))
    return found


def test_interrupted_between_recipes(stores: Path, tmp_path: Path) -> None:
    """Ctrl-C stops a comparison at once and leaves neither a page nor a scratch file."""
    arguments = ["compare", "pagerank", stores / "g.isthmus", "--tol", "1e-9", "--memory", "20%", "--rounds", "2000"]
    process = subprocess.Popen(
        [*PATIENT, *map(str, arguments), "--report", str(tmp_path / "a.html")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 50
    while not any("g.isthmus" in target for target in open_files(process.pid)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)
    time.sleep(2)
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.endswith("error: interrupted; nothing was changed\n")
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_modelled_devices_are_judged_by_modelled_seconds(call: Any) -> None:
    how = ["--device", "model:rtx2080ti", "--memory", "10%", "--rounds", 1]
    found = call("compare", "pagerank", "g.isthmus", "--tol", 1e-3, *how, "--json")
    assert found.code == 0, found.err
    runs = found.json["runs"]
    assert [run["recipe"] for run in runs] == list(RECIPES)
    assert {run["device"] for run in runs} == {"model:rtx2080ti"}
    assert found.json["fastest"] == min(runs, key=lambda run: run["seconds"]["modelled"])["recipe"]
    assert "modelled s" in call("compare", "bfs", "g.isthmus", "--source", 0, *how, "--policies", "filter,emogi").out


def test_a_modelled_device_counts_the_same_in_every_run_with_any_number_of_threads(call: Any) -> None:
    command = [
        "compare",
        "sssp",
        "g.isthmus",
        "--source",
        0,
        "--device",
        "model:rtx2080ti",
        "--memory",
        "10%",
        "--rounds",
        1,
        "--json",
    ]

    def counted(threads: int) -> dict[str, Any]:
        runs = call(*command, "--threads", threads).json["runs"]
        return {run["recipe"]: (run["transfer"], run["engines"], run["iterations"]) for run in runs}

    first, *others = (counted(threads) for threads in (1, 1, 2, 2))
    assert set(first) == set(RECIPES)
    assert others == [first] * 3


def test_parts_of_recipes_are_left_out(call: Any) -> None:
    how = ["--device", "model:rtx2080ti", "--memory", "20%", "--tol", 1e-3, "--json"]
    job = ["pagerank", "g.isthmus", *how]
    twice, once = (call("run", *job, "--policy", "hytgraph", *off).json for off in ([], ["--without", "recompute"]))
    assert twice["iterations"] < once["iterations"]
    assert call("compare", *job, "--without", "cache,order", "--rounds", 1, "--policies", "hytgraph,scaph").code == 0
    outcome = call("run", "bfs", "g.isthmus", "--source", 0, "--without", "hubs")
    assert outcome.code == 2
    assert "without: expected some of" in outcome.err


def test_plans_for_modelled_devices(call: Any) -> None:
    plan = call("plan", "bfs", "g.isthmus", "--source", 0, "--device", "model:h100", "--json").json
    assert plan["device"] == "model:h100"
    assert plan["link"]["block"] == 128
    assert plan["pass"]["filter"]["seconds"] < plan["pass"]["unified"]["seconds"]
