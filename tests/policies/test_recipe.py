"""Recipes: what each is composed of, what can be switched off, and what changes on a modelled device."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from isthmus.frontier import Activity
from isthmus.link.hints import Hint
from isthmus.link.link import Profile
from isthmus.plugins import LAST
from isthmus.policies.policy import COMPACTION, FILTER, Fixed
from isthmus.policies.recipe import SWITCHES, UNTIL_SETTLED, Recipe
from isthmus.policies.recipes import RECIPES, recipe

PLAIN = Recipe("plain", Fixed("plain", FILTER))
ALL: dict[str, Any] = {field.name: True for field in fields(Recipe) if field.type == "bool"}
FULL = Recipe(
    "full",
    Fixed("full", FILTER),
    **ALL,
    cache="vertices",
    further_runs={"filter": 3},
    combine="neighbours",
    order="contribution",
)
USUAL = {"overlap", "host_decides"}  # what a recipe has unless it says otherwise
OURS = {"best_first", "bottom_up"}  # improvements of algorithms, which only `auto` has


def switched_on(some: Recipe) -> set[str]:
    return {name for name in ALL if getattr(some, name)}


def test_a_recipe_has_what_it_names_and_nothing_else() -> None:
    assert switched_on(PLAIN) == USUAL
    assert (PLAIN.cache, PLAIN.further_runs, PLAIN.combine, PLAIN.order, PLAIN.hint) == (
        "none",
        {},
        "buffers",
        "plain",
        Hint.NONE,
    )
    assert (PLAIN.modelled, PLAIN.variants, PLAIN.place) == ({}, {}, LAST)


@pytest.mark.parametrize(
    ("name", "parts", "lacks", "others"),
    [
        ("filter", {"ahead"}, set(), {}),
        ("subway", set(), {"overlap"}, {"further_runs": {"compaction": UNTIL_SETTLED}}),
        ("emogi", set(), {"host_decides"}, {}),
        ("unified", {"pages"}, {"host_decides"}, {"cache": "pages"}),
        ("grus", {"pages", "prefetch"}, {"host_decides"}, {"cache": "pages", "hint": Hint.ACCESSED_BY}),
        ("scaph", {"queue"}, set(), {"cache": "partitions", "combine": "whole apart"}),
        (
            "hytgraph",
            set(),
            set(),
            {"cache": "vertices", "combine": "neighbours", "order": "contribution", "further_runs": {"filter": 1}},
        ),
        ("auto", {"settle", "merge", "correct", "ahead", "recompute", *OURS, "sweeps"}, set(), {"cache": "partitions"}),
    ],
)
def test_what_each_is_composed_of(name: str, parts: set[str], lacks: set[str], others: dict[str, Any]) -> None:
    """The parts that the papers describe, and what their systems lack of those that all others have."""
    found = RECIPES[name]
    assert switched_on(found) == (USUAL | parts) - lacks
    same = {"cache", "further_runs", "combine", "order", "hint"}
    assert {field: getattr(found, field) for field in same} == {
        field: others.get(field, getattr(PLAIN, field)) for field in same
    }


def test_their_positions_are_their_order() -> None:
    names = ["filter", "subway", "emogi", "unified", "grus", "scaph", "hytgraph", "auto"]
    assert [RECIPES[name].place for name in names] == list(range(1, 9))


def test_auto_on_a_modelled_device_packs_and_runs_again() -> None:
    found = recipe("auto", (), 1)
    assert switched_on(found) == USUAL | OURS | {"weighs_launches"}
    assert found.further_runs == dict.fromkeys(("filter", "zero_copy", "compaction", "cache"), UNTIL_SETTLED)
    assert found.policy.engines == ("filter", "zero_copy", "compaction")
    assert switched_on(recipe("auto", (), 2)) == USUAL | OURS, "it follows both sides"


def test_hytgraph_counts_parts_of_round_trips() -> None:
    """A partition of half a round trip, of which a 70th is active: packed, it takes less of one than 30 requests."""
    seen = Activity(*(np.array([number]) for number in (30, 60, 30, 4096)))
    assert RECIPES["hytgraph"].policy.choose(seen, Profile("pcie", 12.3e9, 96e6, 128, 256, False), 4).tolist() == [
        COMPACTION
    ]


@pytest.mark.parametrize("variant", ["scaph", "hvsp", "lvsp", "hbase", "lbase"])
def test_what_variants_of_scaph_run_again(variant: str) -> None:
    found = recipe(f"scaph:{variant}")
    assert found.queue == (variant in ("scaph", "hvsp"))
    assert found.further_runs == (dict.fromkeys(("filter", "compaction", "cache"), 1) if variant == "hbase" else {})
    assert found.cache == ("none" if variant == "lvsp" else "partitions")


def test_until_settled_is_no_limit() -> None:
    assert UNTIL_SETTLED > 10**9
    assert isinstance(UNTIL_SETTLED, int)


@pytest.mark.parametrize(
    ("part", "keeps"), [({}, False), ({"cache": "pages"}, True), ({"settle": True}, True), ({"queue": True}, True)]
)
def test_each_of_three_parts_keeps_edges_near(part: dict[str, Any], keeps: bool) -> None:
    assert replace(PLAIN, **part).keeps == keeps


@pytest.mark.parametrize("name", list(SWITCHES))
def test_a_part_that_is_switched_off(name: str) -> None:
    off = {
        "cache": {"cache": "none"},
        "combine": {"combine": "apart"},
        "order": {"order": "plain"},
        "recompute": {"recompute": False, "further_runs": {}},
    }.get(name, {name: False})
    found = FULL.without((name,))
    assert found == replace(FULL, **off)
    assert found != FULL
    assert FULL.without(()) == FULL


def test_a_modelled_device_has_no_measured_times() -> None:
    assert switched_on(FULL.on_model(1, False)) == set(ALL) - {
        "settle",
        "merge",
        "correct",
        "ahead",
        "recompute",
        "sweeps",
    }
    packing = replace(FULL, modelled={"cache": "pages", "further_runs": {"filter": 1}})
    for sides, levels, cache, runs in (
        (1, False, "pages", {"filter": 1}),
        (1, True, "pages", {}),
        (2, True, "vertices", {"filter": 3}),
    ):
        found = packing.on_model(sides, levels)
        assert (found.cache, found.further_runs) == (cache, runs)
