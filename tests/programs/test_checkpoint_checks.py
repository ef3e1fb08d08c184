"""Whatever a checkpoint brings back is refused unless it is of the right kind and within its bounds."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.frontier import Frontier
from isthmus.programs import checkpoint_checks

WRONG = (ValueError, TypeError, KeyError)


@pytest.mark.parametrize("value", [4, -1, 10**30, 1.0, "1", None, True, [1]])
def test_only_whole_numbers_within_bounds(value):
    assert checkpoint_checks.integer(3, 0, 3) == checkpoint_checks.integer(np.uint8(3), 0, 3) == 3
    with pytest.raises(WRONG, match="expected a"):
        checkpoint_checks.integer(value, 0, 3)


@pytest.mark.parametrize("value", [float("nan"), "1", None, True, [1]])
def test_only_numbers(value):
    assert checkpoint_checks.real(np.float64(0.5)) == 0.5 and checkpoint_checks.real(float("-inf")) < 0
    with pytest.raises(WRONG, match="expected a number"):
        checkpoint_checks.real(value)


@pytest.mark.parametrize("value", [0, 1, "yes", None])
def test_only_truth(value):
    assert checkpoint_checks.truth(np.bool_(True)) and not checkpoint_checks.truth(False)
    with pytest.raises(WRONG, match="true or false"):
        checkpoint_checks.truth(value)


@pytest.mark.parametrize(
    "kept",
    [
        {"a": np.zeros(3, np.int32), "b": (1, 2)},
        {"a": np.zeros(4), "b": (1, 2)},
        {"a": None, "b": (1, 2)},
        {"a": 1, "b": (1, 2)},
        {"a": np.zeros(3), "b": (1,)},
        {"a": np.zeros(3), "b": 1},
        {"b": (1, 2)},
        [],
    ],
    ids=str,
)
def test_only_what_has_the_same_structure(kept):
    fresh = {"a": np.zeros(3), "b": (1, 2)}
    checkpoint_checks.alike({"a": np.ones(3), "b": (5, 6), "c": "more"}, fresh)
    checkpoint_checks.alike({"a": np.ones(3), "b": (5, 6)}, {**fresh, "b": None})
    with pytest.raises(WRONG):
        checkpoint_checks.alike(kept, fresh)


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (lambda numbers: checkpoint_checks.within(numbers, 4), [[0, 4], []], [[5], [-1]]),
        (lambda numbers: checkpoint_checks.within(numbers, 4, -1), [[-1, 4]], [[5], [-2]]),
        (lambda words: checkpoint_checks.bits(words.astype(np.uint64), 3), [[7, 0], []], [[8], [1, 2**40], [-1]]),
        (lambda parents: checkpoint_checks.roots(parents), [[0, 0, 2, 2], []], [[1, 2, 2], [1, 0], [0, 3], [-1]]),
        (lambda numbers: checkpoint_checks.finite(numbers / 2.0), [[1, 2], []], []),
    ],
)
def test_bounds(check, good, bad, monkeypatch):
    monkeypatch.setattr(checkpoint_checks, "AT_ONCE", 2)
    for numbers in good:
        check(np.array(numbers, np.int64))
    for numbers in bad:
        with pytest.raises(WRONG, match="expected"):
            check(np.array(numbers, np.int64))


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite(number):
    with pytest.raises(WRONG, match="finite"):
        checkpoint_checks.finite(np.zeros(3), np.array([0.0, number]))


@pytest.mark.parametrize("active", [[2, 3, 4], [1, 2], [2], [2, 4], []])
def test_only_a_window_of_active_vertices(active):
    frontier = Frontier(8, 1)
    frontier.start(np.array([2, 3]))
    checkpoint_checks.exactly(frontier, 2, 4)
    other = Frontier(8, 1)
    other.start(np.array(active, np.int64))
    with pytest.raises(WRONG, match="expected the active vertices to be 2 to 3"):
        checkpoint_checks.exactly(other, 2, 4)
