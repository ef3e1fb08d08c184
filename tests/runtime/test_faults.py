"""Things that go wrong in the middle of a run: a clear error, soon, no wrong answer, nothing left behind.

Tests `runtime/loop.py`, `runtime/executor/executor.py`, `devices/worker.py` and `runtime/results/result.py`
with the links that they read by.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import sides
from tests.cli.outcome import PATIENT, slowness

import isthmus as ist
from isthmus.errors import StoreError
from isthmus.link.ssd import SsdLink

COMMAND = [sys.executable, "-m", "isthmus.cli.main"]
POLICIES = ["filter", "subway", "emogi", "unified", "auto"]


@pytest.fixture
def own(tmp_path: Path) -> Any:
    """A graph of this test's own, to be damaged."""
    with ist.generate("rmat", tmp_path / "g.isthmus", scale=15, weights="1:99") as graph:
        yield graph


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "g.isthmus"
    ist.generate("rmat", path, scale=18).close()  # a signal that comes while code is loaded waits for an iteration
    for policy in ("filter", "emogi", "subway", "unified", "auto"):  # compiling cannot be interrupted
        command = [*COMMAND, "run", "pagerank", path, "--max-iter", "1", "--memory", "5%", "--policy", policy]
        subprocess.run(command, check=True, capture_output=True)
    return path


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No thread and no open file outlives a run, however it ended; and a run that hangs ends the tests with a
    traceback.
    """
    faulthandler.dump_traceback_later(115, exit=True)
    gc.collect()  # what other tests have forgotten
    threads, files = sides.our_threads(), set(os.listdir("/proc/self/fd"))
    yield
    faulthandler.cancel_dump_traceback_later()
    gc.collect()  # the traceback of an error holds what its frames do
    end = time.monotonic() + 20
    while not sides.our_threads() <= threads and time.monotonic() < end:
        time.sleep(0.01)
    assert sides.our_threads() <= threads
    assert [name for name in links(Path("/proc/self/fd"), files) if "g.isthmus" in name] == []


def damage(path: Path, block: int) -> None:
    """Turn one bit around."""
    with path.open("r+b") as file:
        file.seek(block * 4096 + 100)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 4]))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_file_truncated_during_the_run(own: Any, policy: str, threads: int) -> None:
    """A search of the graph fails at the next iteration, from whichever thread reads."""

    def cut(iteration: Any) -> None:
        os.truncate(own.path / "out.targets", 4096 * 3)

    with pytest.raises(StoreError, match=r"g\.isthmus/out\.targets: ends at byte \d+, .* the file was truncated"):
        ist.pagerank(own, memory="10%", policy=policy, threads=threads, watch=cut)
    own.close()


@pytest.mark.parametrize("policy", [*POLICIES, "resident"])
def test_a_block_whose_checksum_is_wrong(own: Any, policy: str) -> None:
    damage(own.path / "out.weights", 11)
    how: dict[str, Any] = {} if policy == "resident" else {"memory": "10%", "policy": policy}
    with pytest.raises(
        StoreError, match=rf"g\.isthmus/out\.weights: block 11 at byte {11 * 4096}: the checksum does not match"
    ):
        ist.pagerank(own, weight=True, verify=True, **how)
    assert ist.bfs(own, 0, verify=True, **how).values.size == own.vertices, "a run that does not read that file goes on"
    own.close()


def test_offsets_are_verified_too(own: Any) -> None:
    offsets = own.store.read("out.offsets")
    vertex = int(np.flatnonzero(np.diff(offsets) > 4)[0]) + 1
    with (own.path / "out.offsets").open("r+b") as file:
        file.seek(8 * vertex)
        file.write(int(offsets[vertex] - 1).to_bytes(8, "little"))  # still ascending: an edge changes hands
    with pytest.raises(StoreError, match=r"out\.offsets: block \d+"):
        ist.bfs(own, 0, verify=True)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("threads", [1, 5])
def test_an_error_in_the_reader(own: Any, policy: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, turns = SsdLink.move, iter(range(10**9))

    def failing(self: Any, *details: Any) -> int:
        if next(turns) == 3:
            raise StoreError("out.targets: cannot read at byte 4096: Input/output error")
        return plain(self, *details)

    monkeypatch.setattr(SsdLink, "move", failing)
    start = time.monotonic()
    with pytest.raises(StoreError, match="cannot read at byte 4096: Input/output error"):
        ist.pagerank(own, memory="5%", policy=policy, threads=threads)
    assert time.monotonic() - start < 60
    own.close()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("threads", "at"), [(1, 0), (2, 5), (5, 0)])
def test_an_error_in_a_kernel(
    own: Any, policy: str, threads: int, at: int, monkeypatch: pytest.MonkeyPatch, sized: Any
) -> None:
    """Whichever member of the team it happens to, with reads under way."""
    from isthmus.devices import worker

    plain, turns = worker.Worker.pieces, iter(range(10**9))
    sized(piece=1 << 12)

    def pieces(self: Any, *details: Any) -> list[Any]:
        def wrap(piece: Any) -> Any:
            def work(member: int) -> None:
                if next(turns) >= at:
                    raise ZeroDivisionError("in a kernel")
                piece(member)

            return work

        return [wrap(piece) for piece in plain(self, *details)]

    monkeypatch.setattr(worker.Worker, "pieces", pieces)
    with pytest.raises(ZeroDivisionError, match="in a kernel"):
        ist.pagerank(own, memory="5%", policy=policy, threads=threads)
    own.close()


@pytest.mark.parametrize("policy", POLICIES)
def test_an_error_in_whoever_watches(own: Any, policy: str) -> None:
    def watch(iteration: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ist.pagerank(own, memory="5%", policy=policy, watch=watch)
    assert ist.bfs(own, 0, memory="5%", policy=policy).values[0] == 0, "the graph is as usable as before"
    own.close()


def test_runs_do_not_pile_up_threads_or_files(own: Any) -> None:
    gc.collect()  # files that other tests have forgotten
    files, threads = len(os.listdir("/proc/self/fd")), sides.our_threads()
    for _ in range(20):
        ist.bfs(own, 0, memory="5%", policy="filter", threads=3)
    assert len(os.listdir("/proc/self/fd")) == files
    assert sides.our_threads() <= threads
    own.close()


@pytest.mark.parametrize(
    ("policy", "delay"),
    [
        *((policy, delay) for policy in ("filter", "emogi") for delay in (0.0, 0.03, 0.6)),
        ("subway", 0.4),
        ("unified", 0.4),
        ("auto", 0.4),
    ],
)
def test_ctrl_c(large: Path, tmp_path: Path, policy: str, delay: float) -> None:
    """Exit code 130, one line, no result, no temporary file."""
    code, out, err, _ = interrupted(large, tmp_path, policy, delay)
    assert (code in (130, -signal.SIGINT), out) == (True, "")  # a shell shows both as 130
    assert re.sub(r"note: .*\n", "", err) == "error: interrupted; nothing was changed\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.alone
def test_ctrl_c_ends_a_run_soon(large: Path, tmp_path: Path) -> None:
    assert interrupted(large, tmp_path, "filter", 0.6)[-1] < 2 * slowness()


def interrupted(large: Path, tmp_path: Path, policy: str, delay: float) -> tuple[int, str, str, float]:
    """How a run ends after Ctrl-C: exit code, output, messages, seconds."""
    output = tmp_path / "out.parquet"
    endless = ["--tol", "1e-300", "--max-iter", "100000"]
    command = [*PATIENT, "run", "pagerank", large, *endless, "--memory", "5%", "--policy", policy, "-o", output]
    process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    reading = Path(f"/proc/{process.pid}/fd")
    end = time.monotonic() + 60
    # The store's own, and the link's.
    while sum("in.targets" in link or "out.targets" in link for link in links(reading)) < 2:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)
    time.sleep(delay)
    assert process.poll() is None, "it was too quick to be interrupted"
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=40)
    return process.returncode, out, err, time.monotonic() - sent


def test_ctrl_c_says_where_the_run_goes_on(large: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    endless = ["--tol", "1e-300", "--max-iter", "100000"]
    command = [
        *PATIENT,
        "run",
        "pagerank",
        large,
        *endless,
        "--memory",
        "5%",
        "--checkpoint",
        folder,
        "--checkpoint-every",
        "0",
    ]
    process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    end = time.monotonic() + 60
    while not list(folder.glob("pass-*")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=40)
    (kept,) = folder.glob("pass-*")
    assert process.returncode == 130
    assert re.sub(r"note: .*\n", "", err) == f"error: interrupted; run the same command again to resume from {kept}\n"


def links(folder: Path, known: set[str] = frozenset()) -> list[str]:  # type: ignore[assignment]
    """Where the links of a folder lead, but for those of known names."""
    found = []
    for entry in folder.iterdir():
        with contextlib.suppress(OSError):
            if entry.name not in known:
                found.append(os.readlink(entry))
    return found


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = os.geteuid() == 0 and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", folder], capture_output=True
    )
    if not mounted or mounted.returncode:
        pytest.skip("cannot mount a small file system here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize("ending", ["parquet", "csv", "npy"])
def test_a_full_disk_for_the_result(own: Any, small_disk: Path, ending: str) -> None:
    target = small_disk / f"out.{ending}"
    target.write_text("before")
    command = [*COMMAND, "run", "pagerank", own.path, "--tol", "0.1", "-o", target]
    outcome = subprocess.run(command, text=True, capture_output=True, timeout=100)
    assert outcome.returncode == 4
    last = outcome.stderr.splitlines()[-1]
    assert last.startswith(f"error: {target}: cannot write the result: ")
    assert "o space left on device" in last
    assert [entry.name for entry in small_disk.iterdir()] == [target.name]
    assert target.read_text() == "before"
    own.close()
