"""Atomics: their values alone, and under a race in which an operation that is not atomic loses updates."""

from __future__ import annotations

import threading
import time
from typing import Any

import numba
import numpy as np
import pytest

from isthmus.kernels.compile import atomics
from isthmus.kernels.compile.atomics import atomic_add, atomic_or

ROUNDS = 200
PATIENCE = 30  # seconds to wait for two threads to meet; a busy machine may need some


@numba.njit(nogil=True)
def race(words: Any, meeting: Any, mine: Any, atomic: Any) -> None:
    """In every round both threads meet, then set their bits of the same word one by one."""
    for r in range(words.size):
        atomic_add(meeting, 0, 1)
        while atomic_or(meeting, 0, 0) < 2 * (r + 1):
            pass
        for bit in range(32):
            value = np.uint64(1) << np.uint64(2 * bit + mine)
            if atomic:
                atomic_or(words, r, value)
            else:
                words[r] |= value
                atomic_or(meeting, 1, 0)  # keeps the compiler from joining the steps


def raced(atomic: bool) -> Any:
    words, meeting = np.zeros(ROUNDS, np.uint64), np.zeros(2, np.int64)
    threads = [threading.Thread(target=race, args=(words, meeting, mine, atomic)) for mine in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return words


def test_atomic_or_loses_nothing_where_a_plain_one_does() -> None:
    full = np.uint64(2**64 - 1)
    race(np.zeros(0, np.uint64), np.zeros(2, np.int64), 0, True)  # compile before the race
    end, overlaps = time.monotonic() + PATIENCE, 0
    while overlaps < 3 and time.monotonic() < end:
        overlaps += bool((raced(atomic=False) != full).any())  # an update was lost: the threads really overlapped
        assert (raced(atomic=True) == full).all()
    if not overlaps:
        pytest.skip(f"two threads never overlapped in {PATIENCE} s; one core?")


@pytest.mark.parametrize("dtype", ["uint8", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize(
    ("name", "start", "value", "wanted"),
    [
        ("or", 5, 2, 7),
        ("add", 5, 2, 7),
        ("min", 5, 2, 2),
        ("min", 2, 5, 2),
        ("max", 5, 2, 5),
        ("max", 2, 5, 5),
        ("exchange", 5, 2, 2),
    ],
)
def test_alone(dtype: str, name: str, start: int, value: int, wanted: int) -> None:
    operation = getattr(atomics, f"atomic_{name}")
    array = np.array([9, start, 9], dtype)

    @numba.njit
    def once(array: Any, value: Any) -> Any:
        return operation(array, 1, value)

    assert once(array, array.dtype.type(value)) == start
    assert array.tolist() == [9, wanted, 9]


def test_lowest_bit() -> None:
    @numba.njit
    def lowest(word: Any) -> Any:
        return atomics.lowest_bit(word)

    for bit in range(64):
        assert lowest(np.uint64(1 << bit)) == bit
        assert lowest(np.uint64((2**64 - 1) << bit & 2**64 - 1)) == bit
