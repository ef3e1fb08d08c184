"""Who is told that kernels are compiled, and clocks that stand still meanwhile."""

from __future__ import annotations

import time

import pytest

from isthmus.kernels.compile import compile_clock
from isthmus.kernels.compile.compile_clock import COMPILING, PREPARING, Listener, clock, tell, telling


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is told outside of runs."""
    said: list[str] = []
    monkeypatch.setattr(compile_clock, "OUTSIDE", Listener("kernels", said.append))
    return said


def about(what: str) -> str:
    return f"compiling {what}"


def test_outside_of_runs_a_text_is_told_once(outside: list[str]) -> None:
    tell(about)
    tell(about)
    tell(lambda what: "other")
    assert outside == ["compiling kernels", "other"]


def test_every_run_is_told_once(outside: list[str]) -> None:
    said: list[str] = []
    for name in ("bfs", "sssp"):
        with telling(name, said.append):
            tell(about)
            tell(about)
    assert (said, outside) == (["compiling bfs", "compiling sssp"], [])


def test_a_run_without_a_listener_of_its_own(outside: list[str]) -> None:
    with telling("bfs", None):
        tell(about)
    with telling("bfs", None):
        tell(about)
    assert outside == ["compiling bfs"] * 2


def test_runs_at_once_that_share_a_listener_hear_it_once(outside: list[str]) -> None:
    said: list[str] = []
    with telling("bfs", None), telling("bfs", None), telling("sssp", said.append):
        tell(about)
    assert (outside, said) == (["compiling bfs"], ["compiling sssp"])


def test_standard_error_by_default(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    compile_clock.on_standard_error("compiling bfs")
    assert tuple(capsys.readouterr()) == ("", "isthmus: compiling bfs\n")
    monkeypatch.setattr("sys.stderr", None)
    compile_clock.on_standard_error("compiling bfs")
    assert capsys.readouterr().out == ""


def test_the_clock_stands_still() -> None:
    compiled, prepared, begin, start = COMPILING.seconds, PREPARING.seconds, time.perf_counter(), clock()
    with COMPILING:
        before = clock()
        time.sleep(0.02)
        with PREPARING:
            time.sleep(0.02)
        assert clock() - before < 1e-6
    with PREPARING:
        time.sleep(0.02)
    ran = clock() - start
    whole = time.perf_counter() - begin
    assert ran < whole - 0.06 + 0.001
    assert 0.04 <= COMPILING.seconds - compiled <= whole
    assert 0.06 <= PREPARING.seconds - prepared <= whole
