"""Scaph's choice with plain numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from isthmus.frontier import Activity
from isthmus.policies.policy import COMPACTION, FILTER, NOTHING
from isthmus.policies.scaph_policy import VARIANTS, Scaph


def activity(edges, partition_edges=100):
    edges = np.array(edges, np.int64)
    return Activity(np.minimum(edges, 1), edges, edges, np.broadcast_to(np.int64(partition_edges), edges.shape))


def test_the_papers_subgraph():
    """Figure 5: 3 of 6 edges are useful. That is not more than half, so it is of high value only while growing."""
    seen = activity([3], 6)
    assert Scaph().high(seen, np.array([2])).tolist() == [True]
    assert Scaph().high(seen, np.array([3])).tolist() == [False]
    assert Scaph().high(seen).tolist() == [True]  # there was nothing before the first iteration


def test_high_value_whole_low_value_packed():
    found = Scaph().choose(activity([51, 50, 31, 31, 30, 1, 0]), np.array([99, 50, 30, 31, 0, 0, 9]))
    assert found.tolist() == [FILTER, COMPACTION, FILTER, COMPACTION, COMPACTION, COMPACTION, NOTHING]


def test_without_the_growth_test_growing_partitions_are_packed():
    seen, before = activity([40, 60]), np.array([20, 90])
    assert Scaph().choose(seen, before).tolist() == [FILTER, FILTER]
    assert Scaph(beta=1).choose(seen, before).tolist() == [COMPACTION, FILTER]
    assert Scaph(alpha=1).choose(seen, before).tolist() == [FILTER, COMPACTION]


@pytest.mark.parametrize(
    ("name", "choice", "high"),
    [
        ("scaph", [FILTER, COMPACTION, NOTHING, FILTER], [True, False, False, True]),
        ("hvsp", [FILTER, FILTER, NOTHING, FILTER], [True, True, False, True]),
        ("lvsp", [COMPACTION, COMPACTION, NOTHING, COMPACTION], [False] * 4),
        ("hbase", [FILTER, COMPACTION, NOTHING, FILTER], [True, False, False, True]),
        ("lbase", [FILTER, FILTER, NOTHING, FILTER], [False] * 4),
    ],
)
def test_variants(name, choice, high):
    seen = activity([80, 5, 0, 100])
    assert VARIANTS[name].choose(seen, np.array([90, 4, 1, 100])).tolist() == choice
    assert VARIANTS[name].high(seen, np.array([90, 4, 1, 100])).tolist() == high


def test_only_hbase_runs_in_place():
    assert {name: one.runs for name, one in VARIANTS.items()} == {
        "scaph": 1,
        "hvsp": 1,
        "lvsp": 1,
        "hbase": 2,
        "lbase": 1,
    }
    assert [name for name, one in VARIANTS.items() if not one.queue] == ["hbase"]


@given(
    hnp.arrays(np.int64, 30, elements=st.integers(0, 1 << 40)),
    hnp.arrays(np.int64, 30, elements=st.integers(0, 1 << 40)),
)
def test_high_value_needs_a_share_above_beta_and_active_ones_get_an_engine(edges, before):
    seen = activity(edges, 1 << 40)
    high = Scaph().high(seen, before)
    assert (edges[high] > 0.3 * (1 << 40)).all()
    assert (edges[~high] <= 0.5 * (1 << 40)).all()
    for one in VARIANTS.values():
        assert ((one.choose(seen, before) != NOTHING) == (edges > 0)).all()
