"""Every further algorithm by its command: the same answer as by its function, its table, and its mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.cli.in_process import caller

import isthmus as ist

COMMANDS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "widest_path": (["--source", "3"], {"source": 3}),
    "katz": (
        ["--alpha", "0.002", "--beta", "2", "--no-normalized", "--weight"],
        {"alpha": 0.002, "beta": 2.0, "normalized": False, "weight": True},
    ),
    "php": (
        ["--source", "3", "--alpha", "0.5", "--tol", "1e-4", "--weight"],
        {"source": 3, "alpha": 0.5, "tol": 1e-4, "weight": True},
    ),
    "multi_source_bfs": (["--source", "3", "--source", "5"], {"sources": [3, 5]}),
    "personalized_pagerank": (
        ["--source", "3", "--source", "5", "--alpha", "0.5", "--tol", "1e-7", "--max-iter", "99", "--weight"],
        {"sources": [3, 5], "alpha": 0.5, "tol": 1e-7, "max_iter": 99, "weight": True},
    ),
    "betweenness_centrality": (
        ["--k", "7", "--seed", "4", "--no-normalized", "--endpoints"],
        {"k": 7, "seed": 4, "normalized": False, "endpoints": True},
    ),
    "label_propagation": (["--max-iter", "3"], {"max_iter": 3}),
    "core_number": ([], {}),
    "strongly_connected_components": ([], {}),
    "minimum_spanning_forest": ([], {}),
    "triangle_count": ([], {}),
    "local_clustering_coefficient": ([], {}),
    "circuit": (
        ["--fix", "3=5", "--fix", "0=-1", "--current", "7=0.25", "--tol", "1e-9", "--max-iter", "500"],
        {"fixed": {3: 5.0, 0: -1.0}, "currents": {7: 0.25}, "tol": 1e-9, "max_iter": 500},
    ),
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("more") / "g.isthmus"
    draw = np.random.default_rng(3)
    ends = (60 * draw.random((2, 400)) ** 2).astype(np.int64)
    ist.ingest((*ends, draw.integers(1, 9, 400)), path, vertices=60).close()
    return path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    return caller(capsys, monkeypatch, "run")


@pytest.mark.parametrize("name", list(COMMANDS))
def test_commands(name: str, call: Any, store: Path, tmp_path: Path) -> None:
    words, options = COMMANDS[name]
    table = tmp_path / "out.parquet"
    done = call(name, store, *words, "--json", "-o", table, "--memory", "10%", "--policy", "filter")
    assert done.code == 0, done.err
    facts = done.json
    with ist.open(store) as graph:
        result = getattr(ist, name)(graph, **options)
        expected = result.to_arrow()
    assert (facts["algorithm"], facts["policy"]) == (name, "filter")
    found = pq.read_table(table)
    assert found.schema == expected.schema
    for column in found.column_names:
        values, others = found[column].to_pylist(), expected[column].to_pylist()
        assert values == (pytest.approx(others, rel=1e-9) if found.schema.field(column).type == "double" else others)
    assert facts["result"] == pytest.approx(result.summary()["result"], rel=1e-6, abs=1e-4)


@pytest.mark.parametrize("name", list(COMMANDS))
def test_for_people(name: str, call: Any, store: Path) -> None:
    done = call(name, store, *COMMANDS[name][0])
    assert done.code == 0 and name in done.out


def test_mistakes(call: Any, store: Path) -> None:
    done = call("katz", store, "--alpha", 7)
    assert done.code != 0 and "is too large for this graph" in done.err
    done = call("multi_source_bfs", store, "--source", 3, "--source", 99)
    assert done.code != 0 and "no vertex 99" in done.err
    done = call("php", store, "--source", 3, "--alpha", 1)
    assert done.code != 0 and "alpha: expected a number between 0 and 1" in done.err
    done = call("circuit", store, "--fix", 3)
    assert done.code != 0 and "expected VERTEX=VOLTS such as 7=0.5, got '3'" in done.err
    done = call("circuit", store)
    assert done.code != 0 and "--fix" in done.err
    done = call("circuit", store, "--fix", "3=1", "--current", "3=1")
    assert done.code != 0 and "vertex 3 is held at a voltage" in done.err


def test_sources_of_betweenness(call: Any, store: Path) -> None:
    done = call("betweenness_centrality", store, "--source", 3, "--source", 5, "--json")
    with ist.open(store) as graph:
        expected = ist.betweenness_centrality(graph, sources=[3, 5]).summary()["result"]
    assert done.code == 0 and done.json["result"] == pytest.approx(expected)
    done = call("betweenness_centrality", store, "--k", 61)
    assert done.code != 0 and "k: expected a number of vertices from 1 to 60, got 61" in done.err
    done = call("personalized_pagerank", store, "--source", 99)
    assert done.code != 0 and "no vertex 99" in done.err
