"""Results on the shell: `--top`, `-o -`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.in_process import caller
from tests.processes import process

import isthmus as ist

LONG = "x" * 200


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)
    ends = np.array(["a", "b", "c", "d", LONG], object)
    ist.ingest((ends[[1, 2, 3, 0]], ends[[0, 0, 4, 4]]), "g.isthmus").close()
    return caller(capsys, monkeypatch)


def test_the_top_comes_with_ids(call: Any) -> None:
    done = call("run", "bfs", "g.isthmus", "--source", "b", "--top", 2)
    assert done.out.splitlines()[-3:] == [
        f"{'vertex':200}  distance",
        f"{LONG:200}  {'2':>8}",
        f"{'a':200}  {'1':>8}",
    ], "no id is cut"
    assert f"depth        2 (vertex {LONG})" in done.out
    done = call("run", "bfs", "g.isthmus", "--source", "b", "--top", 1, "--ascending", "-q")
    assert done.out.splitlines() == ["vertex  distance", "b              0"]
    assert call("run", "bfs", "g.isthmus", "--source", "b", "--top", 9, "--json").json["top"] == [
        [LONG, 2],
        ["a", 1],
        ["b", 0],
    ]
    assert "top" not in call("run", "bfs", "g.isthmus", "--source", "b", "--json").json


def test_the_largest_components(call: Any) -> None:
    ist.read((np.array([7, 8, 20, 30]), np.array([8, 9, 21, 30])))
    ist.ingest((np.array([7, 8, 20, 30]), np.array([8, 9, 21, 30])), "c.isthmus").close()
    done = call("run", "wcc", "c.isthmus", "--top", 2)
    assert done.out.splitlines()[-3:] == ["component  vertices", "7                 3", "20                2"]
    assert "sizes        1 of 3, 1 of 2, 1 of 1" in done.out and "largest      3 (that of vertex 7)" in done.out
    assert call("run", "wcc", "c.isthmus", "--top", 1, "--json").json["top"] == [[7, 3]]


def test_results_go_to_standard_output_and_the_rest_does_not(tmp_path: Path, call: Any) -> None:
    words = ["run", "sssp", "g.isthmus", "--source", "b", "-o", "-"]
    done = process(*words, check=True, cwd=tmp_path)
    assert done.stdout.splitlines() == ['"vertex","distance"', '"a",1', '"b",0', '"c",', '"d",', f'"{LONG}",2']
    assert "sssp on g.isthmus" in done.stderr and "every edge counts as 1" in done.stderr
    done = process(*words, "--quiet", check=True, cwd=tmp_path)
    assert done.stderr == "" and len(done.stdout.splitlines()) == 6


def test_two_things_for_one_output(call: Any) -> None:
    done = call("run", "bfs", "g.isthmus", "--source", "b", "-o", "-", "--json")
    assert (done.code, done.out) == (2, "")
    assert "-o - and --json both write to standard output" in done.err
