"""Positions of lists on a card: uploaded once, freed when they are not needed any more."""

from __future__ import annotations

import numpy as np
import pytest
from tests.gpus import LazyCard

from isthmus.devices.cuda.gpu_lists import CardLists
from isthmus.errors import BudgetError
from isthmus.graph.lists import Lists

OFFSETS = np.array([0, 3, 3, 10], np.int64)


def test_lists_are_uploaded_once_and_stay() -> None:
    card = LazyCard()
    there = CardLists(card)
    whole, gaps = Lists.of(OFFSETS), Lists(OFFSETS[:-1], np.array([2, 3, 9], np.int64))
    for _ in range(2):
        for lists in (whole, gaps):
            begins, ends = there.there(lists)
            assert begins.tolist() == lists.begins.tolist() and ends.tolist() == lists.ends.tolist()
    assert [work.bytes for work in card.record_of] == [32, 24, 24]  # lists without gaps are one array
    there.keep_only([gaps])
    assert len(card.held) == 2
    there.there(whole)
    assert len(card.record_of) == 4
    there.close()
    assert card.held == {}


def test_nothing_stays_of_lists_that_find_no_room() -> None:
    card = LazyCard(fails_at=1)
    there = CardLists(card)
    with pytest.raises(BudgetError, match="not enough GPU memory"):
        there.there(Lists(OFFSETS[:-1], np.array([2, 3, 9], np.int64)))
    assert card.held == {}
    there.close()


def test_a_graph_without_vertices_has_lists_too() -> None:
    card = LazyCard()
    there = CardLists(card)
    begins, ends = there.there(Lists.of(np.zeros(1, np.int64)))
    assert begins.size == ends.size == 0
    there.close()
