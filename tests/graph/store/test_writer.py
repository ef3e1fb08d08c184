"""Writing a store: whatever goes wrong, the target is as it was and nothing lies beside it."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import disks

import isthmus as ist
from isthmus.errors import BudgetError, OptionError, StoreError
from isthmus.graph.locks.holder import Holder
from isthmus.graph.store import files, writer
from isthmus.graph.store.manifest import Manifest
from isthmus.graph.store.sealed_json import digest
from isthmus.graph.store.store import Store
from isthmus.graph.store.verify import verify
from isthmus.graph.store.writer import MemoryWriter, StoreWriter
from isthmus.memory import Budget


def write(path: Path, arcs: int, value: int = 0, overwrite: bool = False) -> Store:
    """A store of one vertex with `arcs` self loops; `value` sets it apart from others of its size."""
    with StoreWriter(path, overwrite) as out:
        fill(out, arcs)
        loops = {"self_loops": arcs, "parallel": True, "origin": {"value": value}}
        return out.commit(Manifest(1, arcs, arcs, True, True, "dense", **loops))  # type: ignore[arg-type]


def fill(out: StoreWriter, arcs: int) -> None:
    out.section("out.offsets", np.int64, 2)
    out.section("out.targets", np.uint32, arcs)
    out.section("out.weights", np.int32, arcs)
    out.append("out.offsets", np.array([0, arcs]))
    for at in range(0, arcs, 100_000):
        out.append("out.targets", np.zeros(min(100_000, arcs - at), np.uint32))
        out.append("out.weights", np.arange(at, min(at + 100_000, arcs)))


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def snapshot(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()}


@pytest.mark.parametrize("arcs", [0, 1, 1024, 1025, 1_500_000])
def test_what_is_appended_is_what_is_read(tmp_path: Path, arcs: int) -> None:
    store = write(tmp_path / "g.isthmus", arcs)
    assert store.path == tmp_path / "g.isthmus"
    assert np.array_equal(store.read("out.weights"), np.arange(arcs))
    assert verify(tmp_path / "g.isthmus").ok
    assert names(tmp_path) == ["g.isthmus"]
    expected = {"manifest.json", "out.offsets", "out.targets", "out.weights"}
    assert {name.removesuffix(".xxh3") for name in names(tmp_path / "g.isthmus")} == expected


def test_values_are_converted_to_the_section_type(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "g.isthmus") as out:
        out.section("x", np.uint32, 4)
        out.append("x", np.array([1, 2, 3, 4, 5, 6])[::2])  # neither contiguous nor of the type
        out.append("x", np.empty(0))
        assert out._sections["x"].count == 3


def test_a_section_begun_again_starts_afresh(tmp_path: Path) -> None:
    """Ingest does so when two string ids share a hash."""
    with StoreWriter(tmp_path / "g.isthmus") as out:
        out.section("out.targets", np.uint32, 0)
        out.append("out.targets", np.arange(3_000_000))
        fill(out, 5)
        store = out.commit(Manifest(1, 5, 5, True, True, "dense", self_loops=5, parallel=True))
    assert store.read("out.targets").tolist() == [0] * 5
    assert verify(tmp_path / "g.isthmus").ok


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit, MemoryError])
@pytest.mark.parametrize("exists", [False, True])
def test_an_exception_in_the_middle(tmp_path: Path, error: type[BaseException], exists: bool) -> None:
    target = tmp_path / "g.isthmus"
    if exists:
        write(target, 10)
    before = snapshot(target) if exists else None
    with pytest.raises(error), StoreWriter(target, overwrite=True) as out:
        fill(out, 2_000_000)
        raise error
    assert names(tmp_path) == (["g.isthmus"] if exists else [])
    assert not exists or snapshot(target) == before


@pytest.mark.parametrize("failing", ["pwrite", "fsync", "rename", "mkdir", "open"])
def test_a_system_call_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    """Whichever fails first, fails as a StoreError and leaves nothing."""

    def fail(*args: Any, **more: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, failing, fail)
        with pytest.raises(StoreError, match="No space left on device"):
            write(tmp_path / "g.isthmus", 10)
    assert names(tmp_path) == []
    write(tmp_path / "g.isthmus", 10)


# The first two are of the name in the lock file, for which there need be no room.
@pytest.mark.parametrize("call", range(3, 14))
def test_a_full_disk_at_any_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int) -> None:
    """Every one of the writes and syncs of an overwrite, in turn, finds the disk full."""
    target = tmp_path / "g.isthmus"
    write(target, 10, value=1)
    before = snapshot(target)
    calls = 0

    def counting(really: Any) -> Any:
        def maybe(*args: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == call:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return really(*args)

        return maybe

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", counting(os.pwrite))
        patched.setattr(os, "fsync", counting(os.fsync))
        with pytest.raises(StoreError, match="No space left on device"):
            write(target, 20, value=2, overwrite=True)
    assert names(tmp_path) == ["g.isthmus"]
    assert snapshot(target) == before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with disks.mounted(tmp_path / "disk", "size=3m") as folder:
        yield folder


def test_a_disk_that_really_is_full(small_disk: Path) -> None:
    target = small_disk / "g.isthmus"
    write(target, 10)
    before = snapshot(target)
    with pytest.raises(StoreError, match=r"cannot (write at byte \d+|write): No space left on device"):
        write(target, 2_000_000, overwrite=True)
    assert names(small_disk) == ["g.isthmus"]
    assert snapshot(target) == before
    assert write(target, 1000, overwrite=True).manifest.arcs == 1000


def test_a_read_only_folder(small_disk: Path) -> None:
    disks.make_read_only(small_disk)
    with pytest.raises(StoreError, match="disk: cannot write here: Read-only file system"):
        write(small_disk / "g.isthmus", 10)


def test_names_and_folders(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"a store's name ends in \.isthmus: .*graph does not"):
        StoreWriter(tmp_path / "graph")
    with pytest.raises(StoreError, match="nowhere: no such folder"):
        StoreWriter(tmp_path / "nowhere" / "g.isthmus")
    assert names(tmp_path) == []


def test_a_folder_that_cannot_be_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Path) -> bool:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(Path, "is_dir", fails)
    with pytest.raises(StoreError, match="cannot write here: Input/output error"):
        StoreWriter(tmp_path / "g.isthmus")


@pytest.mark.parametrize("name", ["g.isthmus", "[a]*?.isthmus", "with space.isthmus", "-o.isthmus", "ü\n.isthmus"])
def test_odd_names(tmp_path: Path, name: str) -> None:
    work = tmp_path / f".{name}.tmp-1"
    (work / "store").mkdir(parents=True)
    write(tmp_path / name, 10)
    assert names(tmp_path) == [name]


def test_work_folders_of_other_stores_are_left_alone(tmp_path: Path) -> None:
    other = tmp_path / ".gg.isthmus.tmp-1"
    other.mkdir()
    write(tmp_path / "g.isthmus", 10)
    assert names(tmp_path) == [other.name, "g.isthmus"]


def test_refuses_what_exists(tmp_path: Path) -> None:
    write(tmp_path / "g.isthmus", 10)
    with pytest.raises(StoreError, match=r"g\.isthmus: exists already; give overwrite=True"):
        StoreWriter(tmp_path / "g.isthmus")
    assert names(tmp_path) == ["g.isthmus"]


@pytest.mark.parametrize("kind", ["file", "folder", "broken link"])
def test_never_replaces_what_is_no_store(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "g.isthmus"
    if kind == "file":
        target.write_text("precious")
    elif kind == "folder":
        target.mkdir()
        (target / "precious").touch()
    else:
        target.symlink_to(tmp_path / "nowhere" / "g.isthmus")
    with pytest.raises(StoreError, match=r"exists and is not an Isthmus store; not replacing it|no such folder"):
        write(target, 10, overwrite=True)
    assert names(tmp_path) == ["g.isthmus"]


def test_a_link_to_a_store_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    write(tmp_path / "disk" / "real.isthmus", 10)
    (tmp_path / "g.isthmus").symlink_to(tmp_path / "disk" / "real.isthmus")
    write(tmp_path / "g.isthmus", 20, overwrite=True)
    assert (tmp_path / "g.isthmus").is_symlink()
    assert Store(tmp_path / "disk" / "real.isthmus").manifest.arcs == 20
    assert (names(tmp_path), names(tmp_path / "disk")) == (["disk", "g.isthmus"], ["real.isthmus"])


def test_an_old_reader_keeps_its_graph(tmp_path: Path) -> None:
    old = write(tmp_path / "g.isthmus", 5000, value=1)
    wanted = old.read("out.weights")
    write(tmp_path / "g.isthmus", 7, value=2, overwrite=True)
    assert np.array_equal(old.read("out.weights"), wanted)
    assert Store(tmp_path / "g.isthmus").manifest.arcs == 7


def test_readers_never_see_a_gap_or_a_mixture(tmp_path: Path) -> None:
    """A reader opens again and again while the store is replaced: always one of the stores, whole."""
    target = tmp_path / "g.isthmus"
    write(target, 1000)
    done, seen, failures = threading.Event(), set(), []

    def read() -> None:
        while not done.is_set():
            try:
                store = Store(target)
                for name, section in store.manifest.sections.items():
                    assert digest(store.read_checksums(name, 0, section.blocks)) == section.checksums
                seen.add(store.manifest.origin["value"])
                store.close()
            except BaseException as error:
                failures.append(error)
                return

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    value, end = 0, time.monotonic() + 60
    while not failures and (value < 150 or len(seen) <= 10) and time.monotonic() < end:
        write(target, 1000 + value % 3, value, overwrite=True).close()
        value += 1
    done.set()
    for reader in readers:
        reader.join()
    assert failures == []
    assert len(seen) > 10


def test_exchange_in_two_steps_where_one_is_not_to_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "g.isthmus", 10)
    monkeypatch.setattr(ctypes, "CDLL", lambda *args, **more: object())
    write(tmp_path / "g.isthmus", 20, overwrite=True)
    assert Store(tmp_path / "g.isthmus").manifest.arcs == 20
    assert names(tmp_path) == ["g.isthmus"]


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt()])
def test_the_second_of_two_steps_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    target = tmp_path / "g.isthmus"
    write(target, 10)
    before = snapshot(target)
    rename = os.rename

    def failing(source: Path, goal: Path) -> None:
        if source.name == "store":
            raise error
        rename(source, goal)

    monkeypatch.setattr(ctypes, "CDLL", lambda *args, **more: object())
    monkeypatch.setattr(os, "rename", failing)
    with pytest.raises((StoreError, KeyboardInterrupt)):
        write(target, 20, overwrite=True)
    assert names(tmp_path) == ["g.isthmus"]
    assert snapshot(target) == before


def test_killed_between_the_two_steps(tmp_path: Path) -> None:
    """The next writer puts the old store back, also if it then fails itself."""
    write(tmp_path / "g.isthmus", 10)
    before = snapshot(tmp_path / "g.isthmus")
    work = tmp_path / ".g.isthmus.tmp-1"
    work.mkdir()
    (tmp_path / "g.isthmus").rename(work / writer.ASIDE)
    with pytest.raises(StoreError, match="exists already"):
        StoreWriter(tmp_path / "g.isthmus")
    assert names(tmp_path) == ["g.isthmus"]
    assert snapshot(tmp_path / "g.isthmus") == before


def test_without_direct_io(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "DIRECT", 0)
    write(tmp_path / "g.isthmus", 300_000)
    assert verify(tmp_path / "g.isthmus").ok


def start(code: str, *arguments: Any) -> subprocess.Popen[str]:
    """A process that runs `code` and says 'ready' when it has come to the point."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


