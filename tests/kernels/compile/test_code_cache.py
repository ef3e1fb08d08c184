"""Files of machine code: whose are read, what happens to damaged ones, and where none can be kept."""

from __future__ import annotations

import errno
import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from tests import disks

from isthmus.kernels.compile import code_cache

NAME = "f-1.code"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of machine code, which does not exist yet."""
    path = tmp_path / "cache" / "kernels"
    monkeypatch.setattr(code_cache, "kernels_folder", lambda: path)
    return path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_written_is_read_again(folder: Path) -> None:
    assert code_cache.read(NAME) is None
    for content in (b"one", b"", b"three" * 1000):
        code_cache.write(NAME, content)
        assert code_cache.read(NAME) == content
    assert [path.name for path in folder.iterdir()] == [NAME]


def test_only_the_owner_can_write(folder: Path) -> None:
    before = os.umask(0)
    try:
        code_cache.write(NAME, b"code")
    finally:
        os.umask(before)
    assert (mode(folder), mode(folder.parent), mode(folder / NAME)) == (0o700, 0o700, 0o600)


@pytest.mark.parametrize("bits", [0o770, 0o707, 0o777, 0o1777, 0o720])
def test_a_folder_that_others_can_write_is_not_used(folder: Path, bits: int) -> None:
    code_cache.write(NAME, b"code")
    folder.chmod(bits)
    assert code_cache.read(NAME) is None
    with pytest.raises(code_cache.UnsafeError, match="can be written by other users"):
        code_cache.write(NAME, b"new")
    assert code_cache.trouble() == f"{folder} can be written by other users (mode {bits:o}), so nothing in it is used"
    folder.chmod(0o755)
    assert (code_cache.read(NAME), code_cache.trouble()) == (b"code", "")


def test_a_folder_of_another_owner_is_not_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code_cache.write(NAME, b"code")
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert code_cache.read(NAME) is None
    with pytest.raises(code_cache.UnsafeError):
        code_cache.write(NAME, b"new")
    assert code_cache.trouble() == f"{folder} belongs to another user (uid {owner}), so nothing in it is used"
    assert (folder / NAME).exists()


def test_a_link_leads_to_a_folder_that_is_judged(folder: Path, tmp_path: Path) -> None:
    """In a shared place such as /tmp others can make links, but not folders of ours."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    folder.parent.mkdir()
    folder.symlink_to(tmp_path / "open")
    assert "can be written by other users" in code_cache.trouble()
    (tmp_path / "open").chmod(0o700)
    assert code_cache.trouble() == ""


def planted(folder: Path, kind: str) -> None:
    """Replace the file by one that others may have made."""
    file = folder / NAME
    if kind == "writable":
        file.chmod(0o666)
    elif kind == "link":
        file.rename(folder.parent / "elsewhere")
        file.symlink_to(folder.parent / "elsewhere")
    elif kind == "pipe":
        file.unlink()
        os.mkfifo(file)
    elif os.geteuid() == 0:
        os.chown(file, 12345, -1)
    else:
        pytest.skip("only root can give a file away")


@pytest.mark.parametrize("kind", ["writable", "link", "pipe", "of another owner"])
def test_a_file_of_others_is_not_read(folder: Path, kind: str) -> None:
    code_cache.write(NAME, b"code")
    planted(folder, kind)
    assert code_cache.read(NAME) is None
    code_cache.write(NAME, b"ours")
    assert code_cache.read(NAME) == b"ours"


@pytest.mark.parametrize(
    "change", [lambda b: b"", lambda b: b[:10], lambda b: b[:-1], lambda b: b + b"x", lambda b: b"x" * len(b)]
)
def test_a_damaged_file_is_removed(folder: Path, change: Any) -> None:
    code_cache.write(NAME, b"code" * 100)
    (folder / NAME).write_bytes(change((folder / NAME).read_bytes()))
    assert code_cache.read(NAME) is None
    assert list(folder.iterdir()) == []


def test_every_byte_counts(folder: Path) -> None:
    code_cache.write(NAME, b"code")
    whole = (folder / NAME).read_bytes()
    for at in range(len(whole)):
        (folder / NAME).write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert code_cache.read(NAME) is None
    code_cache.write(NAME, b"code")
    (folder / NAME).rename(folder / "g-1.code")
    assert code_cache.read("g-1.code") is None, "the code of another function"


def test_a_full_disk_leaves_nothing(folder: Path) -> None:
    with disks.mounted(folder, "size=64k,mode=700"):
        code_cache.write(NAME, b"small")
        for _ in range(2):
            with pytest.raises(OSError) as failure:
                code_cache.write("g-1.code", bytes(1 << 20))
            assert failure.value.errno == errno.ENOSPC
        assert [path.name for path in folder.iterdir()] == [NAME]
        assert code_cache.read(NAME) == b"small"
        disks.make_read_only(folder)
        assert code_cache.trouble() == f"{folder} cannot be written"
        assert code_cache.read(NAME) == b"small"


def test_where_no_folder_can_be_made(folder: Path) -> None:
    folder.parent.write_text("")
    assert code_cache.read(NAME) is None
    with pytest.raises(OSError):
        code_cache.write(NAME, b"code")
    assert code_cache.trouble() == f"{folder} cannot be used (File exists)"


def test_which_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISTHMUS_CACHE", "/a")
    monkeypatch.setenv("XDG_CACHE_HOME", "/b")
    monkeypatch.setenv("HOME", "/c")
    assert code_cache.cache_folder() == Path("/a")
    monkeypatch.delenv("ISTHMUS_CACHE")
    assert code_cache.cache_folder() == Path("/b/isthmus")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert code_cache.cache_folder() == Path("/c/.cache/isthmus")


def test_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("ISTHMUS_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", none)
    folder = code_cache.cache_folder() / "kernels"
    monkeypatch.setattr(code_cache, "kernels_folder", lambda: folder)
    assert (code_cache.trouble(), code_cache.read(NAME)) == ("there is no home folder", None)
    with pytest.raises(OSError):
        code_cache.write(NAME, b"code")


def test_files_that_nobody_uses_are_removed(folder: Path) -> None:
    now = time.time()
    for name, days in (("used.code", 50), ("unused.code", 70), ("torn.tmp", 70), ("new.code", 0)):
        code_cache.write(name, b"code")
        os.utime(folder / name, (now, now - days * code_cache.DAY))
    assert code_cache.read("used.code") == b"code"
    assert now - (folder / "used.code").stat().st_mtime < code_cache.DAY, "reading it makes it a used one"
    (folder / "letter.txt").touch()  # the folder may be a link to one with other files
    os.utime(folder / "letter.txt", (now, now - 70 * code_cache.DAY))
    code_cache.write(NAME, b"code")
    assert {path.name for path in folder.iterdir()} == {"used.code", "new.code", NAME, "letter.txt"}
