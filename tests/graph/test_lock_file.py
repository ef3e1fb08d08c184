"""Lock files: one holder at a time, on this machine by flock, and on others by the name of the holder and its last sign of life."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from isthmus.errors import StoreError
from isthmus.graph import holder, lock_file, signs
from isthmus.graph.holder import Holder, machine_key
from isthmus.graph.lock_file import OLD, LockFile, NoLockFile

OTHER = Holder("otherhost", "1-2-3", 77)


def take(path: Path) -> LockFile:
    return LockFile(path, path.parent / "thing", "writing this thing")


def leave(path: Path, holder: Holder, age: float = 0) -> None:
    """A lock file as a process leaves it that was killed, or that holds it on a machine whose flock is not seen here."""
    path.write_bytes(holder.encode())
    os.utime(path, (time.time() - age,) * 2)


def test_it_names_its_holder_and_is_removed(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    lock = take(path)
    file = os.open(path, os.O_RDONLY)
    assert Holder.read(file) == Holder.this() and Holder.this().is_here(time.time()) and Holder.this().process == os.getpid()
    os.close(file)
    with pytest.raises(StoreError, match=r"thing: another process is writing this thing"):
        take(path)
    lock.release()
    assert not path.exists()
    take(path).release()


@pytest.mark.parametrize("text", [b"", b"otherhost\n1-2-3\n", b"otherhost\n1-2-3\nx\n", b"\n\n\n", b"a\nb\n1\nmore", b"\xff\n\n1\n"])
def test_a_name_that_is_not_whole_is_none(tmp_path: Path, text: bytes) -> None:
    (tmp_path / ".lock").write_bytes(text)
    take(tmp_path / ".lock").release()


def test_a_process_of_this_machine_that_was_killed_leaves_no_lock(tmp_path: Path) -> None:
    """Also in another container of it, which has another host name; and before the machine was booted again."""
    host, boot = holder.machine()
    before = Holder(host, "another-boot", os.getpid())
    for left in (Holder(host, boot, 1), Holder(host, "", 1), before, Holder("container", boot, 1)):
        if left.host == "container" and not boot:
            continue
        leave(tmp_path / ".lock", left, holder.clock() + 1 if left is before else 0)
        take(tmp_path / ".lock").release()


def test_another_machine_of_our_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has given a sign of life since this one was booted."""
    monkeypatch.setattr(holder, "machine", lambda: ("host", "boot"))
    monkeypatch.setattr(holder, "clock", lambda: 100.0)
    leave(tmp_path / ".lock", Holder("host", "another-boot", 5), 90)
    with pytest.raises(StoreError, match="process 5 on the host host is writing"):
        take(tmp_path / ".lock")
    leave(tmp_path / ".lock", Holder("host", "another-boot", 5), -5000)
    with pytest.raises(StoreError, match="its last sign of life was 0 minutes ago"):
        take(tmp_path / ".lock")
    leave(tmp_path / ".lock", Holder("host", "another-boot", 5), 110)
    take(tmp_path / ".lock").release()


