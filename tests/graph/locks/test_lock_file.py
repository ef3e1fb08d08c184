"""Lock files: one holder at a time, on this machine by flock, and on others by the name of the holder and its last sign
of life.
"""

from __future__ import annotations

import errno
import gc
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from isthmus.errors import StoreError
from isthmus.graph.locks import heartbeat, holder, lock_file
from isthmus.graph.locks.folder_lock import FolderLock
from isthmus.graph.locks.holder import Holder, machine_key
from isthmus.graph.locks.lock_file import OLD, LockFile, NoLockFile
from isthmus.threads import uninterrupted

OTHER = Holder("otherhost", "1-2-3", "", 77)


def take(path: Path) -> LockFile:
    return LockFile(path, path.parent / "thing", "writing this thing")


def leave(path: Path, left: Holder, age: float = 0) -> None:
    """A lock file as a process leaves it that was killed, or that holds it on a machine whose flock is not seen
    here.
    """
    path.write_bytes(left.encode())
    os.utime(path, (time.time() - age,) * 2)


def named(path: Path) -> Holder | None:
    file = os.open(path, os.O_RDONLY)
    try:
        return Holder.read(file)
    finally:
        os.close(file)


def here(path: Path, process: int, host: str | None = None, boot: str | None = None) -> Holder:
    """A process of this machine that sees the folder of `path` as we do."""
    own_host, own_boot = holder.machine()
    names = (own_host if host is None else host, own_boot if boot is None else boot, holder.numbers())
    return Holder(*names, process, path.parent.stat().st_dev)


