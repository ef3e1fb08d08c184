"""Sorting strings in runs: the same as sorting them at once, whatever their lengths and the memory."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from isthmus.graph.ingest.text_runs import FAN, TextRuns, by_bytes


def some_names(count: int) -> list[list[bytes]]:
    chance = random.Random(3)

    def name() -> bytes:
        return chance.choice(
            [b"", b"\xff" * chance.randrange(300), b"a%d" % chance.randrange(2000), bytes([chance.randrange(256)])]
        )

    return [[name() for _ in range(chance.randrange(30))] for _ in range(count)]


@pytest.mark.parametrize(("memory", "levels"), [(10**9, 0), (50_000, 1), (3000, 2)])
def test_sorted_and_distinct(tmp_path: Path, sized: Any, memory: int, levels: int) -> None:
    sized(name_block=200)
    runs, blocks = TextRuns(memory, tmp_path), some_names(200)
    for names in blocks:
        runs.add(pa.array([b"before", *names], pa.large_binary()).slice(1))
    found = [name for piece in runs.sorted() for name in piece.to_pylist()]
    assert found == sorted({name for names in blocks for name in names})
    assert len(runs._levels) == levels and all(len(level) < FAN for level in runs._levels)
    runs.close()
    assert list(tmp_path.iterdir()) == []


def test_long_strings_make_small_slices() -> None:
    names = pa.array([b"x" * size for size in (1, 5000, 2, 3, 100)], pa.large_binary())
    assert [len(piece) for piece in by_bytes(names, 200)] == [1, 1, 3]
