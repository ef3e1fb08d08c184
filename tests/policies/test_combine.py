"""Ways to combine partitions into groups, with plain numbers."""

from __future__ import annotations

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.errors import OptionError
from isthmus.policies.combine import WAYS, apart, by_engine, combined, neighbours
from isthmus.policies.policy import COMPACTION, FILTER, NOTHING, ZERO_COPY


def groups_of(found):
    return [found.partitions[a:b].tolist() for a, b in zip(found.cuts, found.cuts[1:], strict=False)]


def test_the_fifth_filter_partition_in_a_row_begins_a_group():
    """The published algorithm drops it."""
    found = neighbours(np.full(9, FILTER))
    assert groups_of(found) == [[0, 1, 2, 3], [4, 5, 6, 7], [8]]


def test_runs_end_where_another_engine_or_nothing_lies_between():
    f, c, z, n = FILTER, COMPACTION, ZERO_COPY, NOTHING
    found = neighbours(np.array([f, f, z, f, n, f, f, f, f, f, c, z, c]))
    assert groups_of(found) == [[0, 1], [3], [5, 6, 7, 8], [9], [2, 11], [10, 12]]
    assert found.choices.tolist() == [f, f, f, f, z, c]


def test_combination_switched_off():
    choice = np.array([FILTER, FILTER, ZERO_COPY, NOTHING, ZERO_COPY])
    assert len(groups_of(neighbours(choice))) == 2
    assert groups_of(neighbours(choice, k=1)) == [[0], [1], [2, 4]]
    assert groups_of(apart(choice)) == [[0], [1], [2], [4]]
    assert apart(choice).choices.tolist() == [FILTER, FILTER, ZERO_COPY, ZERO_COPY]


@given(hnp.arrays(np.int64, st.integers(0, 60), elements=st.integers(0, 6)), st.integers(1, 6))
def test_combination_preserves_the_partitions_and_their_engines(choice, k):
    found = neighbours(choice, k)
    assert np.sort(found.partitions).tolist() == np.flatnonzero(choice).tolist()
    for group, engine in zip(groups_of(found), found.choices.tolist(), strict=True):
        assert set(choice[group]) == {engine}
        if engine == FILTER:
            assert len(group) <= k
            assert group == list(range(group[0], group[0] + len(group)))
    others = found.choices[found.choices != FILTER]
    assert np.unique(others).size == others.size


def test_all_partitions_of_an_engine_together():
    found = by_engine(np.array([FILTER, ZERO_COPY, NOTHING, FILTER, COMPACTION]))
    assert groups_of(found) == [[0, 3], [1], [4]]
    assert found.choices.tolist() == [FILTER, ZERO_COPY, COMPACTION]


@pytest.mark.parametrize("way", list(WAYS))
def test_every_way_by_its_name(way):
    assert combined(way, np.empty(0, np.int64)).cuts.tolist() == [0]
    choice = np.array([FILTER, FILTER, NOTHING, ZERO_COPY, FILTER, ZERO_COPY])
    groups = groups_of(combined(way, choice))
    assert sorted(p for group in groups for p in group) == [0, 1, 3, 4, 5]
    assert len(groups) == {"buffers": 2, "neighbours": 3, "whole apart": 4, "apart": 5}[way]


def test_an_engine_of_another_package_is_combined_as_any_but_filter():
    assert groups_of(neighbours(np.array([9, FILTER, 9, 9]))) == [[1], [0, 2, 3]]


def test_an_unknown_way():
    with pytest.raises(
        OptionError, match=r"combine: expected one of buffers, neighbours, whole apart, apart, got 'pairs'"
    ):
        combined("pairs", np.zeros(2, np.int64))
