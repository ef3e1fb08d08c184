"""Lists packed by several threads: every list once, in about even parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from isthmus.link import packers
from isthmus.link.packers import Packers

LENGTHS = np.tile([0, 1, 7, 40], 50)
BEGINS = np.cumsum(LENGTHS) * 2
PLACES = 100 + np.cumsum(LENGTHS) - LENGTHS  # as those of weights, which do not begin at 0
SOURCE = np.arange(int(BEGINS[-1] + LENGTHS[-1]), dtype=np.uint32)
EXPECTED = np.concatenate([SOURCE[begin : begin + length] for begin, length in zip(BEGINS, LENGTHS, strict=True)])


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The lists first:last that each call packs."""
    found: list[tuple[int, int]] = []
    pack = packers.pack

    def packing(*given: Any) -> None:
        found.append(given[-2:])
        pack(*given)

    monkeypatch.setattr(packers, "pack", packing)
    return found


def packed(threads: int, count: int = LENGTHS.size) -> Any:
    out, several = np.zeros(100 + EXPECTED.size, np.uint32), Packers(threads)
    several.pack(SOURCE, BEGINS[:count], LENGTHS[:count], PLACES[:count], out)
    several.close()
    return out[100:]


def test_all_threads_pack_about_as_much_each(parts: list[tuple[int, int]]) -> None:
    assert np.array_equal(packed(3), EXPECTED)
    bounds = sorted(parts)
    assert [first for first, _ in bounds] == [0, *(last for _, last in bounds[:-1])] and bounds[-1][1] == LENGTHS.size
    assert all(abs(LENGTHS[first:last].sum() - EXPECTED.size / 3) <= 2 * LENGTHS.max() for first, last in parts)


def test_a_few_long_lists_are_split_as_well(parts: list[tuple[int, int]]) -> None:
    """A buffer may have only those, although many vertices are active."""
    size = int(LENGTHS[:9].sum())
    assert np.array_equal(packed(3, 9)[:size], EXPECTED[:size])
    assert len(parts) == 3


@pytest.mark.parametrize(("threads", "count"), [(1, LENGTHS.size), (3, 1), (3, 0)])
def test_one_list_is_packed_by_the_caller(parts: list[tuple[int, int]], threads: int, count: int) -> None:
    size = int(LENGTHS[:count].sum())
    assert np.array_equal(packed(threads, count)[:size], EXPECTED[:size])
    assert parts == [(0, count)]
