"""Edges out of nothing: distributions, bijections, and numbers past 2**32."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from isthmus.graph.ingest.generators import PRESETS, alias_tables
from isthmus.kernels.store import random_edges as kernels

SHARES = [
    PRESETS["graph500"],
    PRESETS["parmat"],
    (0.25, 0.25, 0.25),
    (1.0, 0.0, 0.0),
    (0.0, 0.5, 0.5),
    (0.9, 0.05, 0.0),
]


@pytest.mark.parametrize("abc", SHARES)
def test_alias_tables_are_as_exact_as_24_bits_allow(abc: tuple[float, float, float]) -> None:
    """An outcome gets the product of its quadrants' chances, up to half a step of rounding per cell that gives to
    it.
    """
    quadrants = (*abc, 1 - sum(abc))
    cuts, aliases = alias_tables(quadrants)
    for levels in range(kernels.LEVELS + 1):
        size = 4**levels
        given, cells = [0] * size, [1] * size
        for outcome in range(size):
            given[outcome] += int(cuts[levels, outcome])
            given[int(aliases[levels, outcome])] += (1 << 24) - int(cuts[levels, outcome])
            cells[int(aliases[levels, outcome])] += int(aliases[levels, outcome]) != outcome
        for path in itertools.product(range(4), repeat=levels):
            u = sum((quadrant >> 1) << (levels - 1 - i) for i, quadrant in enumerate(path))
            v = sum((quadrant & 1) << (levels - 1 - i) for i, quadrant in enumerate(path))
            wanted = float(np.prod([quadrants[quadrant] for quadrant in path]))
            rounding = 0.5 * cells[u << levels | v] / (size << 24)
            assert given[u << levels | v] / (size << 24) == pytest.approx(wanted, rel=0, abs=rounding + 1e-15)


@pytest.mark.parametrize("scale", [1, 4, 7, 13])
@pytest.mark.parametrize("preset", list(PRESETS))
def test_rmat_chooses_quadrants_by_their_chances_at_every_level(scale: int, preset: str) -> None:
    count = 200_000
    abc = PRESETS[preset]
    quadrants = np.array([*abc, 1 - sum(abc)])
    sources, targets = np.empty(count, np.uint32), np.empty(count, np.uint32)
    kernels.rmat(np.uint64(5), 0, scale, *alias_tables(tuple(quadrants)), sources, targets)
    assert max(sources.max(), targets.max()) < 1 << scale
    for level in range(scale):
        chosen = np.bincount((sources >> level & 1) * 2 + (targets >> level & 1), minlength=4)
        slack = 5 * np.sqrt(count * quadrants * (1 - quadrants))
        assert (abs(chosen - count * quadrants) < slack).all()


def test_levels_are_independent() -> None:
    count = 200_000
    quadrants = (*PRESETS["graph500"], 0.05)
    sources, targets = np.empty(count, np.uint32), np.empty(count, np.uint32)
    kernels.rmat(np.uint64(5), 0, 8, *alias_tables(quadrants), sources, targets)
    for one, other in itertools.combinations(range(8), 2):
        first = (sources >> one & 1) * 2 + (targets >> one & 1)
        second = (sources >> other & 1) * 2 + (targets >> other & 1)
        together = np.bincount(first * 4 + second, minlength=16).reshape(4, 4)
        wanted = count * np.outer(quadrants, quadrants)
        assert (abs(together - wanted) < 6 * np.sqrt(wanted)).all()


@pytest.mark.parametrize("first", [0, 12345, 2**33 + 7])
def test_an_edge_depends_on_its_number_alone(first: int) -> None:
    tables = alias_tables((0.57, 0.19, 0.19, 0.05))
    whole, piece = np.empty((2, 1000), np.uint32), np.empty((2, 300), np.uint32)
    kernels.rmat(np.uint64(9), first, 18, *tables, *whole)
    kernels.rmat(np.uint64(9), first + 500, 18, *tables, *piece)
    assert np.array_equal(whole[:, 500:800], piece)
    kernels.uniform(np.uint64(9), first, 10**9, *whole)
    kernels.uniform(np.uint64(9), first + 500, 10**9, *piece)
    assert np.array_equal(whole[:, 500:800], piece)


def test_edges_far_apart_differ() -> None:
    near, far = np.empty((2, 1000), np.uint32), np.empty((2, 1000), np.uint32)
    kernels.uniform(np.uint64(9), 0, 2**32, *near)
    kernels.uniform(np.uint64(9), 2**32, 2**32, *far)
    assert (near != far).mean() > 0.99


@pytest.mark.parametrize("bits", range(13))
@pytest.mark.parametrize("seed", [0, 1, 2**63])
def test_scramble_is_a_bijection(bits: int, seed: int) -> None:
    ids = np.arange(1 << bits, dtype=np.uint32)
    kernels.scramble(ids, bits, np.uint64(seed))
    assert np.array_equal(np.sort(ids), np.arange(1 << bits))
    if bits > 6:
        assert (ids == np.arange(1 << bits)).mean() < 0.1


def test_scramble_of_all_32_bits() -> None:
    ids = np.random.default_rng(1).integers(0, 2**32, 1_000_000, np.uint32)
    distinct = np.unique(ids).size
    kernels.scramble(ids, 32, np.uint64(1))
    assert np.unique(ids).size == distinct
    assert ids.max() > 0.99 * 2**32


@pytest.mark.parametrize("vertices", [1, 2, 3, 1000, 2**31 + 1, 2**32])
def test_uniform_stays_in_range_and_reaches_its_ends(vertices: int) -> None:
    ends = np.empty((2, 100_000), np.uint32)
    kernels.uniform(np.uint64(3), 0, vertices, *ends)
    assert ends.max() < vertices
    assert ends.max() >= int(vertices * 0.999) - 1
    assert ends.min() <= vertices * 0.001
    assert abs(float(ends.mean()) - (vertices - 1) / 2) <= 0.01 * vertices


@pytest.mark.parametrize("first", [0, 2**33 + 1, 2**50 - 3, 2**56 - 10])
def test_complete_numbers_every_pair(first: int) -> None:
    sources, targets = np.empty(10, np.int64), np.empty(10, np.int64)
    kernels.complete(first, sources, targets)
    for e, u, v in zip(range(first, first + 10), sources.tolist(), targets.tolist(), strict=True):
        assert 0 <= u < v
        assert v * (v - 1) // 2 + u == e


def test_grids_with_more_than_two_to_the_32_edges() -> None:
    rows, columns = 50_000, 60_000
    sources, targets = np.empty(4, np.uint32), np.empty(4, np.uint32)
    across = rows * (columns - 1)
    kernels.grid(across - 2, rows, columns, sources, targets)
    assert sources.tolist() == [rows * columns - 3, rows * columns - 2, 0, 1]
    assert targets.tolist() == [rows * columns - 2, rows * columns - 1, columns, columns + 1]
    last = across + (rows - 1) * columns - 1
    assert last > 2**32
    kernels.grid(last, rows, columns, sources[:1], targets[:1])
    assert (sources[0], targets[0]) == (rows * columns - columns - 1, rows * columns - 1)


def test_weights_depend_on_the_ends_alone() -> None:
    def weigh(u: int, v: int, directed: bool, backward: bool) -> int:
        weights = np.empty(1, np.int32)
        row, target = np.array([u], np.uint64), np.array([v], np.uint32)
        kernels.weigh(row, np.ones(1, np.int64), target, np.uint64(1), directed, backward, 0.0, 2.0**31, True, weights)
        return int(weights[0])

    assert weigh(3, 8, False, False) == weigh(8, 3, False, False)
    assert weigh(3, 8, True, False) != weigh(8, 3, True, False)
    assert weigh(3, 8, True, False) == weigh(8, 3, True, True)
