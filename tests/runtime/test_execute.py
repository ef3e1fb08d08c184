"""Seconds of a run: each is counted once, and compiling a kernel in its midst is not work on edges."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

import isthmus as ist
from isthmus.kernels.compile.compile_clock import COMPILING, PREPARING
from isthmus.programs.algorithms.bfs import BFS
from isthmus.runtime import execute

PAUSE = 0.6


@pytest.fixture(scope="module")
def graph() -> Any:
    with ist.generate("star", vertices=50) as graph:
        ist.bfs(graph, 0)
        ist.bfs(graph, 0, memory="10%", policy="filter", far="ram")
        yield graph


def late(loop: Any, watch: Any) -> Any:
    """A loop whose first call seems to compile it."""
    calls: list[Any] = []

    def first(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 1:
            with watch:
                time.sleep(PAUSE)
        return loop(*arguments)

    return first


def far_seconds(graph: Any, monkeypatch: pytest.MonkeyPatch, watch: Any) -> tuple[dict[str, float], Any]:
    """A run whose loop over ranges is compiled, or loaded, in its first iteration."""
    compile_program = execute.compile_program

    def with_a_late_loop(*arguments: Any) -> Any:
        loops = vars(compile_program(*arguments))
        return SimpleNamespace(
            **{name: late(loop, watch) if name.startswith("push_") else loop for name, loop in loops.items()}
        )

    monkeypatch.setattr(execute, "compile_program", with_a_late_loop)
    result = ist.bfs(graph, 0, memory="10%", policy="filter", far="ram", threads=1)
    return result.summary()["seconds"], result.trace


def near_seconds(graph: Any, monkeypatch: pytest.MonkeyPatch, watch: Any) -> tuple[dict[str, float], Any]:
    monkeypatch.setattr(BFS, "solve", late(BFS.solve, watch))
    result = ist.run(BFS(0), graph)
    return result.summary()["seconds"], result.trace


@pytest.mark.parametrize("run", [far_seconds, near_seconds])
def test_compiling_is_counted_apart(graph: Any, monkeypatch: pytest.MonkeyPatch, run: Any) -> None:
    seconds, trace = run(graph, monkeypatch, COMPILING)
    assert PAUSE <= seconds["compile"] <= seconds["total"]
    assert PAUSE > trace.total("seconds") >= seconds["kernel"] + seconds["wait"]
    parts = sum(seconds[name] for name in ("compile", "set_up", "load", "iterate"))
    assert parts <= seconds["total"] + 1e-6
    assert seconds["total"] - parts < PAUSE


@pytest.mark.parametrize("run", [far_seconds, near_seconds])
def test_loading_machine_code_belongs_to_setting_up(graph: Any, monkeypatch: pytest.MonkeyPatch, run: Any) -> None:
    seconds, trace = run(graph, monkeypatch, PREPARING)
    assert (seconds["compile"], seconds["set_up"] >= PAUSE) == (0.0, True)
    assert trace.total("seconds") < PAUSE


def test_people_see_it_only_when_there_was_some(graph: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "compiling" not in dict(ist.bfs(graph, 0).describe())
    monkeypatch.setattr(BFS, "solve", late(BFS.solve, COMPILING))
    shown = dict(ist.bfs(graph, 0).describe())["compiling"]
    assert shown.endswith(" s of it")
    assert float(shown.split()[0]) >= PAUSE