WRITING = """
    import sys, numpy as np
    from isthmus.graph.store.writer import StoreWriter
    with StoreWriter(sys.argv[1], overwrite=True) as out:
        out.section("out.targets", np.uint32, 0)
        out.append("out.targets", np.zeros(3_000_000, np.uint32))
        print("ready", flush=True)
        sys.stdin.read()
"""


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    target = tmp_path / "g.isthmus"
    write(target, 10)
    process = start(WRITING, target)
    with pytest.raises(
        StoreError, match=rf"g\.isthmus: another process \(process {process.pid}\) is writing this store"
    ):
        write(target, 20, overwrite=True)
    assert Store(target).manifest.arcs == 10
    write(tmp_path / "other.isthmus", 10)
    process.communicate("")
    assert process.returncode == 0
    write(target, 20, overwrite=True)
    assert names(tmp_path) == ["g.isthmus", "other.isthmus"]


def test_one_writer_at_a_time_in_one_process(tmp_path: Path) -> None:
    with (
        StoreWriter(tmp_path / "g.isthmus"),
        pytest.raises(StoreError, match="this process is writing this store already"),
    ):
        StoreWriter(tmp_path / "g.isthmus")
    write(tmp_path / "g.isthmus", 10)


def test_a_killed_writer_leaves_the_target_and_the_next_one_clears_up(tmp_path: Path) -> None:
    target = tmp_path / "g.isthmus"
    write(target, 10)
    before = snapshot(target)
    process = start(WRITING, target)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert snapshot(target) == before
    assert len(names(tmp_path)) == 3  # its lock file, its work folder
    write(target, 20, overwrite=True)
    assert names(tmp_path) == ["g.isthmus"]


