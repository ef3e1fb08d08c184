"""Kernels that set values right after a batch, run on the processor: as the processor's own loops, whatever the lengths
of lists.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.devices.cuda.kernels.test_correction import DEGREES, OFFSETS, ROWS, TARGETS, N, listed, taken

from isthmus.devices.cuda.kernels import incremental
from isthmus.devices.cuda.kernels.skeleton import WIDTHS

LEAST = """@called
def source(u, degree, state, params):
    return state[0][u] + degree


@called
def edge(x, u, v, w, state, params):
    return x + w < atomic_min(state[0], v, x + w)
"""
SILENT = np.int64(1 << 40)
DRAW = np.random.default_rng(3)


def values() -> Any:
    """Of the vertices with lists, which are to hear, and of all others, some of which have nothing to send."""
    values = DRAW.integers(100, 10**6, N)
    values[DRAW.integers(0, N, N // 2)] = SILENT
    values[:8] = SILENT
    return values


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("has_silent", [False, True])
@pytest.mark.parametrize("threads", [1, 40, 600])
def test_vertices_hear_from_all_neighbours(weighted: bool, has_silent: bool, threads: int) -> None:
    kernels = incremental.build("least", LEAST, weighted, gpu=False)
    state = values()
    before = state.copy()
    weights, degrees = DRAW.integers(1, 50, TARGETS.size), DRAW.integers(0, 9, N)
    targets = np.where(TARGETS < 8, 8, TARGETS).astype(np.uint32)  # of those that hear, none sends
    sorted_rows = (*(np.empty(24, kind) for kind in (np.uint32, np.int64, np.int64, np.int64)), np.zeros(3, np.int64))
    ROWS.sort_rows(
        threads, np.arange(8, dtype=np.uint32), OFFSETS[:-1], OFFSETS[:-1], np.array(DEGREES, np.int64), 8, *sorted_rows
    )
    found, lists = listed(), (np.zeros(N, np.int64), degrees)
    for kind, width in enumerate(WIDTHS):
        given = (kind, 8, *sorted_rows, min(width, threads), 32, targets, weights, *lists)
        kernels.hear(threads, *given, has_silent, SILENT, (state,), (), *found)
    for v in range(8):
        near = slice(OFFSETS[v], OFFSETS[v + 1])
        us = targets[near]
        sent = before[us] + degrees[us] + (weights[near] if weighted else 1)
        sent = sent[before[us] != SILENT] if has_silent else sent
        assert state[v] == min([*sent.tolist(), SILENT])
    assert taken(found) == np.flatnonzero(state[:8] < SILENT).tolist()
    assert np.array_equal(state[8:], before[8:])


@pytest.mark.parametrize("weighted", [False, True])
def test_arcs_send_once(weighted: bool) -> None:
    kernels = incremental.build("least", LEAST, weighted, gpu=False)
    state = np.array([5, SILENT, 9, 100, 100, 3])
    tails, heads, weights = (
        np.array([0, 1, 2, 0], np.uint32),
        np.array([3, 4, 4, 5], np.uint32),
        np.array([10, 1, 20, 1]),
    )
    found = listed()
    kernels.send(
        40, tails, heads, weights, np.zeros(6, np.int64), np.ones(6, np.int64), True, SILENT, (state,), (), *found
    )
    assert state.tolist() == ([5, SILENT, 9, 16, 30, 3] if weighted else [5, SILENT, 9, 7, 11, 3])
    assert taken(found) == [3, 4]
