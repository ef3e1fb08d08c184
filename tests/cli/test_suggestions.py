"""What was probably meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.in_process import caller

import isthmus as ist
from isthmus.cli.suggestions import ELSEWHERE
from isthmus.programs.catalogue import ALGORITHMS


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)
    ist.generate("path", "p.isthmus", vertices=6).close()
    return caller(capsys, monkeypatch)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("rnu bfs p.isthmus", "run"),
        ("degree p.isthmus", "isthmus degrees"),
        ("ego p.isthmus 1", "isthmus ego-graph"),
        ("ego_graph p.isthmus 1", "ego-graph"),
        ("pagerank p.isthmus", "isthmus run pagerank"),
        ("run pagernk p.isthmus", "pagerank"),
        ("run connected_components p.isthmus", "weakly_connected_components"),
        ("run strongly-connected-components p.isthmus", "strongly_connected_components"),
        ("run dijkstra p.isthmus", "sssp"),
        ("compare pagernk p.isthmus", "pagerank"),
        ("run shortest_path p.isthmus", "isthmus path"),
        ("run bfs p.isthmus --memry 1GB", "--memory"),
        ("run bfs p.isthmus --depth_limit 1", "--depth-limit"),
        ("run pagerank p.isthmus --damping 0.5", "--alpha"),
        ("run bfs p.isthmus --source 0 --policy fliter", "filter"),
        ("generate gird --rows 2 --columns 2 -o x.isthmus", "grid"),
    ],
)
def test_a_suggestion(call: Any, words: str, meant: str) -> None:
    done = call(*words.split())
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith(f"did you mean {meant}?\n") or f"(did you mean {meant}?)" in done.err
    assert done.err.count("did you mean") + done.err.count("Did you mean") == 1


def test_nothing_is_near(call: Any) -> None:
    assert call("run", "zzzzzz", "p.isthmus").err == "error: No such command 'zzzzzz' (see isthmus run --help)\n"
    assert "did you mean" not in call("run", "bfs", "p.isthmus", "--qqqqqq", 1).err


def test_what_is_called_otherwise_exists() -> None:
    assert set(ELSEWHERE.values()) <= set(ALGORITHMS)