def test_a_lock_of_another_machine_is_held_until_it_is_old(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    leave(path, Holder("otherhost", "1-2-3", os.getpid()), 600)
    words = (
        rf"thing: process {os.getpid()} on the host otherhost is writing this thing, or was killed there; its last sign of life was 10 "
        rf"minutes ago\. Wait for it; or, if it has ended, remove {path} and try again\. After 60 minutes"
    )
    with pytest.raises(StoreError, match=words):
        take(path)
    assert path.read_bytes().startswith(b"otherhost"), "it is left as it was"
    leave(path, OTHER, OLD + 1)
    lock = take(path)
    assert path.read_bytes() == Holder.this().encode()
    lock.release()
    leave(path, Holder("otherhost", "", 3))
    with pytest.raises(StoreError, match="process 3 on the host otherhost"):
        take(path)


def test_signs_of_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / ".lock"
    lock = take(path)
    os.utime(path, (0, 0))
    lock.renew()
    assert path.stat().st_mtime == 0, "it was renewed a moment ago"
    monkeypatch.setattr(lock_file, "RENEWED", 0)
    lock.renew()
    assert time.time() - path.stat().st_mtime < 60
    path.write_bytes(OTHER.encode())
    with pytest.raises(StoreError, match=r"another process \(process 77 on the host otherhost\) has taken over"):
        lock.renew()
    path.unlink()
    path.write_bytes(OTHER.encode())
    with pytest.raises(StoreError, match=r"has taken over, or .*\.lock was removed"):
        lock.renew()
    lock.release()
    assert path.exists(), "it belongs to another process now"


def test_who_has_it_is_told_if_flock_reaches_other_machines(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    lock = take(path)
    path.write_bytes(OTHER.encode())
    with pytest.raises(StoreError, match=r"thing: another process \(process 77 on the host otherhost\) is writing this thing"):
        take(path)
    path.write_bytes(Holder.this().encode())
    lock.release()


def test_a_disk_without_room_for_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / ".lock"
    for left in (b"", OTHER.encode()):
        path.write_bytes(left)
        os.utime(path, (0, 0))
        with monkeypatch.context() as patched:
            patched.setattr(os, "pwrite", full)
            lock = take(path)
            assert time.time() - path.stat().st_mtime < 60, "who reads the old name must not find it old"
            with pytest.raises(StoreError, match=r"another process .*is writing"):
                take(path)
            lock.renew(now=True)
            assert path.read_bytes() == left
        lock.renew(now=True)
        assert path.read_bytes() == Holder.this().encode(), "there was room"
        path.write_bytes(OTHER.encode())
        with pytest.raises(StoreError, match="has taken over"):
            lock.renew(now=True)
        lock.release()
        path.unlink()
    with pytest.raises(NoLockFile, match="cannot write here: No such file"):
        take(tmp_path / "nowhere" / ".lock")


def test_a_fork_does_not_release_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, process = take(tmp_path / ".lock"), os.getpid()
    with monkeypatch.context() as patched:
        patched.setattr(lock_file.os, "getpid", lambda: process + 1)
        lock.release()
    assert (tmp_path / ".lock").exists()


def test_a_machine_has_one_key() -> None:
    assert machine_key() == machine_key() and len(machine_key()) == 8


def failing(number: int) -> Callable[..., None]:
    def fail(*given: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("call", ["pwrite", "fsync"])
def test_a_file_that_cannot_be_locked_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, call, failing(errno.EIO))
        with pytest.raises(NoLockFile, match="cannot lock: Input/output error") as caught:
            take(tmp_path / ".lock")
    assert not (tmp_path / ".lock").exists() and not caught.value.is_full
    take(tmp_path / ".lock").release()


def test_whoever_writes_its_name_last_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, fsync = tmp_path / ".lock", os.fsync

    def other_writes(file: int) -> None:
        fsync(file)
        path.write_bytes(OTHER.encode())

    monkeypatch.setattr(os, "fsync", other_writes)
    with pytest.raises(StoreError, match=r"another process \(process 77 on the host otherhost\) is writing"):
        take(path)
    assert path.read_bytes() == OTHER.encode(), "it is theirs"


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_where_there_is_no_flock_the_name_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    path = tmp_path / ".lock"
    monkeypatch.setattr(lock_file.fcntl, "flock", failing(number))
    lock = take(path)
    with pytest.raises(StoreError, match=f"process {os.getpid()} on the host .* is writing this thing"):
        take(path)
    lock.release()
    leave(path, OTHER)
    with pytest.raises(StoreError, match="process 77 on the host otherhost is writing"):
        take(path)
    ended = subprocess.Popen(["true"])
    ended.wait()
    leave(path, Holder(*holder.machine(), ended.pid))
    take(path).release()
    monkeypatch.setattr(lock_file.fcntl, "flock", failing(errno.EIO))
    with pytest.raises(NoLockFile, match="cannot lock: Input/output error"):
        take(path)


def test_a_file_of_another_user_tells_who_holds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, really = tmp_path / ".lock", os.open

    def opened(name: object, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_RDWR and not flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, "Permission denied")
        return really(path, flags, mode)

    leave(path, OTHER)
    monkeypatch.setattr(os, "open", opened)
    with pytest.raises(StoreError, match="process 77 on the host otherhost is writing"):
        take(path)
    leave(path, OTHER, OLD + 1)
    with pytest.raises(NoLockFile, match=r"\.lock: cannot write: Permission denied\. If nobody is writing this thing, remove this file"):
        take(path)


def test_the_umask_says_who_may_write_the_file(tmp_path: Path) -> None:
    before = os.umask(0o002)
    try:
        lock = take(tmp_path / ".lock")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / ".lock").stat().st_mode) == 0o664
    lock.release()


def becomes(true: Callable[[], bool]) -> bool:
    end = time.monotonic() + 20
    while not true() and time.monotonic() < end:
        time.sleep(0.005)
    return true()


def test_a_holder_that_is_busy_gives_signs_of_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / ".lock"
    assert becomes(lambda: not signing())
    monkeypatch.setattr(lock_file, "RENEWED", 0)
    monkeypatch.setattr(signs, "EVERY", 0.01)
    lock, second = take(path), take(tmp_path / ".second")
    assert len(signing()) == 1
    os.utime(path, (0, 0))
    assert becomes(lambda: path.stat().st_mtime > 0)
    second.release()
    leave(path, OTHER, 500)
    os.utime(path, (0, 0))
    time.sleep(0.1)
    assert path.stat().st_mtime == 0, "it is no longer ours"
    child = os.fork()
    if child == 0:
        os._exit(len(signs.SIGNS._held) + signs.SIGNS._runs)
    assert os.waitpid(child, 0)[1] == 0, "a fork holds nothing"
    lock.release()
    assert becomes(lambda: not signing())


def signing() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "lock-signs"]
