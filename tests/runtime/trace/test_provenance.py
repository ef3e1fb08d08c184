"""What is needed to repeat a run: all options, the store's checksum, version, date and command, in every summary."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.runtime.trace.provenance import from_shell, simple


@pytest.fixture
def graph(tmp_path: Path) -> Any:
    with ist.generate("rmat", tmp_path / "g.isthmus", scale=6, weights="1:9", seed=2) as graph:
        yield graph


def test_every_option_is_there_and_the_call_can_be_repeated(graph: Any) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    result = ist.sssp(graph, 3, cutoff=np.int64(9), memory="50%", policy="filter", threads=1)
    facts = result.summary()["repeat"]
    assert facts["options"] == {"source": 3, "cutoff": 9, "predecessors": False}
    usual = {"device": "auto", "without": [], "verify": True, "far": "auto"}
    assert facts["run"] == {**usual, "memory": "50%", "policy": "filter", "threads": 1}
    assert facts["graph"] == {"path": str(graph.path), "checksum": graph.snapshot.identity()}
    assert facts["isthmus"] == ist.__version__
    assert before <= datetime.fromisoformat(facts["date"]) <= datetime.now(UTC)
    again = eval(facts["command"], {"isthmus": ist})
    assert again.filled().tolist() == result.filled().tolist()
    assert again.summary()["repeat"]["command"] == facts["command"]


def test_values_that_json_lacks(graph: Any) -> None:
    facts = ist.sssp(graph, 3, cutoff=float("inf")).summary()
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert facts["repeat"]["options"]["cutoff"] == "inf"
    assert simple({1: np.float64(0.5), "a": [np.int8(2), None]}) == {"1": 0.5, "a": [2, None]}
    assert re.fullmatch(r"float64\[3\]:[0-9a-f]{16}", simple(np.ones(3)))
    assert len(simple(dict.fromkeys(range(10**4), 1.0))) < 200
    assert simple(object()) == "<object>"


def test_programs_sessions_and_graphs_in_memory() -> None:
    @ist.monotone(initial=2**40, start=0)
    def steps(value, by=1):  # type: ignore[no-untyped-def]
        return value + by

    graph = ist.generate("path", vertices=5)
    facts = ist.run(steps(source=1, by=2), graph).summary()["repeat"]
    assert facts["graph"] == {"path": None, "checksum": None}
    assert re.fullmatch(r"isthmus\.run\(steps\(.*source=1, by=2\), graph\)", facts["command"])
    with graph.session(threads=1) as session:
        facts = session.bfs(2).summary()["repeat"]
    assert (facts["options"]["source"], facts["run"]["threads"]) == (2, 1)
    assert facts["command"] == "isthmus.bfs(graph, source=2, threads=1)"


def test_a_command_of_the_shell(graph: Any) -> None:
    with from_shell(["run", "bfs", "a b.isthmus", "--source", "0"]):
        facts = ist.bfs(graph, 0).summary()["repeat"]
    assert facts["command"] == "isthmus run bfs 'a b.isthmus' --source 0"
    assert ist.bfs(graph, 0).summary()["repeat"]["command"].startswith("isthmus.bfs(")


def test_a_report_shows_it(graph: Any, tmp_path: Path) -> None:
    ist.bfs(graph, 0).report(tmp_path / "run.html")
    text = (tmp_path / "run.html").read_text()
    for part in ("To repeat it", "checksum " + graph.snapshot.identity(), "depth_limit = None", ist.__version__):
        assert part in text
