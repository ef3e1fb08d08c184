"""Kernels over vertices, run on the processor, beside those of the processor."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.devices.cuda.kernels import rows
from isthmus.frontier import Frontier
from isthmus.graph.lists import Lists
from isthmus.graph.partition import cut
from isthmus.threads import Team

DEGREES = [3, 0, 1, 700, 2, 0, 33, 5, 1, 40]


@pytest.mark.parametrize("weight_width", [0, 8])
def test_activity_is_that_of_the_frontier(weight_width: int) -> None:
    offsets = np.concatenate([[0], np.cumsum(DEGREES * 20)])
    lists = Lists(offsets[:-1], offsets[1:])
    partitions = cut(lists, 4 + weight_width, 1024)
    assert len(partitions) > 20  # the longest list lies in several
    frontier = Frontier(lists.begins.size, 1, repeats=True)
    active = np.random.default_rng(5).random(lists.begins.size) < 0.4
    frontier.start(active)
    frontier.list = None
    with_team = Team(1)
    expected = frontier.activity(partitions, lists, 4, weight_width, 128, with_team, shares=False)
    found = [np.zeros(len(partitions), np.int64) for _ in range(3)]
    rows.build(gpu=False).count_activity(
        7, lists.begins.size, frontier.marks, False, *lists.arrays, partitions.cuts, 4, weight_width, 128, *found
    )
    with_team.close()
    assert np.array_equal(found[0], expected.vertices)
    assert np.array_equal(found[1], expected.edges)
    assert np.array_equal(found[2], expected.blocks)


def test_marks_become_a_bitmap_with_its_count() -> None:
    marks = np.random.default_rng(1).integers(0, 2, 803).astype(np.uint8)
    bits, count = np.zeros(101, np.uint8), np.zeros(1, np.int64)
    rows.build(gpu=False).pack_marks(16, marks, bits, count)
    assert np.array_equal(np.unpackbits(bits, count=803, bitorder="little"), marks)
    assert count[0] == marks.sum()


def test_deltas_of_active_vertices_are_taken() -> None:
    values, residual, deltas = np.arange(5.0), np.full(5, 2.0), np.full(5, -1.0)
    rows.build(gpu=False).take_deltas(3, 5, np.array([1, 0, 0, 1, 0], np.uint8), False, values, residual, deltas)
    assert values.tolist() == [2, 1, 2, 5, 4]
    assert residual.tolist() == [0, 2, 2, 0, 2]
    assert deltas.tolist() == [2, -1, -1, 2, -1]


def test_an_array_is_filled() -> None:
    array = np.ones(11)
    rows.build(gpu=False).fill(4, array, 0)
    assert not array.any()


def test_active_vertices_that_are_not_held_are_marked() -> None:
    draw, count = np.random.default_rng(3), 500
    marks, held = (draw.integers(0, 2, count).astype(np.uint8) for _ in range(2))
    for every in (False, True):
        others, found = np.full(count, 9, np.uint8), np.zeros(1, np.int64)
        rows.build(gpu=False).mark_others(16, count, marks, every, held, others, found)
        expected = (held == 0) & (every | (marks != 0))
        assert np.array_equal(others, expected)
        assert found[0] == expected.sum()
