"""`--quiet`, `--verbose`, colours, and completion."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.in_process import caller
from tests.processes import on_a_terminal, process

import isthmus as ist


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)
    ist.generate("path", "p.isthmus", vertices=6).close()
    return caller(capsys, monkeypatch)


@pytest.mark.parametrize(
    "words", [["-q", "run", "sssp"], ["--quiet", "run", "sssp"], ["run", "sssp", "-q"], ["run", "sssp", "--quiet"]]
)
def test_quiet_says_nothing(call: Any, words: list[str]) -> None:
    done = call(*words, "p.isthmus", "--source", 0, "-o", "x.csv")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert Path("x.csv").exists()
    assert call("run", "sssp", "p.isthmus", "--source", 0).err, "only that command was quiet"


def test_quiet_still_says_what_was_asked_for_and_errors(call: Any) -> None:
    assert call("run", "bfs", "p.isthmus", "--source", 0, "-q", "--json").json["result"]["reached"] == 6
    assert call("info", "p.isthmus", "-q").out.startswith("p.isthmus\n")
    assert "no vertex 9" in call("run", "bfs", "p.isthmus", "--source", 9, "-q").err
    assert call("generate", "path", "--vertices", 4, "-o", "q.isthmus", "-q").out == ""
    assert call("verify", "q.isthmus", "-q").out == ""


def test_verbose_logs_on_standard_error(call: Any) -> None:
    done = call("run", "bfs", "p.isthmus", "--source", 0, "-v", "--memory", "10%", "--policy", "filter")
    lines = done.err.splitlines()
    assert re.fullmatch(
        r"\d\d:\d\d:\d\d  bfs: iteration 1, 1 active, 1 edge, 4\.1 kB by filter in 1 request, \d+\.\d+ s", lines[0]
    )
    assert sum("iteration" in line for line in lines) == 6
    assert "iteration 1, " not in done.out
    assert "reading (3 edges)" in call("generate", "path", "--vertices", 4, "-o", "r.isthmus", "--verbose").err


def in_terminal(*words: str, **environment: str) -> str:
    """What a command writes to a terminal."""
    usual = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    return on_a_terminal(*words, both=True, env={**usual, "TERM": "xterm-256color", **environment}).stderr


def test_colours_are_for_terminals(call: Any) -> None:
    colour = re.compile(r"\x1b\[[0-9;]*3[0-9]")
    assert colour.search(in_terminal("info", "p.isthmus"))
    assert not colour.search(in_terminal("info", "p.isthmus", NO_COLOR="1"))
    assert colour.search(in_terminal("info", "none.isthmus")), "the word error"
    piped = process("info", "p.isthmus", check=True)
    assert "\x1b" not in piped.stdout + piped.stderr
    assert call("--version").out == f"isthmus {ist.__version__}\n"


def completed(line: str) -> list[str]:
    """What the shell offers at the end of a line."""
    words = {"_ISTHMUS_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    say = "import atexit, sys\natexit.register(lambda: print('numba' in sys.modules, file=sys.stderr))"
    code = f"{say}\nfrom isthmus.cli.main import app\napp(prog_name='isthmus')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env={**os.environ, **words}
    )
    assert done.stderr.split()[-1] == str("--" in line), done.stderr  # an algorithm is imported for its options only
    return done.stdout.split()


def test_completion() -> None:
    assert {"run", "path", "ego-graph"} <= set(completed("isthmus "))
    assert completed("isthmus run pa") == ["pagerank"]
    assert completed("isthmus run bfs g.isthmus --policy h") == ["hytgraph"]
    assert "--source" in completed("isthmus run bfs --so")
