"""`isthmus calibrate` as a person or a script meets it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.caches import quiet, without_programs
from tests.cli.in_process import caller
from tests.cli.outcome import PATIENT

import isthmus as ist
from isthmus.link.link import Profile
from isthmus.link.profile import measurement
from isthmus.link.profile.calibration import disk_of, recall, remember

# Small files, short portions.
LITTLE = {"least_trial": 1 << 20, "most_trial": 3 << 20, "trial_buffer": 4 << 20, "trial_seconds": 0.001}
KNOWN = Profile("disk at /far", 3e9, 1e5, 4096, 128, True, ((1, 1e4), (8, 2e4), (32, 5e4), (128, 1e5)), 6e9)
PROFILE = {"name", "bandwidth", "request_rate", "block", "depth", "measured", "rates", "compaction", "break_even_gap"}


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, sized: Any, tmp_path: Path) -> Any:
    """Run `isthmus calibrate` in this process, in an empty folder, with a memory of its own: (exit code, out, err)."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("ISTHMUS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(measurement.Samples, "steady", True)
    sized(**LITTLE)
    return caller(capsys, monkeypatch, "calibrate")


def test_the_table(call: Any, tmp_path: Path) -> None:
    code, out, err = call()
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("disk at /")
    assert lines[1].split() == ["median", "lowest", "highest"]
    assert [line.split("  ")[0] for line in lines[2:8]] == [
        "bulk reads",
        "4 KB reads, 1 in flight",
        "4 KB reads, 8 in flight",
        "4 KB reads, 32 in flight",
        "4 KB reads, 128 in flight",
        "lists packed together",
    ]
    assert lines[3].count("/s") == 3
    assert lines[9] == "read        a test file in ., 3.15 MB"
    assert lines[10].startswith("break-even  a request costs as much as ")
    assert lines[12] == f"remembered  in {tmp_path / 'cache' / 'links.json'}"
    assert all(line == line.rstrip() and len(line) <= 80 for line in lines[:9])
    assert list(Path().iterdir()) == []
    again = call()[1].splitlines()
    assert again[1].split() == ["median", "lowest", "highest", "just", "now"]
    assert again[3].count("/s") == 4


def test_what_is_printed_is_remembered(call: Any) -> None:
    found = json.loads(call("--json")[1])
    known = recall(disk_of(Path()))
    assert known is not None
    assert found["bandwidth"] == known.profile.bandwidth
    assert found["rates"] == {str(depth): rate for depth, rate in known.profile.rates}
    assert found["compaction"] == known.profile.compaction


def test_the_shape_of_json(call: Any) -> None:
    code, out, err = call(".", "--json")
    assert (code, err, out.count("\n")) == (0, "", 1)
    found = json.loads(out)
    assert set(found) == PROFILE | {"path", "source", "bytes", "rounds", "steady", "seconds", "remembered", "before"}
    assert set(found["rates"]) == {"1", "8", "32", "128"}
    assert found["request_rate"] == found["rates"]["128"]
    assert (found["path"], found["bytes"], found["rounds"], found["measured"]) == (".", 3 << 20, 5, True)
    assert (found["remembered"], found["before"]) == (True, None)
    before = json.loads(call("--json")[1])["before"]
    assert set(before) == PROFILE | {"age_seconds"}
    assert before["bandwidth"] == found["bandwidth"]
    assert 0 <= before["age_seconds"] < 60


def test_a_store_is_read(call: Any) -> None:
    ist.generate("rmat", "g.isthmus", scale=15).close()
    assert json.loads(call("g.isthmus", "--json")[1])["source"] == "section out.targets of g.isthmus"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-50, "just now"), (59, "just now"), (61, "1 minute ago"), (7300, "2 hours ago"), (86400 * 3 + 5, "3 days ago")],
)
def test_showing_what_is_remembered(call: Any, monkeypatch: pytest.MonkeyPatch, seconds: float, text: str) -> None:
    assert call("--show") == (0, "nothing is remembered of the disk of .\n", "")
    assert json.loads(call("--show", "--json")[1]) == {"path": ".", "remembered": None}
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - seconds)
    remember(disk_of(Path()), KNOWN)
    monkeypatch.setattr(time, "time", lambda: now)
    assert call("--show")[1].splitlines() == [
        "disk at /far",
        "bulk reads                 3 GB/s",
        "4 KB reads, 1 in flight    10,000/s",
        "4 KB reads, 8 in flight    20,000/s",
        "4 KB reads, 32 in flight   50,000/s",
        "4 KB reads, 128 in flight  100,000/s",
        "lists packed together      6 GB/s",
        f"measured                   {text}",
    ]
    shown = json.loads(call("--show", "--json")[1])["remembered"]
    assert shown == {
        **asdict(KNOWN),
        "rates": {"1": 1e4, "8": 2e4, "32": 5e4, "128": 1e5},
        "break_even_gap": 30_000,
        "age_seconds": pytest.approx(max(0, seconds)),
    }


