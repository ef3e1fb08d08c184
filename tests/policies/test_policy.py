"""Policies with plain numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isthmus.errors import OptionError
from isthmus.frontier import Activity
from isthmus.link.hints import Hint
from isthmus.link.link import Profile, SingleCopy
from isthmus.policies.policy import COMPACTION, FILTER, NAMES, NOTHING, UNIFIED, ZERO_COPY, Cheapest, Policy
from isthmus.policies.recipes import RECIPES, SWITCHES, recipe

DISK = Profile("a disk", 4096e5, 1e4, 4096, 128, True)  # a block alone costs ten times its share of a bulk read


def activity(edges, blocks, partition_edges):
    edges, blocks, partition_edges = (np.array(column) for column in (edges, blocks, partition_edges))
    return Activity(np.minimum(edges, 1), edges, blocks, partition_edges)


@pytest.mark.parametrize(
    ("name", "choice"), [("filter", FILTER), ("emogi", ZERO_COPY), ("subway", COMPACTION), ("unified", UNIFIED)]
)
def test_one_engine_for_all_that_is_active(name, choice):
    assert recipe(name).policy.choose(activity([5, 0, 1], [2, 0, 1], [9, 9, 9]), DISK, 4).tolist() == [
        choice,
        NOTHING,
        choice,
    ]


def test_the_cheaper_of_the_two():
    """100 blocks of a partition cost as much in bulk as 10 blocks alone."""
    whole = 100 * 1024  # edges of 4 bytes
    found = recipe("auto").policy.choose(activity([9, 10, 11, 0, 50], [9, 10, 11, 0, 100], [whole] * 5), DISK, 4)
    assert found.tolist() == [ZERO_COPY, FILTER, FILTER, NOTHING, FILTER]


def test_gaps_make_a_partition_dearer():
    whole = 100 * 1024
    seen = activity([9], [15], [whole])
    assert recipe("auto").policy.choose(seen, DISK, 4).tolist() == [FILTER]
    assert recipe("auto").policy.choose(replace(seen, whole_slots=np.array([2 * whole])), DISK, 4).tolist() == [
        ZERO_COPY
    ]


def test_weights_make_a_partition_dearer():
    whole = 100 * 1024
    assert recipe("auto").policy.choose(activity([9], [15], [whole]), DISK, 4).tolist() == [FILTER]
    assert recipe("auto").policy.choose(activity([9], [15], [whole]), DISK, 8).tolist() == [ZERO_COPY]


def test_packed_lists_where_a_device_can_have_them():
    """A list of one edge is 12 bytes packed and a request alone; nearly whole partitions are not packed; nor is
    anything by slow hosts.
    """
    card = Profile("a card", 128e8, 1e8, 128, 256, True, (), 256e8)
    some = activity([1, 50, 100, 0], [1, 4, 4, 0], [100] * 4)
    on_card = recipe("auto", (), 1).policy
    assert on_card.choose(some, card, 4).tolist() == [COMPACTION, COMPACTION, FILTER, NOTHING]
    assert on_card.choose(some, replace(card, compaction=1e8), 4).tolist() == [ZERO_COPY, FILTER, FILTER, NOTHING]
    assert recipe("auto").policy.choose(some, card, 4).tolist() == [ZERO_COPY, FILTER, FILTER, NOTHING]


def test_on_a_modelled_device_parts_can_be_switched_off_too():
    assert recipe("auto", (), 1).further_runs and recipe("auto", (), 1).cache == "vertices"
    assert (
        recipe("auto", ("cache", "recompute"), 1).cache == "none" and not recipe("auto", ("recompute",), 1).further_runs
    )
    assert not recipe("auto", (), 1, levels=True).further_runs  # it switches to bottom-up search instead
    assert recipe("auto", (), 2).cache == "partitions"  # vertices are kept of one side only
    assert not recipe("auto", (), 1).settle and recipe("auto").settle


def test_nothing_active_and_no_partition():
    for policy in (each.policy for each in RECIPES.values()):
        assert policy.choose(activity([0, 0], [0, 0], [4, 4]), DISK, 4).tolist() == [NOTHING, NOTHING]
        assert policy.choose(activity([], [], []), DISK, 4).size == 0


def test_every_recipe_has_words_for_help_texts():
    words = RECIPES.words()
    assert list(words)[: len(RECIPES)] == list(RECIPES)
    assert all(words[name] == RECIPES[name].words != "" for name in RECIPES)


def test_a_policy_names_the_engines_that_it_chooses():
    some = activity([1, 90, 40, 0], [1, 20, 1000, 0], [1000, 100, 1000, 100])
    for each in (*RECIPES.values(), recipe("auto", (), 1), recipe("scaph:lvsp"), recipe("unified:read-mostly")):
        assert {NAMES[code] for code in each.policy.choose(some, DISK, 4).tolist() if code} <= set(each.policy.engines)


def test_an_unknown_recipe():
    with pytest.raises(
        OptionError, match=r"expected one of filter, subway, emogi, unified, grus, scaph, hytgraph, auto, got 'fastest'"
    ):
        recipe("fastest")


def test_parts_of_a_recipe_are_switched_off_alone():
    for whole in RECIPES.values():
        for name, changes in SWITCHES.items():
            other = recipe(whole.name, (name,))
            assert {key for key in vars(whole) if getattr(whole, key) != getattr(other, key)} <= set(changes)
    for name, parts in {
        "hytgraph": ("cache", "recompute", "combine", "order"),
        "scaph": ("cache", "queue"),
        "grus": ("prefetch",),
    }.items():
        for part in parts:
            assert recipe(name, (part,)) != recipe(name)
    assert not recipe("auto", ("cache", "settle")).keeps
    with pytest.raises(OptionError, match=r"without: expected some of .*, got hubs"):
        recipe("auto", ("hubs",))


def test_variants():
    assert recipe("unified:read-mostly").hint is Hint.READ_MOSTLY
    assert recipe("unified:prefetch+accessed-by").prefetch
    assert recipe("unified:none").name == "unified"
    assert recipe("scaph:scaph").name == "scaph"
    assert recipe("scaph:hbase").further_runs == {"filter": 1, "compaction": 1, "cache": 1}
    assert recipe("scaph:lbase").keeps and not recipe("scaph:lbase").queue
    assert not recipe("scaph:lvsp").keeps
    with pytest.raises(OptionError, match=r"policy: expected one of scaph:scaph, scaph:hvsp, .*, got 'scaph:fast'"):
        recipe("scaph:fast")


def one(vertices, edges, blocks, slots):
    return Activity(*(np.array([number]) for number in (vertices, edges, blocks, slots)))


@pytest.mark.parametrize(
    ("activity", "rates", "choice"),
    [
        (one(100, 500, 200, 1000), (1e9, 1e6, 1e9), COMPACTION),  # 2,800 packed bytes instead of 4,000
        (one(400, 500, 200, 1000), (1e9, 1e6, 1e9), FILTER),  # 5,200: the index of many short lists counts
        (one(100, 775, 200, 1000), (1e9, 1e6, 0.9e9), COMPACTION),  # a little slower than whole, but fewer bytes
        (one(100, 775, 200, 960), (1e9, 1e6, 0.9e9), FILTER),  # as much slower, and more bytes
        (one(100, 775, 200, 975), (1e9, 1e6, 0.9e9), FILTER),  # as many bytes
        # a little slower than blocks apart, but fewer bytes.
        (one(50, 100, 20, 1000), (1e9, 20 / 0.9e-6, 0.8e9), COMPACTION),
        (one(50, 100, 20, 1000), (1e9, 20 / 0.7e-6, 0.8e9), ZERO_COPY),  # too much slower than blocks apart
    ],
)
def test_what_packed_lists_cost(activity, rates, choice):
    bandwidth, request_rate, packing = rates
    card = Profile("a card", bandwidth, request_rate, 128, 256, True, (), packing)
    assert Cheapest(packs=True).choose(activity, card, 4).tolist() == [choice]


def test_packing_alone_pays_for_itself_only_by_time():
    """Where nothing is packed while other lists cross the link, fewer bytes are no reason to wait for them."""
    some = one(100, 775, 200, 1000)
    for kind, choice in ((Profile, COMPACTION), (SingleCopy, FILTER)):
        assert Cheapest(packs=True).choose(some, kind("a card", 1e9, 1e6, 128, 256, True, (), 0.9e9), 4).tolist() == [
            choice
        ]


def test_beside_packing_single_blocks_must_be_clearly_faster():
    """Than whole partitions, by a tenth. Packing is too slow here to be chosen."""
    some = activity([95, 89], [95, 89], [1000 * 1024] * 2)  # whole: as long as 100 blocks
    slow = replace(DISK, compaction=1.0)
    assert Cheapest().choose(some, slow, 4).tolist() == [ZERO_COPY, ZERO_COPY]
    assert Cheapest(packs=True).choose(some, slow, 4).tolist() == [FILTER, ZERO_COPY]


def test_a_policy_must_choose():
    with pytest.raises(TypeError, match=r"abstract.*choose"):
        Policy()
