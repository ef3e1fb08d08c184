"""Files that are replaced in one step."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from isthmus.graph.store import files
from isthmus.graph.store import replacement as replacing_module
from isthmus.graph.store.replacement import replacing


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_new_contents_take_the_place_of_the_old(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for text in (b"one", b"two"):
        with replacing(path) as file:
            file.write(text)
    assert path.read_bytes() == b"two"
    assert names(tmp_path) == ["x"]


def test_an_error_leaves_the_old_contents(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), replacing(path) as file:
        file.write(b"new")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["x"]


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt()])
@pytest.mark.parametrize("exists", [False, True])
def test_a_rename_that_cannot_be_synced_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exists: bool, error: BaseException
) -> None:
    """What reports failure has changed nothing."""
    path = tmp_path / "x"
    if exists:
        path.write_bytes(b"old")

    def failing(folder: Path) -> None:
        assert path.read_bytes() == b"new"
        raise error

    monkeypatch.setattr(files, "fsync_folder", failing)
    with pytest.raises(type(error)), replacing(path) as file:
        file.write(b"new")
    assert names(tmp_path) == (["x"] if exists else [])
    assert not exists or path.read_bytes() == b"old"


@pytest.mark.parametrize("exists", [False, True])
def test_a_rename_that_cannot_be_undone_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exists: bool) -> None:
    """Nothing can be mended then. The message tells what is in place, and the old contents stay until the next writer
    comes.
    """
    path, replace = tmp_path / "x", os.replace
    if exists:
        path.write_bytes(b"old")

    def failing(folder: Path) -> None:
        monkeypatch.setattr(os, "replace", refused)
        monkeypatch.setattr(replacing_module, "exchanged", lambda one, other: False)
        raise OSError(errno.EIO, "Input/output error")

    def refused(source: Path, target: Path) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(files, "fsync_folder", failing)
    message = r"Input/output error, and the rename cannot be undone \(.*\): the new contents are there"
    with pytest.raises(OSError, match=message), replacing(path) as file:
        file.write(b"new")
    monkeypatch.setattr(os, "replace", replace)
    assert path.read_bytes() == b"new"
    assert [each.read_bytes() for each in tmp_path.iterdir() if each != path] == ([b"old"] if exists else [])
    monkeypatch.undo()
    with replacing(path) as file:
        file.write(b"newer")
    assert path.read_bytes() == b"newer" and names(tmp_path) == ["x"]


def test_without_an_exchange_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replacing_module, "exchanged", lambda one, other: False)
    test_new_contents_take_the_place_of_the_old(tmp_path)


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    with pytest.raises(IsADirectoryError), replacing(tmp_path / "x") as file:
        file.write(b"new")
    assert names(tmp_path) == ["x"] and (tmp_path / "x").is_dir()


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"old")
    planted = tmp_path / f".x.{os.getpid()}.tmp"
    planted.symlink_to(precious)
    with pytest.raises(FileExistsError), replacing(tmp_path / "x") as file:
        file.write(b"new")
    assert precious.read_bytes() == b"old"


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    """But not what another process is still writing, nor files with similar names."""
    kept = [".x.2.tmp", ".x.y.3.tmp", ".x.tmp"]
    for name in (".x.1.tmp", *kept):
        (tmp_path / name).touch()
    writing = os.open(tmp_path / ".x.2.tmp", os.O_RDWR)
    fcntl.flock(writing, fcntl.LOCK_EX)
    with replacing(tmp_path / "x"):
        pass
    os.close(writing)
    assert names(tmp_path) == sorted([*kept, "x"])
