"""Files that are replaced in one step."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from isthmus.graph.replacing import replacing


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
