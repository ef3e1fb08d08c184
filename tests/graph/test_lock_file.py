"""Lock files: one holder at a time, on this machine by flock, and on others by the name of the holder and its last sign of life."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from isthmus.errors import StoreError
from isthmus.graph import lock_file
from isthmus.graph.lock_file import OLD, Holder, LockFile, NoLockFile, machine_key

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
    assert Holder.read(file) == Holder.this() and Holder.this().is_here and Holder.this().process == os.getpid()
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
    host, boot = lock_file.machine()
    for holder in (Holder(host, boot, 1), Holder(host, "", 1), Holder(host, "another-boot", os.getpid()), Holder("container", boot, 1)):
        if holder.host == "container" and not boot:
            continue
        leave(tmp_path / ".lock", holder)
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

    monkeypatch.setattr(lock_file.os, "write", full)
    lock = take(tmp_path / ".lock")
    with pytest.raises(StoreError, match="another process is writing"):
        take(tmp_path / ".lock")
    lock.renew()
    lock.release()
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
