"""Machine code is found again, never run when it is damaged or of others, and compiled in memory where it cannot be
kept.
"""

from __future__ import annotations

import ast
import errno
import linecache
import os
import pickle
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.caching import NullCache

from isthmus.kernels.compile import code_cache, compile_clock, kernel
from isthmus.kernels.compile.atomics import atomic_cas, atomic_exchange, atomic_load

KERNELS = Path(kernel.__file__).parent.parent


def double(x: int) -> int:
    return 2 * x


def added_up(n: int) -> int:
    total, _ = 0, object()
    for i in range(n):
        total += i
    return total


class Planted:
    """Whoever unpickles this leaves a trace."""

    def __init__(self, trace: Path) -> None:
        self._trace = trace

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self._trace),)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "kernels"
    monkeypatch.setattr(code_cache, "kernels_folder", lambda: path)
    return path


def used(x: int = 4) -> tuple[list[str], int]:
    """Use the kernel as a new process would: (what was told, times it was found on disk)."""
    said: list[str] = []
    compiled = kernel.kernel(double)
    with compile_clock.telling("double", said.append):
        assert compiled(x) == 2 * x
    return said, sum(compiled.stats.cache_hits.values())


def only(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def test_the_next_run_finds_it(folder: Path) -> None:
    assert used() == ([f"compiling double (once; kept in {folder})"], 0)
    before = only(folder).stat().st_mtime_ns
    assert used() == ([], 1)
    assert only(folder).stat().st_mtime_ns == before
    assert used(x=4.5) == ([f"compiling double (once; kept in {folder})"], 0), "another type"  # type: ignore[arg-type]
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("change", [lambda b: b"", lambda b: b[: len(b) // 2], lambda b: b[:-9] + b"\0" * 9])
def test_a_damaged_file_is_compiled_again(folder: Path, change: Any) -> None:
    used()
    file = only(folder)
    file.write_bytes(change(file.read_bytes()))
    assert used() == ([f"compiling double (once; kept in {folder})"], 0)
    assert used() == ([], 1)


@pytest.mark.parametrize("content", [pickle.dumps(1), pickle.dumps((1,) * 9), b"", b"no pickle"])
def test_a_whole_file_with_something_else_is_compiled_again(folder: Path, content: bytes) -> None:
    used()
    code_cache.write(only(folder).name, content)
    assert used()[1] == 0
    assert used() == ([], 1)


def test_what_others_planted_is_not_run(folder: Path, tmp_path: Path) -> None:
    used()
    code_cache.write(only(folder).name, pickle.dumps(Planted(tmp_path / "ran")))
    folder.chmod(0o777)
    told = (
        f"compiling double (in every run: {folder} can be written by other users (mode 777), so nothing in it is used; "
    )
    assert used() == ([told + "set ISTHMUS_CACHE to a folder of your own)"], 0)
    folder.chmod(0o700)
    only(folder).chmod(0o666)
    assert used()[1] == 0
    assert not (tmp_path / "ran").exists()
    code_cache.write(only(folder).name, pickle.dumps(Planted(tmp_path / "ran")))
    used()
    assert (tmp_path / "ran").exists(), "the test would have noticed"


def test_a_full_disk_is_no_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*names: Any, **more: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    said, _ = used()
    assert said[1:] == [
        f"compiled kernels cannot be kept in {folder}: No space left on device; the next run compiles again"
    ]
    assert list(folder.iterdir()) == []


def test_its_seconds_are_counted_apart(folder: Path) -> None:
    compiled, prepared = compile_clock.COMPILING.seconds, compile_clock.PREPARING.seconds
    used()
    assert compile_clock.COMPILING.seconds > compiled
    compiled, prepared = compile_clock.COMPILING.seconds, compile_clock.PREPARING.seconds
    used()
    assert compile_clock.COMPILING.seconds == compiled, "it was loaded"
    assert compile_clock.PREPARING.seconds > prepared


def test_other_code_that_numba_compiles_is_not_ours() -> None:
    compiled, said = compile_clock.COMPILING.seconds, []
    with compile_clock.telling("theirs", said.append):
        assert numba.njit(double)(3) == 6
        assert numba.jit(forceobj=True)(added_up)(4) == 6  # its loop is compiled by a dispatcher of another kind
    assert (compile_clock.COMPILING.seconds, said) == (compiled, [])


def test_a_change_in_an_imported_file_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions of other files are compiled in."""
    users, path = str(KERNELS / "loops" / "rows.py"), str(KERNELS / "compile" / "atomics.py")
    before, others = kernel.stamp(users), kernel.stamp(str(KERNELS / "loops" / "gather.py"))
    lines = [*linecache.getlines(path), "# changed\n"]
    monkeypatch.setitem(linecache.cache, path, (1, None, lines, path))
    kernel.stamp.cache_clear()
    assert (kernel.stamp(users) == before, kernel.stamp(str(KERNELS / "loops" / "gather.py")) == others) == (
        False,
        True,
    )
    kernel.stamp.cache_clear()


@pytest.mark.parametrize("path", sorted(KERNELS.rglob("*.py")), ids=lambda path: path.name)
def test_imports_are_written_as_the_stamp_reads_them(path: Path) -> None:
    text = path.read_text()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("isthmus"):
            assert text.splitlines()[node.lineno - 1].startswith("from isthmus.kernels."), f"{path.name}:{node.lineno}"
        assert not isinstance(node, ast.Import) or not any(alias.name.startswith("isthmus") for alias in node.names)


def test_a_closure_is_refused() -> None:
    two = 2

    def times(x: int) -> int:
        return two * x

    with pytest.raises(TypeError, match="a kernel must not be a closure"):
        kernel.kernel(times)


def taken(words: Any, v: int) -> Any:
    while True:
        word = atomic_load(words, v)
        if word != 9 and atomic_cas(words, v, word, np.uint32(9)) == word:
            return word


def improved(y: float, v: int, state: Any) -> bool:
    """Writes under a lock, as maintained programs do; LLVM does not remove the reference counts of such a function."""
    if not y < state[1][v]:
        return False
    words = state[0]
    word = lock(words, v)
    better = y < state[1][v]
    if better:
        state[1][v] = y
        word = np.uint32(v)
    atomic_exchange(words, v, word)
    return better  # type: ignore[no-any-return]


lock = taken


@pytest.mark.parametrize(("make", "counted"), [(kernel.program_inline, False), (numba.njit, True)])
def test_functions_of_programs_count_no_references(make: Any, counted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An addition to a counter that all threads share would cost more than the edge."""
    inner, function = make(taken), make(improved)
    inner._cache = function._cache = NullCache()
    monkeypatch.setitem(globals(), "lock", inner)

    @numba.njit
    def outer(state: Any, count: int) -> int:
        total = 0
        for v in range(count):
            total += function(0.5, v, state)
        return total

    assert outer((np.arange(5, dtype=np.uint32), np.arange(5.0)), 5) == 4
    assert ("call void @NRT_incref" in "".join(function.inspect_llvm().values())) == counted
