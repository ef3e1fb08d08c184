"""Aligned memory, direct files that fall back, scratch files."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isthmus.errors import StoreError
from isthmus.graph.store import files
from isthmus.graph.store.files import (
    BLOCK,
    Scratch,
    aligned_empty,
    open_direct,
    padded,
    read_into,
    remove_folder,
    whole_blocks,
    write_all,
)

CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL


@pytest.mark.parametrize(
    ("size", "expected"), [(0, 0), (1, BLOCK), (BLOCK, BLOCK), (BLOCK + 1, 2 * BLOCK), (2**40 + 1, 2**40 + BLOCK)]
)
def test_padded(size: int, expected: int) -> None:
    assert padded(size) == expected


def test_a_folder_is_removed_as_far_as_that_is_possible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(descriptor: int) -> Any:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "file").touch()
    with monkeypatch.context() as patched:
        patched.setattr(os, "fstat", fails)
        remove_folder(folder)
    remove_folder(folder)
    remove_folder(folder)
    assert not folder.exists()


@pytest.mark.parametrize("count", [0, 1, 511, 512, 513, 5000])
def test_aligned_memory_and_its_whole_blocks(count: int) -> None:
    array = aligned_empty(count, np.uint64)
    array[:] = np.arange(count)
    assert count == 0 or array.ctypes.data % BLOCK == 0
    data = whole_blocks(array)
    assert len(data) == padded(count * 8)
    assert bytes(data) == np.arange(count, dtype=np.uint64).tobytes().ljust(len(data), b"\0")


def test_short_writes_and_reads_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, read = os.pwrite, os.preadv
    monkeypatch.setattr(os, "pwrite", lambda file, data, at: write(file, data[:1000], at))
    monkeypatch.setattr(os, "preadv", lambda file, views, at: read(file, [views[0][:777]], at))
    data = np.random.default_rng(1).integers(0, 256, 10_000, np.uint8)
    descriptor = os.open(tmp_path / "file", CREATE)
    write_all(descriptor, data.data, 5, "file")
    back = np.zeros_like(data)
    read_into(descriptor, back.data, 5, "file")
    os.close(descriptor)
    assert np.array_equal(back, data)


def test_reading_past_the_end_says_where(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100)
    descriptor = os.open(tmp_path / "file", os.O_RDONLY)
    with pytest.raises(StoreError, match=r"file: ends at byte 100, 60 bytes too early; the file was truncated"):
        read_into(descriptor, memoryview(bytearray(80)), 80, "file")
    os.close(descriptor)


def test_failed_reads_and_writes_name_the_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"some.section: cannot read at byte 7: Bad file descriptor"):
        read_into(-1, memoryview(bytearray(1)), 7, "some.section")
    with pytest.raises(StoreError, match=r"some.section: cannot write at byte 7: Bad file descriptor"):
        write_all(-1, memoryview(b"x"), 7, "some.section")


def refuse_direct(monkeypatch: pytest.MonkeyPatch, create_first: bool) -> None:
    """What a file system without O_DIRECT does; some kernels create the file before they refuse."""
    really_open = os.open

    def refusing(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if flags & files.DIRECT:
            if create_first:
                os.close(really_open(path, flags & ~files.DIRECT, *rest, **more))
            raise OSError(errno.EINVAL, "Invalid argument")
        return really_open(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", refusing)


@pytest.mark.parametrize("create_first", [False, True])
def test_a_file_system_that_refuses_direct_io(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, create_first: bool
) -> None:
    refuse_direct(monkeypatch, create_first)
    descriptor = open_direct(tmp_path / "file", CREATE)
    write_all(descriptor, memoryview(b"odd length"), 3, "file")
    os.close(descriptor)
    assert (tmp_path / "file").read_bytes() == b"\0\0\0odd length"


@pytest.mark.parametrize("refused", [False, True])
def test_an_existing_file_is_never_opened_as_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    (tmp_path / "file").write_bytes(b"precious")
    if refused:
        refuse_direct(monkeypatch, create_first=False)
    with pytest.raises(FileExistsError):
        open_direct(tmp_path / "file", CREATE)


def test_other_errors_of_open_are_not_taken_for_a_refusal(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_direct(tmp_path / "no" / "file", CREATE)


@pytest.mark.skipif(not files.DIRECT, reason="this system has no O_DIRECT")
def test_a_refusal_at_the_first_write_goes_through_the_cache(tmp_path: Path) -> None:
    descriptor = open_direct(tmp_path / "file", CREATE)
    write_all(descriptor, memoryview(b"neither aligned nor a whole block"), 1, "file")  # EINVAL while direct
    os.close(descriptor)
    assert (tmp_path / "file").read_bytes() == b"\0neither aligned nor a whole block"


def test_scratch_is_nameless_and_shared_by_threads(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    assert list(tmp_path.iterdir()) == []
    places: dict[int, int] = {}

    def work(number: int) -> None:
        array = aligned_empty(1000 + number, np.uint32)
        array[:] = number
        places[number] = scratch.append(array)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, at in places.items():
        assert at % BLOCK == 0
        assert (scratch.read(at + 4, 999 + number, np.uint32) == number).all()
    scratch.close()


def test_scratch_without_a_folder(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"gone: cannot create a scratch file: No such file or directory"):
        Scratch(tmp_path / "gone")
