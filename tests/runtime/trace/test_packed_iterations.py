"""Columns keep what iterations had, in few bytes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from isthmus.runtime.trace.iteration import Iteration
from isthmus.runtime.trace.packed_iterations import Packed, smallest


@pytest.mark.parametrize(
    "values, dtype",
    [
        ([0, 255], np.uint8),
        ([0, 256], np.uint16),
        ([1, 1 << 31], np.uint32),
        ([-1, 255], np.int64),
        ([0, 1 << 32], np.int64),
    ],
)
def test_whole_numbers_take_the_smallest_type(values, dtype):
    found = smallest(np.array(values))
    assert (found.dtype, found.tolist()) == (dtype, values)


def test_equal_numbers_are_one_number():
    assert smallest(np.full(9, 7)) == 7
    assert math.isnan(smallest(np.full(9, np.nan)))
    assert smallest(np.array([np.nan, 1.0])).size == 2


def test_what_an_iteration_lacks_stays_missing():
    records = [Iteration(0, 1, modelled=0.5), Iteration(1, 1), Iteration(2, 1, done=0.25)]
    packed = Packed(records)
    assert [packed.at(k, k, None) for k in range(3)] == records
    assert packed.total("modelled") == 0.5
    assert packed.total(("filter", "bytes")) == 0
    assert packed.column(("filter", "bytes")).tolist() == [0, 0, 0]
    assert packed.engines() == set()
