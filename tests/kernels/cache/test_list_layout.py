"""Lists laid out in a cache: those that stay move to the front, in place, and nothing is overwritten."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.kernels.cache.list_layout import lay_out

DEGREES = np.array([5, 1, 0, 4, 2, 30])
OFFSETS = np.concatenate([[0], np.cumsum(DEGREES)])


def marks(*values):
    return np.array(values, np.uint8)


def test_what_is_there_stays_and_room_is_set_aside():
    """In the cache: 0, 3 and, without its edges so far, 4. Wanted: 1, 3 and 4."""
    lists, begins = np.array([0, 3, 4, 0, 0, 0], np.uint32), np.array([0, 0, 0, 5, 9, 0], np.uint32)
    filled = marks(1, 0, 0, 1, 0, 0)
    targets = np.arange(100, 111, dtype=np.uint32)
    count = lay_out(
        lists, 3, marks(0, 1, 0, 1, 1, 0), filled, OFFSETS[:-1], OFFSETS[1:], begins, targets, targets[:0], False
    )
    assert lists[:count].tolist() == [3, 1, 4]
    assert begins[lists[:count]].tolist() == [0, 4, 5]
    assert filled.tolist() == [0, 0, 0, 1, 0, 0]
    assert targets[:4].tolist() == [105, 106, 107, 108]


def test_at_first_everything_is_awaited():
    lists, begins, filled = np.empty(6, np.uint32), np.zeros(6, np.uint32), marks(0, 0, 0, 0, 0, 0)
    none = np.empty(0, np.uint32)
    assert lay_out(lists, 0, marks(1, 1, 0, 0, 0, 0), filled, OFFSETS[:-1], OFFSETS[1:], begins, none, none, False) == 2
    assert (lists[:2].tolist(), begins[:2].tolist(), filled.any()) == ([0, 1], [0, 5], False)


@pytest.mark.parametrize("weighted", [False, True])
@settings(deadline=None)
@given(
    rounds=st.lists(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=12, max_size=12), max_size=6),
    seed=st.integers(0, 99),
)
def test_lists_move_to_the_front_only(weighted, rounds, seed):
    """Round after round others are wanted, and some of those awaited come by."""
    degrees = np.random.default_rng(seed).integers(0, 9, 12)
    offsets = np.concatenate([[0], np.cumsum(degrees)])
    lists, begins, filled = np.empty(12, np.uint32), np.zeros(12, np.uint32), np.zeros(12, np.uint8)
    targets, weights = np.zeros(offsets[-1], np.uint64), np.zeros(offsets[-1] if weighted else 0)
    count = 0
    for chosen in rounds:
        wanted = marks(*(want and degrees[u] > 0 for u, (want, _) in enumerate(chosen)))
        before = {u: int(begins[u]) for u in np.flatnonzero(filled)}
        count = lay_out(lists, count, wanted, filled, offsets[:-1], offsets[1:], begins, targets, weights, weighted)
        assert sorted(lists[:count].tolist()) == np.flatnonzero(wanted).tolist()
        assert begins[lists[:count]].tolist() == (np.cumsum(degrees[lists[:count]]) - degrees[lists[:count]]).tolist()
        assert set(np.flatnonzero(filled).tolist()) == {u for u in before if wanted[u]}
        for u in np.flatnonzero(filled).tolist():
            assert begins[u] <= before[u]
            assert (targets[begins[u] : begins[u] + degrees[u]] == 1000 * u + np.arange(degrees[u])).all()
            assert not weighted or (weights[begins[u] : begins[u] + degrees[u]] == u / 2).all()
        for u, (_, comes) in enumerate(chosen):
            if wanted[u] and comes and not filled[u]:
                targets[begins[u] : begins[u] + degrees[u]] = 1000 * u + np.arange(degrees[u])
                if weighted:
                    weights[begins[u] : begins[u] + degrees[u]] = u / 2
                filled[u] = 1