ORDERING = """
    import sys, isthmus
    class Stop:
        stages = 0
        def stage(self, name, total, unit):
            self.stages += name == "reading"
            if self.stages == 2:  # in natural order it is complete; now into hub order
                print("ready", flush=True)
                sys.stdin.read()
        def advance(self, amount): pass
    isthmus.generate("rmat", sys.argv[1], scale=8, order="hub", progress=Stop())
"""


def test_killed_while_putting_into_hub_order(tmp_path: Path) -> None:
    process = start(ORDERING, tmp_path / "g.isthmus")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert all(name.startswith(".g.isthmus.") for name in names(tmp_path))
    ist.generate("path", tmp_path / "g.isthmus", vertices=3).close()
    assert names(tmp_path) == ["g.isthmus"]


def test_a_lock_file_that_was_left_is_no_lock(tmp_path: Path) -> None:
    (tmp_path / ".g.isthmus.lock").touch()
    write(tmp_path / "g.isthmus", 10)
    assert names(tmp_path) == ["g.isthmus"]


def test_writers_take_turns_without_losing_the_lock(tmp_path: Path) -> None:
    """The lock file is removed with the lock; nobody may hold a lock on a removed file."""
    held, problems = [0], []

    def work() -> None:
        for _ in range(200):
            with contextlib.suppress(StoreError):
                lock = writer.WriterLock(tmp_path / "g.isthmus")
                held[0] += 1
                if held[0] != 1:
                    problems.append(held[0])
                held[0] -= 1
                lock.release()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert names(tmp_path) == []


