"""`isthmus path`, `degrees`, `subgraph` and `ego-graph`."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.cli.in_process import caller

import isthmus as ist


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)
    ends = np.array(["ann", "bob", "cy", "dan dee"], object)
    ist.ingest((ends[[0, 1, 0, 3]], ends[[1, 2, 2, 3]], np.array([1, 2, 9, 1])), "named.isthmus").close()
    ist.generate("path", "path.isthmus", vertices=6).close()
    return caller(capsys, monkeypatch)


def test_a_path(call: Any) -> None:
    done = call("path", "named.isthmus", "ann", "cy")
    assert (done.code, done.out) == (0, "ann\ncy\n")
    assert done.err == "1 edge; --weight finds the path with the smallest weight\n"
    done = call("path", "named.isthmus", "ann", "cy", "--weight", "--memory", "1MB")
    assert (done.out, done.err) == ("ann\nbob\ncy\n", "2 edges, weight 3\n")
    done = call("path", "named.isthmus", "ann", "cy", "--weight", "--json")
    assert (done.json["path"], done.json["length"]) == (["ann", "bob", "cy"], 3)
    assert done.json["run"]["result"] == {"length": 3}  # nothing about the vertices that the search did not come to
    assert call("path", "path.isthmus", 2, 2, "-q").out == "2\n"
    assert "every edge counts as 1" in call("path", "path.isthmus", 2, 3, "--weight").err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["named.isthmus", "cy", "ann"],
            9,
            "no path from vertex 'cy' to vertex 'ann'; edges are followed in their direction only",
        ),
        (["named.isthmus", "ann", "zoe"], 6, "no vertex 'zoe' in the graph"),
        (["path.isthmus", "x", "1"], 6, "no vertex 'x' in the graph; its ids are integers"),
        (["path.isthmus", "1", "2", "--memory", "1kB"], 5, "shortest_path|bfs|predecessors"),
    ],
)
def test_no_path(call: Any, arguments: list[str], code: int, message: str) -> None:
    done = call("path", *arguments)
    assert (done.code, done.out) == (code, "")
    assert any(words in done.err for words in message.split("|"))


def test_degrees(call: Any) -> None:
    done = call("degrees", "named.isthmus", "--top", 2)
    assert done.out.splitlines() == ["vertex  degree", "ann          2", "bob          2"]
    assert done.err == "2 of 4 vertices; -o FILE writes all\n"
    assert call("degrees", "named.isthmus", "--top", 1, "--ascending", "-q").out.splitlines()[1].split() == ["ann", "2"]
    assert call("degrees", "named.isthmus", "--json", "--top", 1).json["top"] == [["ann", 2]]
    done = call("degrees", "named.isthmus", "-o", "d.parquet")
    assert (done.out, done.err) == ("written  d.parquet\n", "")
    assert pq.read_table("d.parquet").column_names == ["vertex", "degree", "in_degree", "out_degree"]
    done = call("degrees", "named.isthmus", "--memory", "64B")
    assert (
        done.code == 5
        and "the degrees of all vertices needs 128 B" in done.err
        and "give --memory 1MB or more" in done.err
    )


def test_parts_become_stores(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("ann\n\ncy\n"))
    done = call("subgraph", "named.isthmus", "--vertices", "-", "--vertex", "dan dee", "-o", "s.isthmus")
    assert done.code == 0 and done.out.splitlines()[:2] == ["s.isthmus", "vertices     3"]
    with ist.open("s.isthmus") as part:
        assert (part.ids.natural(0, 3).tolist(), part.edges, part.edge_weights("ann", "cy").tolist()) == (
            ["ann", "cy", "dan dee"],
            2,
            [9],
        )
    Path("some.txt").write_text("1\n2\n")
    assert call("subgraph", "path.isthmus", "--vertices", "some.txt", "-o", "t.isthmus", "--json").json["edges"] == 1
    assert call("subgraph", "path.isthmus", "--vertices", "none.txt", "-o", "u.isthmus").code == 2
    assert call("subgraph", "path.isthmus", "--vertex", 99, "-o", "u.isthmus").code == 6
    done = call("subgraph", "path.isthmus", "-o", "u.isthmus")
    assert done.code == 2 and "expected the vertices to keep: --vertex" in done.err
    assert not Path("u.isthmus").exists()


def test_a_neighbourhood_becomes_a_store(call: Any) -> None:
    assert call("ego-graph", "path.isthmus", 3, "--radius", 2, "-o", "e.isthmus").code == 0
    with ist.open("e.isthmus") as part:
        assert part.ids.natural(0, 5).tolist() == [1, 2, 3, 4, 5]
    assert "overwrite" in call("ego-graph", "path.isthmus", 3, "-o", "e.isthmus").err
    assert call("ego-graph", "path.isthmus", 3, "-o", "e.isthmus", "--overwrite", "--json").json["vertices"] == 3
    assert call("ego-graph", "named.isthmus", "cy", "--undirected", "-o", "n.isthmus", "--json").json["vertices"] == 3
    assert (
        call("ego-graph", "named.isthmus", "ann", "--weight", "--radius", 0.5, "-o", "w.isthmus", "--json").json[
            "vertices"
        ]
        == 1
    )
    assert (
        "radius: expected a whole number"
        in call("ego-graph", "named.isthmus", "ann", "--radius", 0.5, "-o", "x.isthmus").err
    )
