"""The covering array covers, and what it misses is seen."""

from __future__ import annotations

import itertools

from tests.covering import covering, missed, pairs

GIVEN = [(graph, program) for graph in "abcde" for program in range(4) if (graph, program) != ("a", 0)]
# Not everything goes together.
CHOICES = [way for way in itertools.product("xyz", (1, 2, 5), (True, False)) if way[:2] != ("z", 5)]


def test_all_pairs_meet():
    chosen = covering(GIVEN, CHOICES, 3)
    assert list(chosen) == GIVEN
    assert all(1 <= len(ways) <= 3 and set(ways) <= set(CHOICES) for ways in chosen.values())
    assert missed(GIVEN, CHOICES, chosen) == set()
    assert missed(GIVEN, CHOICES, covering(GIVEN, CHOICES, 5, [(1, 2, 3)]), [(1, 2, 3)]) == set()


def test_no_way_is_gone_that_brings_nothing_new():
    """More room than is needed stays empty; the first way of a row is always gone."""
    much = covering(GIVEN, CHOICES, 50)
    assert missed(GIVEN, CHOICES, much) == set()
    assert sum(map(len, much.values())) < 3 * len(GIVEN) and min(map(len, much.values())) == 1


def test_it_is_the_same_every_time():
    assert covering(GIVEN, CHOICES, 2) == covering(GIVEN, CHOICES, 2)


def test_what_is_missed_is_named():
    chosen = {row: [CHOICES[0]] for row in GIVEN}
    lost = missed(GIVEN, CHOICES, chosen)
    assert ((0, 2), "a", "y") in lost
    assert ((3, 4), 1, True) not in lost
    assert not any(meeting[0] == (0, 1) for meeting in lost), "every row of the given ones is there"
    assert not any(meeting[1:] == ("z", 5) for meeting in lost), "only what the product has can be missed"


def test_pairs_of_columns():
    assert pairs(3) == [(0, 1), (0, 2), (1, 2)]
