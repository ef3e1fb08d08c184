"""The lock of a folder: one holder, and none when it is gone."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from isthmus.errors import StoreError
from isthmus.graph.locks import folder_lock
from isthmus.graph.locks.folder_lock import FolderLock


def take(path: Path) -> FolderLock:
    return FolderLock(path, "things", "another process has these things")


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    lock = take(tmp_path / "d")
    assert (tmp_path / "d").is_dir()
    with pytest.raises(StoreError, match="d: another process has these things"):
        take(tmp_path / "d")
    lock.release()
    lock.release()  # changes nothing
    again = take(tmp_path / "d")
    del again
    gc.collect()
    take(tmp_path / "d").release()


def test_a_folder_that_is_removed_meanwhile_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really, path = folder_lock.fcntl.flock, tmp_path / "d"

    def late(file: int, how: int) -> None:
        really(file, how)
        monkeypatch.setattr(folder_lock.fcntl, "flock", really)
        path.rmdir()

    monkeypatch.setattr(folder_lock.fcntl, "flock", late)
    lock = take(path)
    assert path.is_dir()
    with pytest.raises(StoreError):
        take(path)
    lock.release()


def test_an_interrupt_leaves_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really = folder_lock.fcntl.flock

    def stop(file: int, how: int) -> None:
        really(file, how)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(folder_lock.fcntl, "flock", stop)
        with pytest.raises(KeyboardInterrupt):
            take(tmp_path)
    take(tmp_path).release()


def test_a_file_system_without_such_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(file: int, how: int) -> None:
        raise OSError(38, os.strerror(38))

    monkeypatch.setattr(folder_lock.fcntl, "flock", none)
    first, second = take(tmp_path), take(tmp_path)
    assert first._file != second._file and min(first._file, second._file) >= 0, "everybody has it"
    first.release()
    second.release()
    assert first._file == second._file == -1


def test_what_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file: cannot be used as a folder for things: File exists"):
        take(tmp_path / "file")
