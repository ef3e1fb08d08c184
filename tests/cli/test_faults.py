"""Ctrl-C, kill, kill -9, full and read-only disks, two writers: the target stays as it was, nothing is left.

Tests commands as processes: `cli/start.py`, `cli/signals.py`, `cli/commands/ingest.py` and `cli/commands/run.py`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.caches import quiet
from tests.cli.outcome import PATIENT, slowness

import isthmus as ist
from isthmus.cli.main import main

COMMAND = [sys.executable, "-m", "isthmus.cli.main"]
LARGE = ["generate", "rmat", "--scale", "22", "--memory", "1GB"]


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def snapshot(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()}


def run(*arguments: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *map(str, arguments)], text=True, capture_output=True)


def start(target: Path, *arguments: str, wait: float = 0.4) -> subprocess.Popen[str]:
    """A command that has begun to write `target` and has worked on it for a moment."""
    process = subprocess.Popen(
        [*PATIENT, *arguments, "-o", str(target)],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    end = time.monotonic() + 80
    while not list(target.parent.glob(f".{target.name}.tmp-*")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)
    time.sleep(wait)
    assert process.poll() is None, "it was too quick to be interrupted"
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("wait", [0.0, 0.8])
@pytest.mark.parametrize("exists", [False, True])
def test_a_signal_cleans_up(tmp_path: Path, number: signal.Signals, wait: float, exists: bool) -> None:
    target = tmp_path / "g.isthmus"
    if exists:
        ist.generate("path", target, vertices=10).close()
    before = snapshot(target) if exists else {}
    process = start(target, *LARGE, "--overwrite", wait=wait)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert out == ""
    assert quiet(err) == ("error: interrupted; nothing was changed\n" if number == signal.SIGINT else "")
    assert names(tmp_path) == (["g.isthmus"] if exists else [])
    assert not exists or snapshot(target) == before


@pytest.mark.alone
def test_a_signal_ends_a_command_soon(tmp_path: Path) -> None:
    process = start(tmp_path / "g.isthmus", *LARGE, wait=0.8)
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert time.monotonic() - sent < 2 * slowness()


def test_interrupted_while_putting_into_hub_order(tmp_path: Path) -> None:
    process = start(
        tmp_path / "g.isthmus", "generate", "rmat", "--scale", "21", "--order", "hub", "--threads", "1", wait=0
    )
    while not list(tmp_path.glob(".g.isthmus.tmp-*/natural.isthmus")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert names(tmp_path) == []


def test_a_killed_command_leaves_the_target_and_the_next_one_clears_up(tmp_path: Path) -> None:
    target = tmp_path / "g.isthmus"
    ist.generate("path", target, vertices=10).close()
    before = snapshot(target)
    process = start(target, *LARGE, "--overwrite")
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert snapshot(target) == before
    assert run("verify", target).returncode == 0
    assert len(names(tmp_path)) == 3
    assert run("generate", "path", "--vertices", 5, "-o", target, "--overwrite").returncode == 0
    assert names(tmp_path) == ["g.isthmus"]
    assert ist.open(target).vertices == 5


def test_two_commands_at_once(tmp_path: Path) -> None:
    target = tmp_path / "g.isthmus"
    process = start(target, *LARGE, wait=0)
    second = run("generate", "path", "--vertices", 5, "-o", target)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert (second.returncode, second.stdout) == (4, "")
    assert quiet(second.stderr) == f"error: {target}: another process (process {process.pid}) is writing this store\n"
    assert names(tmp_path) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = os.geteuid() == 0 and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], capture_output=True
    )
    if not mounted or mounted.returncode:
        pytest.skip("cannot mount a small file system here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize("more", [[], ["--order", "hub"], ["--memory", "2MB"]])
def test_a_full_disk(small_disk: Path, more: list[str]) -> None:
    target = small_disk / "g.isthmus"
    ist.generate("path", target, vertices=10).close()
    before = snapshot(target)
    outcome = run("generate", "rmat", "--scale", 16, "-o", target, "--overwrite", *more)
    assert outcome.returncode == 4
    err = quiet(outcome.stderr)
    assert err.startswith("error: ")
    assert err.endswith("No space left on device\n")
    assert err.count("\n") == 1
    assert names(small_disk) == ["g.isthmus"]
    assert snapshot(target) == before


def test_a_read_only_disk(small_disk: Path) -> None:
    ist.generate("path", small_disk / "g.isthmus", vertices=10).close()
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    outcome = run("generate", "path", "--vertices", 3, "-o", small_disk / "new.isthmus")
    assert (outcome.returncode, quiet(outcome.stderr)) == (
        4,
        f"error: {small_disk}: cannot write here: Read-only file system\n",
    )
    assert run("verify", small_disk / "g.isthmus").returncode == 0


def test_a_store_truncated_under_a_reader_is_an_error_not_a_crash(tmp_path: Path) -> None:
    """Reads come back short; a mapping would die of SIGBUS."""
    ist.generate("rmat", tmp_path / "g.isthmus", scale=12).close()
    graph = ist.open(tmp_path / "g.isthmus")
    os.truncate(tmp_path / "g.isthmus" / "out.targets", 4096)
    with pytest.raises(ist.StoreError, match=r"out\.targets: ends at byte 4096"):
        graph.store.read("out.targets")
    outcome = run("info", tmp_path / "g.isthmus", "--json")
    assert outcome.returncode == 4
    assert outcome.stdout == ""


def test_machine_code_that_cannot_be_kept_is_no_error(tmp_path: Path) -> None:
    """A container may have no home; kernels then compile each time, and say so."""
    environment = {**os.environ, "HOME": "/dev/null"}
    for name in ("ISTHMUS_CACHE", "XDG_CACHE_HOME"):
        environment.pop(name, None)
    command = [*COMMAND, "generate", "path", "--vertices", "3", "-o", str(tmp_path / "g.isthmus"), "--json"]
    outcome = subprocess.run(command, text=True, capture_output=True, env=environment)
    assert (outcome.returncode, json.loads(outcome.stdout)["edges"]) == (0, 2)
    told = "/dev/null/.cache/isthmus/kernels cannot be used (Not a directory)"
    assert (
        outcome.stderr == f"note: compiling kernels (in every run: {told}; set ISTHMUS_CACHE to a folder of your own)\n"
    )


def test_exit_codes_are_those_of_the_errors(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("0 1\n1 two\n")
    (tmp_path / "names.txt").write_text("a b\n")
    target = tmp_path / "g.isthmus"
    cases = {
        ist.OptionError: ["generate", "path", "--vertices", 3, "-o", tmp_path / "g"],
        ist.GraphFormatError: ["ingest", tmp_path / "bad.txt", "-o", target],
        ist.StoreError: ["info", target],
        ist.BudgetError: ["ingest", tmp_path / "names.txt", "--ids", "string", "--memory", "1MB", "-o", target],
    }
    for kind, command in cases.items():
        assert run(*command).returncode == kind.exit_code
    assert json.loads(run("generate", "path", "--vertices", 3, "-o", target, "--json").stdout)["edges"] == 2


def test_an_input_that_ends_early_is_not_taken_for_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Typer makes Ctrl-D at a prompt of every EOFError; a damaged file raises one too."""

    def torn(path: Path) -> None:
        raise EOFError("Ran out of input")

    monkeypatch.setattr("isthmus.graph.graph.open_graph", torn)
    monkeypatch.setattr(sys, "argv", ["isthmus", "run", "bfs", str(tmp_path), "--source", "0"])
    with pytest.raises(EOFError, match="Ran out of input"):
        main()