def test_a_writer_that_was_replaced_touches_nothing_of_its_successor(tmp_path: Path) -> None:
    """On another machine, and of the same process number."""
    target = tmp_path / "g.isthmus"
    fenced = StoreWriter(target)
    os.rename(tmp_path / ".g.isthmus.lock", tmp_path / "its lock")  # flock of another machine is not seen here
    write(target, 10)
    before = snapshot(target)
    successor = StoreWriter(target, overwrite=True)
    assert successor.folder is not None and successor.folder.is_dir() and successor.folder != fenced.folder
    with pytest.raises(StoreError, match=r"has taken over, or .* was removed"):
        fenced._renew_lock(now=True)
    fenced.__exit__(None, None, None)
    assert successor.folder.is_dir() and (tmp_path / ".g.isthmus.lock").exists()
    successor.__exit__(None, None, None)
    assert snapshot(target) == before


def test_a_store_whose_lock_was_taken_over_is_not_put_into_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, really = tmp_path / "g.isthmus", writer.fsync_folder

    def late(folder: Path) -> None:
        really(folder)
        (tmp_path / ".g.isthmus.lock").write_bytes(Holder("otherhost", "1-2-3", "", 77).encode())

    monkeypatch.setattr(writer, "fsync_folder", late)
    with pytest.raises(StoreError, match=r"another process \(process 77 on the host otherhost\) has taken over"):
        write(target, 10)
    assert names(tmp_path) == [".g.isthmus.lock"]


