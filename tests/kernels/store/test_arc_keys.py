"""Packing, parting, sorting and combining arcs, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from isthmus.graph.ingest.buckets import Splitters
from isthmus.kernels.store import arc_keys

RELAXED = settings(max_examples=60, deadline=None)
KEYS = arrays.arrays(
    np.uint64, st.integers(0, 300), elements=st.integers(0, 2**64 - 1) | st.integers(0, 20) | st.just(2**64 - 1)
)


def packed(sources, targets, weights, bits, way, drop):
    most = 2 * len(sources)
    keys, kept = np.zeros(most, np.uint64), np.zeros(most)
    ends = (np.array(sources, np.uint32), np.array(targets, np.uint32))
    count, loops = arc_keys.pack(*ends, np.array(weights, float), bits, way, drop, keys, kept)
    pairs = [(int(k) >> bits, int(k) & ((1 << bits) - 1)) for k in keys[:count]]
    return [(*pair, w) for pair, w in zip(pairs, kept[:count].tolist(), strict=True)], loops


@pytest.mark.parametrize("bits", [3, 17, 32])
@pytest.mark.parametrize(
    ("way", "drop", "expected"),
    [
        (arc_keys.FORWARD, False, [(1, 2, 5.0), (3, 3, 6.0), (2, 1, 7.0)]),
        (arc_keys.BACKWARD, False, [(2, 1, 5.0), (3, 3, 6.0), (1, 2, 7.0)]),
        (arc_keys.BOTH, False, [(1, 2, 5.0), (2, 1, 5.0), (3, 3, 6.0), (2, 1, 7.0), (1, 2, 7.0)]),
        (arc_keys.FORWARD, True, [(1, 2, 5.0), (2, 1, 7.0)]),
        (arc_keys.BACKWARD, True, [(2, 1, 5.0), (1, 2, 7.0)]),
        (arc_keys.BOTH, True, [(1, 2, 5.0), (2, 1, 5.0), (2, 1, 7.0), (1, 2, 7.0)]),
    ],
)
def test_pack(bits, way, drop, expected):
    assert packed([1, 3, 2], [2, 3, 1], [5, 6, 7], bits, way, drop) == (expected, 1)


def test_pack_of_the_largest_vertices():
    last = 2**32 - 1
    assert packed([last, 0], [last - 1, last], [1, 2], 32, arc_keys.FORWARD, False) == (
        [(last, last - 1, 1.0), (0, last, 2.0)],
        0,
    )


@RELAXED
@given(keys=KEYS, weighted=st.booleans())
def test_radix_sort_is_stable(keys, weighted):
    order = np.argsort(keys, kind="stable")
    expected = keys[order]
    weights = np.arange(keys.size, dtype=np.float64) if weighted else None
    arc_keys.radix_sort(keys, weights, np.empty_like(keys), None if weights is None else np.empty_like(weights))
    assert keys.tolist() == expected.tolist()
    assert weights is None or weights.tolist() == order.tolist()


@pytest.mark.parametrize("width", [1, 10, 11, 12, 21, 22, 23, 33, 44, 55, 63, 64])
@pytest.mark.parametrize("count", [2, 50])
def test_radix_sort_of_keys_that_differ_in_so_many_bits(width, count):
    """The digits of a pass are never more than its counters, also where 11 divides the width."""
    keys = np.random.default_rng(width).integers(0, 2**width - 1, count, np.uint64, endpoint=True)
    keys[0], keys[1] = 2**width - 1, 0
    expected = sorted(keys.tolist())
    arc_keys.radix_sort(keys, None, np.empty_like(keys), None)
    assert keys.tolist() == expected


@RELAXED
@given(keys=KEYS, sample=KEYS, buckets=st.integers(1, 40), weighted=st.booleans())
def test_scatter_parts_by_value_and_keeps_the_order(keys, sample, buckets, weighted):
    splitters = Splitters(sample, buckets, 0, 2**64 - 1)
    assert splitters.values[0] == 0 and (np.diff(splitters.values) > 0).all()
    weights = np.arange(keys.size, dtype=np.int32) if weighted else None
    out, out_weights = np.empty_like(keys), None if weights is None else np.empty_like(weights)
    starts = splitters.scatter(keys, weights, out, out_weights)
    belongs = np.searchsorted(splitters.values, keys, "right") - 1
    order = np.argsort(belongs, kind="stable")
    assert out.tolist() == keys[order].tolist()
    assert starts.tolist() == [0, *np.cumsum(np.bincount(belongs, minlength=len(splitters))).tolist()]
    assert out_weights is None or out_weights.tolist() == order.tolist()


@RELAXED
@given(
    keys=st.lists(st.integers(0, 15), max_size=60),
    how=st.sampled_from([arc_keys.KEEP, arc_keys.FIRST, arc_keys.MIN, arc_keys.SUM]),
    weighted=st.booleans(),
)
def test_combine_equals_plain_python(keys, how, weighted):
    keys = sorted(keys)
    weights = [float((i * 7) % 5) for i in range(len(keys))]
    groups: dict[int, list[float]] = {}
    for key, weight in zip(keys, weights, strict=True):
        groups.setdefault(key, []).append(weight)
    fold = {
        arc_keys.FIRST: lambda w: [w[0]],
        arc_keys.MIN: lambda w: [min(w)],
        arc_keys.SUM: lambda w: [sum(w)],
        arc_keys.KEEP: list,
    }[how]
    expected = [(key, weight) for key, group in groups.items() for weight in fold(group)]
    targets, kept = np.empty(len(keys), np.uint32), np.empty(len(keys)) if weighted else None
    rows, counts = np.empty(len(keys), np.uint64), np.empty(len(keys), np.int64)
    size, used, loops = arc_keys.combine(
        np.array(keys, np.uint64), np.array(weights) if weighted else None, 2, how, targets, kept, rows, counts
    )
    sources = np.repeat(rows[:used], counts[:used]).tolist()
    assert list(zip(sources, targets[:size].tolist(), strict=True)) == [(key >> 2, key & 3) for key, _ in expected]
    assert kept is None or kept[:size].tolist() == [weight for _, weight in expected]
    assert loops == sum(key >> 2 == key & 3 for key, _ in expected)
    assert (np.diff(rows[:used].astype(np.int64)) > 0).all()


def test_gather():
    parts, weights = np.arange(10, dtype=np.uint64), np.arange(10.0) / 2
    out, out_weights = np.empty(5, np.uint64), np.empty(5)
    assert arc_keys.gather(parts, weights, np.array([7, 0, 4]), np.array([9, 3, 4]), out, out_weights) == 5
    assert out.tolist() == [7, 8, 0, 1, 2]
    assert out_weights.tolist() == [3.5, 4.0, 0.0, 0.5, 1.0]


@pytest.mark.parametrize("base", [0, 2**32 - 1, 2**40])
def test_offsets_of_64_bits(base):
    """Rows 2 and 5 have arcs, numbered from `base` on."""
    out = np.empty(6, np.int64)
    arc_keys.fill_offsets(np.array([2, 5], np.uint64), np.array([base, base + 3, base + 4]), base + 4, 1, out)
    assert out.tolist() == [base, base, base + 3, base + 3, base + 3, base + 4]


def test_offsets_from_a_vertex_beyond_32_bits():
    first = 2**33
    out = np.empty(3, np.int64)
    arc_keys.fill_offsets(np.array([first + 1], np.uint64), np.array([2**34, 2**34 + 2**33]), 2**34 + 2**33, first, out)
    assert out.tolist() == [2**34, 2**34, 2**34 + 2**33]


@pytest.mark.parametrize("weighted", [True, False])
def test_imbalance_is_zero_only_both_ways(weighted):
    random = np.random.default_rng(1)
    u, v = random.integers(0, 50, (2, 400)).astype(np.uint32)
    w = random.integers(0, 9, 400).astype(float) if weighted else None
    both = (np.concatenate([u, v]), np.concatenate([v, u]), None if w is None else np.concatenate([w, w]))
    cut = 250
    parts = [tuple(None if c is None else c[part] for c in both) for part in (slice(cut), slice(cut, None))]
    assert sum(int(arc_keys.imbalance(*part)) for part in parts) % 2**64 == 0
    assert int(arc_keys.imbalance(u, v, w)) != 0
    if weighted:
        other = both[2].copy()
        other[np.flatnonzero(both[0] != both[1])[0]] += 1
        assert int(arc_keys.imbalance(*both[:2], other)) != 0


def test_a_cycle_whose_weights_are_its_vertices_is_not_symmetric() -> None:
    """Weights and vertices must not be exchangeable in the hash: 0 -3- 1 -1- 2 -2- 0 has every sum of both twice."""
    ends = np.array([0, 1, 2], np.uint32), np.array([1, 2, 0], np.uint32)
    assert arc_keys.imbalance(*ends, np.array([3, 1, 2])) != 0
    assert arc_keys.imbalance(np.append(*ends), np.append(*ends[::-1]), np.array([3, 1, 2, 3, 1, 2])) == 0