def test_it_names_its_holder_and_is_removed(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    lock = take(path)
    own = named(path)
    assert own is not None and own.is_this_process() and own.is_here(time.time()) and own.device == path.stat().st_dev
    with pytest.raises(StoreError, match=r"thing: this process is writing this thing already"):
        take(path)
    path.write_bytes(here(path, 77).encode())
    with pytest.raises(StoreError, match=r"thing: another process \(process 77\) is writing this thing"):
        take(path)
    path.write_bytes(own.encode())
    lock.release()
    assert not path.exists()
    take(path).release()


NOT_WHOLE = [
    b"",
    b"otherhost\n1-2-3\n",
    b"otherhost\n1-2-3\n\nx\n0\n\n",
    6 * b"\n",
    b"a\nb\n\n1\n0\nkey",
    b"\xff\n\n\n1\n0\n\n",
]


@pytest.mark.parametrize("text", NOT_WHOLE)
def test_a_name_that_is_not_whole_is_none(tmp_path: Path, text: bytes) -> None:
    (tmp_path / ".lock").write_bytes(text)
    assert named(tmp_path / ".lock") is None
    take(tmp_path / ".lock").release()
    assert not (tmp_path / ".lock").exists()


def test_a_process_of_this_machine_that_was_killed_leaves_no_lock(tmp_path: Path) -> None:
    """Also in another container of it, which has another host name; and before the machine was booted again."""
    path, (host, boot) = tmp_path / ".lock", holder.machine()
    before = Holder(host, "another-boot", "", os.getpid(), 12345)
    for left in (here(path, 1), here(path, 1, boot=""), before, here(path, 1, host="container")):
        if left.host == "container" and not boot:
            continue
        leave(path, left, holder.clock() + 1 if left is before else 0)
        take(path).release()
        assert not path.exists()


def test_two_mounts_of_one_machine_do_not_see_each_others_flock(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    left = here(path, 1)
    leave(path, Holder(left.host, left.boot, left.numbers, 1, left.device + 1))
    with pytest.raises(
        StoreError, match=r"process 1 on the host .* has ended or writes to the folder that this one was copied from"
    ):
        take(path)
    ended = subprocess.Popen(["true"])
    ended.wait()
    leave(path, Holder(left.host, left.boot, left.numbers, ended.pid, left.device + 1))  # as in a copy of a folder
    take(path).release()


def test_a_name_that_is_equal_but_for_its_key_is_another_holders(tmp_path: Path) -> None:
    """As of two containers with one host name, in both of which the process has number 1."""
    lock = take(tmp_path / ".lock")
    own = named(tmp_path / ".lock")
    assert own is not None
    (tmp_path / ".lock").write_bytes(
        Holder(own.host, own.boot, own.numbers, own.process, own.device, "another").encode()
    )
    with pytest.raises(StoreError, match="no longer holds the lock"):
        lock.renew(now=True)
    lock.release()
    assert (tmp_path / ".lock").exists()


def test_another_machine_of_our_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has renewed its lock since this one was booted."""
    monkeypatch.setattr(holder, "machine", lambda: ("host", "boot"))
    monkeypatch.setattr(holder, "clock", lambda: 100.0)
    leave(tmp_path / ".lock", Holder("host", "another-boot", "", 5), 90)
    with pytest.raises(StoreError, match="process 5 on the host host is writing"):
        take(tmp_path / ".lock")
    leave(tmp_path / ".lock", Holder("host", "another-boot", "", 5), -5000)
    with pytest.raises(StoreError, match="its last heartbeat was 0 minutes ago"):
        take(tmp_path / ".lock")
    assert abs((tmp_path / ".lock").stat().st_mtime - time.time()) < 60, "a time in the future would never get old"
    leave(tmp_path / ".lock", Holder("host", "another-boot", "", 5), 110)
    take(tmp_path / ".lock").release()


def test_a_lock_of_another_machine_is_held_until_it_is_old(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    leave(path, Holder("otherhost", "1-2-3", "", os.getpid()), 600)
    words = (
        rf"thing: process {os.getpid()} on the host otherhost is writing this thing, or was killed there; its last "
        rf"heartbeat was 10 "
        rf"minutes ago\. Wait for it; or, if it has ended, remove {path} and try again\. After 60 minutes"
    )
    with pytest.raises(StoreError, match=words):
        take(path)
    assert path.read_bytes().startswith(b"otherhost"), "it is left as it was"
    leave(path, OTHER, OLD + 1)
    lock = take(path)
    own = named(path)
    assert own is not None and own.is_this_process()
    lock.release()
    leave(path, Holder("otherhost", "", "", 3))
    with pytest.raises(StoreError, match="process 3 on the host otherhost"):
        take(path)


def test_the_clock_of_the_file_system_decides_what_is_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the clock of this machine, which may be wrong by hours."""
    leave(tmp_path / ".lock", OTHER)
    really = time.time
    monkeypatch.setattr(time, "time", lambda: really() + 2 * OLD)
    with pytest.raises(StoreError, match="process 77 on the host otherhost is writing"):
        take(tmp_path / ".lock")


def test_a_lock_is_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    own = path.read_bytes()
    path.write_bytes(OTHER.encode())
    with pytest.raises(
        StoreError, match=r"thing: another process \(process 77 on the host otherhost\) is writing this thing"
    ):
        take(path)
    path.write_bytes(own)
    lock.release()


def test_a_disk_without_room_for_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / ".lock"
    for left in (b"", here(path, 1).encode()):
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
        own = named(path)
        assert own is not None and own.is_this_process(), "there was room"
        path.write_bytes(OTHER.encode())
        with pytest.raises(StoreError, match="has taken over"):
            lock.renew(now=True)
        lock.release()
        path.unlink()
    leave(path, OTHER, OLD + 1)
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        with pytest.raises(
            StoreError, match="lock of process 77 on the host otherhost has expired, but the disk has no space"
        ):
            take(path)
    with pytest.raises(NoLockFile, match="nowhere: cannot write here: No such file"):
        take(tmp_path / "nowhere" / ".lock")


def test_a_fork_does_not_release_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, process = take(tmp_path / ".lock"), os.getpid()
    with monkeypatch.context() as patched:
        patched.setattr(lock_file.os, "getpid", lambda: process + 1)
        lock.release()
    assert (tmp_path / ".lock").exists()


HOLDER = """
import os, sys, time
from pathlib import Path
from isthmus.graph.locks.lock_file import LockFile
from isthmus.graph.locks.folder_lock import FolderLock

folder = Path(sys.argv[1])
locks = [LockFile(folder / ".lock", folder, "writing"), FolderLock(folder, "a log", "busy")]
child = os.fork()
if child == 0:
    print(os.getpid(), flush=True)  # it has closed its copies
    time.sleep(60)
    os._exit(0)
if sys.argv[2] == "release":
    for lock in locks:
        lock.release()
    print("released", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("way", ["release", "kill"])
def test_a_fork_does_not_keep_locks_of_a_holder_that_has_ended(tmp_path: Path, way: str) -> None:
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path), way], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = [process.stdout.readline()]
    if way == "release":  # by both, in any order
        said.append(process.stdout.readline())
    child = int(next(line for line in said if line != "released\n"))
    try:
        if way == "kill":
            process.kill()
            process.wait()
        take(tmp_path / ".lock").release()
        FolderLock(tmp_path, "a log", "busy").release()
    finally:
        os.kill(child, signal.SIGKILL)
        process.kill()
        process.wait()
        process.stdout.close()


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
    leave(path, here(path, ended.pid))
    take(path).release()
    left = here(path, ended.pid)
    leave(path, Holder(left.host, left.boot, "another container's", left.process, left.device))
    with pytest.raises(StoreError, match=f"process {ended.pid} on the host .* is writing"):
        take(path)
    path.unlink()
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
    take(path).release()
    leave(path, here(path, 1))
    take(path).release()
    leave(path, OTHER, OLD + 1)
    monkeypatch.setattr(lock_file.fcntl, "flock", failing(errno.ENOLCK))
    with pytest.raises(
        NoLockFile,
        match=r"\.lock: cannot write: Permission denied\. If no process is writing this thing, remove this file",
    ):
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


def test_a_holder_that_is_busy_renews_its_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / ".lock"
    assert becomes(lambda: not signing())
    monkeypatch.setattr(lock_file, "RENEWED", 0)
    monkeypatch.setattr(heartbeat, "EVERY", 0.01)
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
        os._exit(len(heartbeat.HEARTBEAT._held) + heartbeat.HEARTBEAT._runs)
    assert os.waitpid(child, 0)[1] == 0, "a fork holds nothing"
    lock.release()
    assert becomes(lambda: not signing())


def test_a_lock_that_nobody_has_any_more_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a writer that was interrupted twice. The thread that renews locks does not hold it."""
    monkeypatch.setattr(heartbeat, "EVERY", 0.01)
    lock = take(tmp_path / ".lock")
    time.sleep(0.1)
    del lock
    gc.collect()
    assert becomes(lambda: not signing())
    take(tmp_path / ".lock").release()


def test_a_lock_that_the_collector_releases_while_it_is_renewed(tmp_path: Path) -> None:
    lock = take(tmp_path / ".lock")
    with lock._closing:
        lock.release()
    assert not (tmp_path / ".lock").exists()


def test_the_heartbeat_goes_on_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert becomes(lambda: not signing())
    monkeypatch.setattr(heartbeat, "EVERY", 0.01)
    monkeypatch.setattr(lock_file, "RENEWED", 0)
    lock, failed = take(tmp_path / ".lock"), list[LockFile]()

    def fail(each: LockFile) -> None:
        failed.append(each)
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(LockFile, "beat", fail)
        assert becomes(lambda: len(failed) > 2)
        failed.clear()
    os.utime(tmp_path / ".lock", (0, 0))
    assert becomes(lambda: (tmp_path / ".lock").stat().st_mtime > 0) and len(signing()) == 1
    lock.release()
    assert becomes(lambda: not signing())


def test_a_lock_is_released_while_another_is_added(tmp_path: Path) -> None:
    """The collector may close a stream in any thread, which then lets another thread release the lock, and waits for
    it.
    """
    lock = take(tmp_path / ".lock")
    with heartbeat.HEARTBEAT._changed:
        uninterrupted(lock.release)
    assert not (tmp_path / ".lock").exists()


def test_a_thread_that_just_writes_our_name_does_not_look_like_another_holder(tmp_path: Path) -> None:
    (tmp_path / ".lock").write_bytes(b"")
    lock = take(tmp_path / ".lock")
    lock._is_named, lock._found = False, None  # as before it had room for its name
    lock.renew(now=True)
    assert lock._is_named
    lock.release()


def test_a_lock_that_was_lost_is_not_found_again(tmp_path: Path) -> None:
    """The other holder may have ended meanwhile; but what it wrote is there."""
    path = tmp_path / ".lock"
    lock, own = take(path), path.read_bytes()
    path.write_bytes(OTHER.encode())
    for _ in range(2):
        with pytest.raises(StoreError, match="no longer holds the lock"):
            lock.renew(now=True)
        path.write_bytes(own)
    with pytest.raises(StoreError, match="no longer holds the lock"):
        lock.renew()
    lock.release()
    with pytest.raises(StoreError, match="the lock was released"):
        lock.renew()


def test_a_fork_may_not_write(tmp_path: Path) -> None:
    lock = take(tmp_path / ".lock")
    child = os.fork()
    if child == 0:
        try:
            lock.renew(now=True)
        except StoreError as error:
            os._exit(0 if "which took the lock and was then forked" in str(error) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    lock.renew(now=True)
    lock.release()


def test_a_file_that_another_machine_has_removed_is_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = take(tmp_path / ".lock")
    with monkeypatch.context() as patched:
        patched.setattr(os, "fstat", failing(errno.EIO))
        lock.renew(now=True)  # nobody knows
        patched.setattr(os, "fstat", failing(errno.ESTALE))
        with pytest.raises(StoreError, match="no longer holds the lock"):
            lock.renew(now=True)
    lock.release()


def test_who_is_stopped_right_after_a_look_looks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, seconds = take(tmp_path / ".lock"), [holder.clock() + 100]
    monkeypatch.setattr(lock_file, "clock", lambda: seconds[0])
    utime = os.utime

    def slept(file: int) -> None:
        utime(file)
        seconds[0] += 2 * OLD

    monkeypatch.setattr(os, "utime", slept)
    lock.renew()
    (tmp_path / ".lock").write_bytes(OTHER.encode())
    with pytest.raises(StoreError, match="has taken over"):
        lock.renew()
    lock.release()


def signing() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "lock-heartbeat"]
