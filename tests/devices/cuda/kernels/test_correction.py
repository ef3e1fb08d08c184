"""Kernels that find wrong values, run on the processor: every vertex once, whatever the lengths of lists and the number
of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from isthmus.devices.cuda.kernels import correction, rows
from isthmus.devices.cuda.kernels.skeleton import WIDTHS
from isthmus.kernels.stream.correction import NOBODY

DEGREES = (0, 1, 31, 32, 33, 1023, 1024, 3000)
OFFSETS = np.concatenate([[0], np.cumsum(DEGREES)]).astype(np.int64)
N = 5000
DRAW = np.random.default_rng(2)
TARGETS = DRAW.integers(0, N, int(OFFSETS[-1])).astype(np.uint32)
KERNELS, ROWS = correction.build(gpu=False), rows.build(gpu=False)


def listed() -> tuple[Any, ...]:
    return np.zeros(N // 32 + 1, np.uint32), np.full(N, 9999, np.uint32), np.zeros(1, np.int64)


def taken(given: tuple[Any, ...]) -> list[int]:
    words, found, count = given
    vertices = found[: int(count[0])].tolist()
    bits = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
    assert sorted(vertices) == bits.tolist(), "each once"
    return sorted(vertices)


@pytest.mark.parametrize("threads", [1, 40, 600])
def test_children_are_found_once(threads: int) -> None:
    parents = DRAW.integers(0, 10, N).astype(np.uint32)
    sorted_rows = (*(np.empty(24, kind) for kind in (np.uint32, np.int64, np.int64, np.int64)), np.zeros(3, np.int64))
    given = (np.arange(8, dtype=np.uint32), OFFSETS[:-1], OFFSETS[:-1], np.array(DEGREES, np.int64))
    ROWS.sort_rows(threads, *given, 8, *sorted_rows)
    found = listed()
    for kind, width in enumerate(WIDTHS):
        KERNELS.orphan_children(
            threads, kind, 8, *sorted_rows, min(width, threads), 32, TARGETS, TARGETS, parents, *found
        )
    expected = {int(v) for u in range(8) for v in TARGETS[OFFSETS[u] : OFFSETS[u + 1]] if parents[v] == u}
    assert taken(found) == sorted(expected) != []


def test_heads_that_depend_on_an_arc_are_found() -> None:
    parents = np.full(N, NOBODY, np.uint32)
    parents[[5, 6, 7]] = 1, 2, 3
    found = listed()
    tails, heads = np.array([1, 1, 9, 3, 1], np.uint32), np.array([5, 6, 6, 7, 5], np.uint32)
    KERNELS.orphan_heads(16, tails, heads, parents, *found)
    assert taken(found) == [5, 7]


@pytest.mark.parametrize("kind", [correction.FROM_CONSTANT, correction.FROM_NUMBER, correction.FROM_ARRAY])
@pytest.mark.parametrize("has_levels", [False, True])
def test_orphans_lose_their_value_and_are_noted_once(kind: int, has_levels: bool) -> None:
    orphans = np.array([3, 4, 700], np.uint32)
    values, levels, parents = np.arange(N) * 2, np.full(N, 7, np.uint32), np.zeros(N, np.uint32)
    changed, changes, count = np.zeros(N, np.uint8), np.empty(N, np.uint32), np.ones(1, np.int64)
    changed[4], changes[0] = 1, 4
    KERNELS.give_up(
        40, orphans, values, levels, has_levels, parents, changed, changes, count, np.int64(-5), np.arange(N) * 3, kind
    )
    expected = {
        correction.FROM_CONSTANT: [-5] * 3,
        correction.FROM_NUMBER: [3, 4, 700],
        correction.FROM_ARRAY: [9, 12, 2100],
    }[kind]
    assert values[orphans].tolist() == expected and values[5] == 10
    assert levels[orphans].tolist() == [0 if has_levels else 7] * 3 and levels[5] == 7
    assert (parents[orphans] == NOBODY).all() and int((parents == NOBODY).sum()) == 3
    assert sorted(changes[: int(count[0])].tolist()) == [3, 4, 700] and int(changed.sum()) == 3