def test_showing_a_memory_of_the_first_version(call: Any, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    members = ("name", "bandwidth", "request_rate", "block", "depth", "measured")
    old = {name: value for name, value in asdict(KNOWN).items() if name in members}
    (tmp_path / "cache" / "links.json").write_text(json.dumps({str(os.stat(tmp_path).st_dev): old}))
    assert call("--show")[1].splitlines() == [
        "disk at /far",
        "bulk reads                 3 GB/s",
        "4 KB reads, 128 in flight  100,000/s",
        "measured                   some time ago",
    ]
    lines = call()[1].splitlines()
    assert lines[1].split() == ["median", "lowest", "highest", "some", "time", "ago"]
    assert [line.split()[-1] for line in lines[2:8]] == ["GB/s", "-", "-", "-", "100,000/s", "-"]
    assert len(recall(disk_of(tmp_path)).profile.rates) == 4


def test_forgetting(call: Any) -> None:
    assert call("--forget") == (0, "nothing is remembered of the disk of .\n", "")
    remember(disk_of(Path()), KNOWN)
    assert call("--forget") == (0, "forgotten: disk at /far, measured just now\n", "")
    assert recall(disk_of(Path())) is None
    remember(disk_of(Path()), KNOWN)
    assert json.loads(call("--forget", "--json")[1]) == {"path": ".", "forgotten": True}
    assert json.loads(call("--forget", "--json")[1]) == {"path": ".", "forgotten": False}
    assert call("--forget", "--show") == (2, "", "error: expected --show or --forget, not both\n")


@pytest.mark.parametrize("more", [[], ["--show"], ["--forget"]])
def test_bad_paths(call: Any, more: list[str]) -> None:
    Path("file").write_text("")
    assert call("nowhere", *more) == (2, "", "error: nowhere: No such file or directory\n")
    assert call("file", *more) == (2, "", "error: file: expected a folder or a store, and this is a file\n")


def test_a_damaged_store(call: Any) -> None:
    ist.generate("path", "g.isthmus", vertices=9).close()
    Path("g.isthmus/manifest.json").write_text("{")
    code, out, err = call("g.isthmus")
    assert (code, out) == (4, "")
    assert err.startswith("error: g.isthmus/manifest.json: ")


def test_a_memory_that_cannot_be_kept(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISTHMUS_CACHE", "/dev/null")
    code, out, err = call()
    assert code == 0
    assert "remembered" not in out
    assert (
        err == "note: not remembered: /dev/null/links.json cannot be written; set ISTHMUS_CACHE to a folder that can\n"
    )
    assert json.loads(call("--json")[1])["remembered"] is False


@pytest.fixture
def mounted(tmp_path: Path) -> Any:
    """Mounts small file systems; they go away with the test."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done: list[Path] = []

    def mount(options: str) -> Path:
        if (
            os.geteuid() != 0
            or subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True).returncode
        ):
            pytest.skip("cannot mount a small file system here")
        done.append(folder)
        return folder

    yield mount
    for place in done:
        subprocess.run(["umount", "-l", place], check=True)


def test_a_full_disk(call: Any, mounted: Any) -> None:
    folder = mounted("size=1m")
    assert call(folder) == (
        4,
        "",
        f"error: {folder}: measuring needs 2.1 MB of free space for a test file; 1.05 MB are free\n",
    )
    assert list(folder.iterdir()) == []


def test_a_disk_that_promises_more_than_it_has(call: Any, mounted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = mounted("size=2m")
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1 << 30))
    code, out, err = call(folder)
    assert (code, out) == (4, "")
    assert err == f"error: scratch file in {folder}: cannot write at byte 2097152: No space left on device\n"
    assert list(folder.iterdir()) == []


def test_a_read_only_folder(call: Any, mounted: Any) -> None:
    folder = mounted("ro")
    assert call(folder) == (4, "", f"error: {folder}: cannot create a scratch file: Read-only file system\n")


def test_interrupted(tmp_path: Path) -> None:
    """The real command, while its test file is there."""
    (tmp_path / "here").mkdir()
    environment = {**os.environ, "ISTHMUS_CACHE": str(without_programs(tmp_path / "cache"))}
    command = [*PATIENT, "calibrate", tmp_path / "here"]
    process = subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    end = time.monotonic() + 60
    while not any("scratch-" in target and "deleted" in target for target in open_files(process.pid)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.005)
    assert list((tmp_path / "here").iterdir()) == [], "the test file has no name"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=50)
    assert (process.returncode, out, quiet(err)) == (130, "", "error: interrupted; nothing was changed\n")
    assert not (tmp_path / "cache" / "links.json").exists()


def open_files(pid: int) -> list[str]:
    found = []
    for file in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(os.readlink(file))
        except OSError:
            continue
    return found


LITTLE_COMMAND = f"""
from isthmus import sizes
from isthmus.cli.main import main
with sizes.using(**{LITTLE}):
    main()
"""


def test_two_processes_at_once(tmp_path: Path) -> None:
    environment = {**os.environ, "ISTHMUS_CACHE": str(without_programs(tmp_path / "cache"))}
    command = [sys.executable, "-c", LITTLE_COMMAND, "calibrate", "--json", str(tmp_path)]
    both = [
        subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    told = [process.communicate(timeout=100) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    found = [json.loads(out) for out, _ in told]
    kept = json.loads((tmp_path / "cache" / "links.json").read_text())["disks"]
    assert len(kept) == 1
    assert next(iter(kept.values()))["bandwidth"] in [one["bandwidth"] for one in found]
    assert [entry.name for entry in tmp_path.iterdir()] == ["cache"]
