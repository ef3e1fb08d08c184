"""Checksums and bounds of blocks, compared with the xxhash package and with NumPy."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import numpy as np
import pytest
import xxhash

from isthmus.graph.far import ANYTHING, Bounds, bounds_of_targets, bounds_of_weights
from isthmus.kernels.store import block_checksums as kernels
from isthmus.kernels.store.block_checksums import BLOCK, FINE, NO_SUMS, SCRATCH, WRONG_ENTRY, WRONG_SUM


def some_blocks(count: int) -> Any:
    data = np.random.default_rng(count).integers(0, 256, count * BLOCK, np.uint8)
    data[:BLOCK] = 0
    data[-1] ^= 1
    return data


def test_checksums_are_those_of_the_xxhash_package() -> None:
    data = some_blocks(200)
    sums = np.empty(200, np.uint64)
    kernels.hash_blocks(data, sums)
    assert sums.tolist() == [xxhash.xxh3_64_intdigest(data[at : at + BLOCK]) for at in range(0, data.size, BLOCK)]


@pytest.mark.parametrize("bit", [0, 7, 8 * 63, 8 * 64, 8 * 1024 - 1, 8 * 4032, 8 * 4096 - 1])
def test_every_bit_counts(bit: int) -> None:
    data, sums = some_blocks(2)[BLOCK:], np.empty(2, np.uint64)
    kernels.hash_blocks(data, sums[:1])
    data[bit // 8] ^= 1 << bit % 8
    kernels.hash_blocks(data, sums[1:])
    assert sums[0] != sums[1]


def check(entries: Any, bounds: Bounds, place: int = 0, sums: Any = None, first: int = 0) -> tuple[int, int]:
    data = np.zeros(max(1, -(-entries.nbytes // BLOCK)) * BLOCK, np.uint8)
    data[: entries.nbytes] = entries.view(np.uint8)
    rule = np.array([*astuple(bounds), NO_SUMS if sums is None else 0], np.uint64)
    sums = np.empty(0, np.uint64) if sums is None else sums
    found: tuple[int, int] = kernels.check_blocks(
        data, place, data.size - place, first, rule, sums, np.empty(SCRATCH, np.uint64)
    )
    return found


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
@pytest.mark.parametrize("at", [0, 1, 511, 1023, 1024, 2047])
def test_targets_are_vertices(dtype: str, at: int) -> None:
    bounds, targets = bounds_of_targets(dtype, 1000), np.arange(2048, dtype=dtype) % 1000
    assert check(targets, bounds)[0] == FINE
    block = at * targets.itemsize // BLOCK
    for wrong in (1000, 2**32 - 1):
        targets[at] = wrong
        assert check(targets, bounds) == (WRONG_ENTRY, block)
        assert check(targets, bounds, first=70) == (WRONG_ENTRY, 70 + block)
        assert check(targets, ANYTHING)[0] == FINE


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
@pytest.mark.parametrize("negative", [True, False])
def test_weights_are_finite_and_have_the_claimed_sign(dtype: str, negative: bool) -> None:
    bounds = bounds_of_weights(dtype, negative)
    kind = np.iinfo(dtype) if dtype == "int32" else np.finfo(dtype)
    fine = [0, 1, kind.max, *([-1, kind.min] if negative else []), *([-0.0, kind.tiny] if dtype != "int32" else [])]
    assert check(np.array(fine, dtype), bounds)[0] == FINE
    wrong = [*([] if negative else [-1, kind.min]), *([np.nan, -np.nan, np.inf, -np.inf] if dtype != "int32" else [])]
    for value in wrong:
        weights = np.ones(700, dtype)
        weights[600] = value
        assert check(weights, bounds) == (WRONG_ENTRY, 600 * weights.itemsize // BLOCK), value


def test_a_checksum_that_does_not_match() -> None:
    data, sums = some_blocks(5), np.empty(5, np.uint64)
    kernels.hash_blocks(data, sums)
    assert check(data, ANYTHING, sums=sums)[0] == FINE
    assert check(data, ANYTHING, place=2 * BLOCK, sums=sums, first=2)[0] == FINE
    assert check(data, ANYTHING, place=2 * BLOCK, sums=sums, first=1) == (WRONG_SUM, 1)
    data[3 * BLOCK + 77] ^= 16
    assert check(data, ANYTHING, sums=sums) == (WRONG_SUM, 3)