STARTING = """
import os, signal, sys, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also if the tests were started by nohup
from isthmus.cli import signals
signals.leave_at_once()
os.kill(os.getpid(), getattr(signal, sys.argv[1]))
time.sleep(30)
"""


@pytest.mark.parametrize(
    ("name", "message"), [("SIGINT", "error: interrupted; nothing was changed\n"), ("SIGTERM", ""), ("SIGHUP", "")]
)
def test_a_signal_while_the_command_starts(name: str, message: str) -> None:
    outcome = subprocess.run([sys.executable, "-c", STARTING, name], text=True, capture_output=True)
    assert (outcome.returncode, outcome.stderr) == (128 + getattr(signal, name), message)


def test_signals_are_handled_before_the_slow_imports() -> None:
    code = "import sys, isthmus.cli.start; print(sorted({'typer', 'rich', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], text=True, capture_output=True).stdout == "[]\n"


STUCK = """
import os, signal, time
from isthmus.cli import signals
signals.listen()
while True:
    try:
        print("ready", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        pass  # as a compiler drops it
"""


def test_a_command_that_does_not_end_after_a_signal_is_ended() -> None:
    process = subprocess.Popen([sys.executable, "-c", STUCK], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)  # it would sleep for a minute
    assert (process.returncode, err) == (130, "error: interrupted; the next command removes the temporary files\n")


CUT_OFF = """
import os, signal
from isthmus.cli import signals
signals.listen()

class Buffer:
    def __init__(self, signalled):
        if signalled:
            os.kill(os.getpid(), signal.SIGINT)
        self.pointer = 0

    def __del__(self):
        self.pointer + 1
        raise ValueError("a fault of its own")

Buffer(signalled=False)
try:
    Buffer(signalled=True)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_objects_that_a_signal_cut_off_print_nothing() -> None:
    """Deleting a half-made object fails, as it does for strings of the compiler; a fault without a signal is shown."""
    outcome = subprocess.run([sys.executable, "-c", CUT_OFF], text=True, capture_output=True)
    assert outcome.stdout == "interrupted\n"
    assert outcome.stderr.count("a fault of its own") == 1 and "has no attribute" not in outcome.stderr
