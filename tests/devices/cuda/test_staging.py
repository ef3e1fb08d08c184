"""Extents cut into groups: every byte arrives once at its place, by whole blocks that fit the buffer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from isthmus.devices.cuda.staging import groups
from isthmus.graph.store.files import BLOCK
from isthmus.link.link import Extents

SIZES = np.array([10 * BLOCK + 77, 100, 40 * BLOCK])


def extents(*rows: tuple[int, int, int, int]) -> Extents:
    return Extents(*(np.array(column, np.int64) for column in zip(*rows, strict=True)))


def sections() -> list[Any]:
    random = np.random.default_rng(3)
    return [random.integers(0, 256, size, np.uint8) for size in SIZES]


def carried(wanted: Extents, room: int, size: int) -> tuple[Any, list[Any]]:
    """What a buffer of `size` bytes holds when all groups have gone through one of `room` bytes; and the groups."""
    far, near, found = sections(), np.zeros(size, np.uint8), list(groups(wanted, SIZES, room))
    for group in found:
        staging = np.zeros(room, np.uint8)
        for section, offset, length, place in zip(*(column.tolist() for column in group.reads.columns), strict=True):
            assert offset % BLOCK == length % BLOCK == place % BLOCK == 0 and place + length <= room
            assert offset + length <= -(-SIZES[section] // BLOCK) * BLOCK
            part = far[section][offset : offset + length]
            staging[place : place + part.size] = part
        for start, length, place in zip(
            group.starts.tolist(), group.lengths.tolist(), group.places.tolist(), strict=True
        ):
            near[place : place + length] = staging[start : start + length]
    return near, found


@pytest.mark.parametrize("room", [4 * BLOCK, 7 * BLOCK, 64 * BLOCK])
def test_every_byte_arrives_once_at_its_place(room: int) -> None:
    wanted = extents(
        (0, 5, 20, 0), (0, 4000, 300, 20), (0, 3 * BLOCK, 2 * BLOCK, 320), (0, 9 * BLOCK + 1, 3 * BLOCK, 9000),
        (1, 0, BLOCK, 30000),
        (2, 100, 35 * BLOCK, 40000), (2, 39 * BLOCK, 1, 39999),
    )  # fmt: skip
    near, found = carried(wanted, room, 40000 + 35 * BLOCK)
    expected, far = np.zeros(near.size, np.uint8), sections()
    for section, offset, length, place in zip(*(column.tolist() for column in wanted.columns), strict=True):
        part = far[section][offset : offset + length]
        expected[place : place + part.size] = part
    assert np.array_equal(near, expected)
    assert sum(int(group.lengths.sum()) for group in found) == 20 + 300 + 2 * BLOCK + BLOCK + 76 + 100 + 35 * BLOCK + 1


def test_neighbours_are_read_together_and_a_shared_block_once() -> None:
    (group,) = groups(
        extents((0, 0, 10, 0), (0, 100, 10, 10), (0, BLOCK, 10, 20), (0, 5 * BLOCK, 10, 30)), SIZES, 64 * BLOCK
    )
    assert group.reads.offsets.tolist() == [0, 5 * BLOCK]
    assert group.reads.lengths.tolist() == [2 * BLOCK, BLOCK]
    assert group.starts.tolist() == [0, 100, BLOCK, 2 * BLOCK]


def test_nothing_needs_no_group() -> None:
    assert list(groups(extents((0, 0, 0, 0)), SIZES, 4 * BLOCK)) == []
    assert list(groups(Extents(*(np.empty(0, np.int64) for _ in range(4))), SIZES, 4 * BLOCK)) == []
    assert list(groups(extents((1, 100, 10, 0)), SIZES, 4 * BLOCK)) == []  # past the section's end