def test_a_second_interrupt_while_a_writer_clears_up_leaves_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(folder: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt), StoreWriter(tmp_path / "g.isthmus"):
        patched.setattr(writer, "remove_folder", interrupted)
        raise KeyboardInterrupt
    write(tmp_path / "g.isthmus", 10)
    assert names(tmp_path) == ["g.isthmus"]


def test_in_memory_within_the_budget() -> None:
    out = MemoryWriter(Budget(1000))
    out.section("x", np.int64, 500)
    out.append("x", np.arange(100))
    with pytest.raises(BudgetError, match=r"does not fit the budget of 1 kB; ingest it into a store instead"):
        out.append("x", np.arange(100))


@pytest.mark.parametrize("in_one_step", [True, False])
@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt()])
def test_a_rename_that_cannot_be_synced_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_one_step: bool, exists: bool, error: BaseException
) -> None:
    """What reports failure has changed nothing."""
    target = tmp_path / "g.isthmus"
    if exists:
        write(target, 10)
    before = snapshot(target) if exists else {}

    def failing(folder: Path) -> None:
        assert folder == tmp_path
        raise error

    monkeypatch.setattr(files, "fsync_folder", failing)
    if not in_one_step:
        monkeypatch.setattr(ctypes, "CDLL", lambda *args, **more: object())
    with pytest.raises((StoreError, KeyboardInterrupt)):
        write(target, 20, overwrite=True)
    assert names(tmp_path) == (["g.isthmus"] if exists else [])
    assert not exists or snapshot(target) == before


def test_a_replaced_store_stays_until_the_next_writer_if_the_exchange_cannot_be_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "g.isthmus"
    write(target, 10)
    before = snapshot(target)

    def refused(one: Path, other: Path) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    def failing(folder: Path) -> None:
        monkeypatch.setattr(writer, "exchange", refused)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(files, "fsync_folder", failing)
    with pytest.raises(StoreError, match=r"the rename cannot be undone .*the new contents are there"):
        write(target, 20, overwrite=True)
    assert snapshot(target) != before
    [work] = [path for path in tmp_path.iterdir() if path != target]
    assert snapshot(work / "store") == before
    monkeypatch.undo()
    write(target, 30, overwrite=True)
    assert names(tmp_path) == ["g.isthmus"]


@pytest.mark.parametrize("name", [".g.isthmus.tmp-{}", ".g.isthmus.lock"])
def test_planted_links_are_not_followed(tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / name.format(os.getpid())).symlink_to(elsewhere if "tmp" in name else elsewhere / "lock")
    with contextlib.suppress(StoreError):
        write(tmp_path / "g.isthmus", 10)
    assert names(elsewhere) == []


def test_a_lock_file_that_cannot_be_removed_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is in place by then; the next writer removes the file."""
    unlink = Path.unlink

    def refusing(path: Path, missing_ok: bool = False) -> None:
        if path.suffix == ".lock":
            raise OSError(errno.EIO, "Input/output error")
        unlink(path, missing_ok)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refusing)
        write(tmp_path / "g.isthmus", 10)
    write(tmp_path / "g.isthmus", 20, overwrite=True)
    assert names(tmp_path) == ["g.isthmus"]
