"""HyTGraph's choice and combination with plain numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from isthmus.frontier import Activity
from isthmus.link.link import Profile
from isthmus.policies.hytgraph_policy import ENGINES, HyTGraph
from isthmus.policies.policy import COMPACTION, FILTER, NOTHING, ZERO_COPY

PCIE = Profile("pcie", 12.3e9, 96e6, 128, 256, False)
MB32 = (32 << 20) // 4  # edges of a partition in the paper: 32 MB of 4 bytes, 1024 round trips of 256 x 128 bytes


def activity(vertices, edges, blocks, partition_edges):
    columns = (np.atleast_1d(np.array(column, np.int64)) for column in (vertices, edges, blocks, partition_edges))
    return Activity(*np.broadcast_arrays(*columns))


def choose(vertices, edges, blocks, partition_edges=MB32, entry_bytes=4, **options):
    return HyTGraph(**options).choose(activity(vertices, edges, blocks, partition_edges), PCIE, entry_bytes).tolist()


def test_the_papers_toy_graph():
    """Figure 4: half of 128 edges are active, from 6 vertices or from 3, each a request. Single-request round trips."""
    one = HyTGraph(in_a_round_trip=1)
    seen = activity([6, 3], 64, [6, 3], 128)
    costs = one.costs(seen, PCIE, 4)
    assert costs.filter.tolist() == [4, 4]
    assert costs.compaction.tolist() == [3, 3]  # 256 bytes of edges and an index
    assert costs.zero_copy.tolist() == [6 * 0.8125, 3 * 0.8125]  # 0.625 + 0.375 / 2
    assert one.choose(seen, PCIE, 4).tolist() == [FILTER, ZERO_COPY]


def test_formulas_in_round_trips():
    costs = HyTGraph().costs(activity(10_000, 100_000, 12_000, MB32), PCIE, 4)
    assert costs.filter.tolist() == [1024]
    assert costs.compaction.tolist() == [15]  # (400,000 + 80,000) bytes / 32,768 = 14.6
    assert costs.zero_copy.tolist() == [pytest.approx(47 * (0.625 + 0.375 * 100_000 / MB32))]


def test_the_first_iteration_of_pagerank_filters_and_of_a_search_is_zero_copy():
    degree = 38
    everything = choose(MB32 // degree, MB32, MB32 // degree * 3)  # 152 bytes, misaligned
    assert everything == [FILTER]
    assert choose(1, degree, 2) == [ZERO_COPY]


def test_lists_that_fill_their_requests_exactly_are_filtered():
    assert choose(MB32 // 32, MB32, MB32 // 32) == [FILTER]


def test_short_lists_are_compacted_and_long_ones_are_not():
    assert choose(100_000, 200_000, 100_000) == [COMPACTION]
    assert choose(2_000, 200_000, 8_000) == [ZERO_COPY]


def test_without_alpha_or_beta_or_gamma_the_choice_is_another():
    """Each constant decides a case of its own."""
    dense = (4_000_000, MB32 // 2, 4_000_000)
    assert choose(*dense) == [FILTER]  # packed: 1489 of 1024 round trips with the index
    assert choose(*dense, index_bytes=0) == [COMPACTION]
    assert choose(*dense, index_bytes=0, alpha=0.4) == [FILTER]
    medium = (30_000, 300_000, 33_000)
    assert choose(*medium) == [ZERO_COPY]  # 44 round trips against 0.4 x 82
    assert choose(*medium, beta=1) == [COMPACTION]
    single = (200_000, 200_000, 300_000)
    assert choose(*single, alpha=0) == [ZERO_COPY]  # 1172 round trips, damped to 740, against 1024
    assert choose(*single, alpha=0, gamma=1) == [FILTER]


def test_the_packing_rate_is_the_papers_second_term():
    short = (100_000, 200_000, 100_000)
    assert choose(*short) == [COMPACTION]
    assert choose(*short, packing_rate=10_000) == [ZERO_COPY]  # 160 more round trips
    costs = HyTGraph(packing_rate=1_000_000).costs(activity(10_000, 100_000, 12_000, MB32), PCIE, 4)
    assert costs.compaction.tolist() == [15 + 0.48]


def test_compaction_must_be_below_its_shares_of_the_others():
    """4 round trips packed, 5 whole: 0.8 of them is not below it. Alone they take many, or 10 of which 0.4 is not below
    it.
    """
    assert choose(100, 32_000, 12_800, 5 * 8192) == [FILTER]
    assert choose(100, 32_000, 12_800, 5 * 8192, alpha=0.81) == [COMPACTION]
    assert choose(100, 32_000, 10 * 256, 50 * 8192, gamma=1) == [ZERO_COPY]
    assert choose(100, 32_000, 10 * 256, 50 * 8192, gamma=1, beta=0.41) == [COMPACTION]


def test_whole_round_trips_hide_differences_in_small_partitions():
    small = 4096  # edges: half a round trip
    assert choose(4000, 4000, 4000, small, round_up=True) == [FILTER]
    assert choose(30, 60, 30, small, round_up=True) == [ZERO_COPY]
    assert choose(30, 60, 30, small, round_up=False) == [COMPACTION]


@pytest.mark.parametrize("left", sorted(ENGINES))
def test_an_engine_left_out_is_never_chosen(left):
    cases = ([MB32 // 38, 1, 100_000], [MB32, 38, 200_000], [MB32 // 38 * 3, 2, 100_000])
    assert left in choose(*cases)
    found = choose(*cases, engines=ENGINES - {left})
    assert left not in found
    assert NOTHING not in found
    assert choose(*cases, engines=frozenset({left})) == [left] * 3


def test_alpha_zero_without_filter_warns_of_nothing():
    with np.errstate(all="raise"):
        assert choose(100_000, 200_000, 100_000, alpha=0, engines=ENGINES - {FILTER}) == [ZERO_COPY]


def test_weights_count_in_bytes():
    """Twice the bytes an edge: packed lists cost more, requests as counted."""
    assert choose(30_000, 600_000, 90_000, entry_bytes=4) == [COMPACTION]
    assert choose(30_000, 600_000, 90_000, entry_bytes=8) == [ZERO_COPY]


def test_partitions_above_32_bits():
    costs = HyTGraph().costs(activity(1 << 33, 1 << 34, 1 << 34, 1 << 35), PCIE, 8)
    assert costs.filter.tolist() == [(1 << 38) // (1 << 15)]
    assert costs.compaction.tolist() == [((1 << 37) + (1 << 36)) // (1 << 15)]
    assert costs.zero_copy.tolist() == [(1 << 26) * 0.8125]


@given(hnp.arrays(np.int64, 40, elements=st.integers(0, 1 << 34)), st.sampled_from([1, 4, 8]), st.booleans())
def test_exactly_the_active_partitions_get_an_engine(edges, entry_bytes, round_up):
    found = HyTGraph(round_up=round_up).choose(
        activity(np.minimum(edges, 9), edges, edges // 7 + 1, edges + 5), PCIE, entry_bytes
    )
    assert ((found != NOTHING) == (edges > 0)).all()


def test_a_partition_of_one_edge():
    """All of it is active, so its request is a whole round trip."""
    assert HyTGraph(in_a_round_trip=1).costs(activity([1, 0], [1, 0], [1, 0], [1, 0]), PCIE, 4).zero_copy.tolist() == [
        1,
        0,
    ]


def test_no_partition():
    none = np.empty(0, np.int64)
    assert HyTGraph().choose(Activity(none, none, none, none), PCIE, 4).size == 0


def test_gaps_move_with_a_whole_partition_and_are_no_edges():
    """Formula (1) counts slots; the share of active edges in (3), edges."""
    plain, spread = (
        Activity(*(np.array([n]) for n in (10, 1000, 2000, 1000)), whole_slots=slots)
        for slots in (None, np.array([4000]))
    )
    full = PCIE.block * 256
    without, with_gaps = (HyTGraph(round_up=False).costs(seen, PCIE, 4) for seen in (plain, spread))
    assert without.filter == pytest.approx([1000 * 4 / full])
    assert with_gaps.filter == pytest.approx([4000 * 4 / full])
    assert with_gaps.zero_copy.tolist() == without.zero_copy.tolist()
    assert with_gaps.compaction.tolist() == without.compaction.tolist()
