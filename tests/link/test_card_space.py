"""What one user has on a card: memory for several arrays or for none, and sources that copies may still read."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.gpus import LazyCard

from isthmus.errors import BudgetError
from isthmus.link.card_space import CardSpace


@dataclass
class NoEvents(LazyCard):
    """A card that has no memory for another event while `full`."""

    full: bool = False

    def record(self, stream: int) -> Any:
        if self.full:
            raise MemoryError("the card is full")
        return super().record(stream)


@pytest.mark.parametrize("room", range(4))
def test_memory_for_several_arrays_is_taken_whole_or_not_at_all(room: int) -> None:
    card = LazyCard(fails_at=room)
    with CardSpace(card) as space:
        if room == 3:
            assert [each.size for each in space.near_each((5, np.uint32), (7, np.uint32), (1, np.int64))] == [5, 7, 1]
        else:
            with pytest.raises(BudgetError, match="not enough GPU memory"):
                space.near_each((5, np.uint32), (7, np.uint32), (1, np.int64))
            assert card.held == {}
    assert card.held == {}


def test_an_event_without_memory_is_a_budget_error_and_keeps_what_copies_read() -> None:
    card = NoEvents()
    with CardSpace(card) as space:
        host = np.arange(9)
        read, near = weakref.ref(host), space.upload(host)
        card.record_of.clear()
        card._streams[0][0].reads.clear()
        card._streams[0][0].do = lambda: np.copyto(near, read())  # as a GPU would: it keeps no array of the host alive
        del host
        card.full = True
        with pytest.raises(BudgetError, match="not enough GPU memory"):
            space.finish()
        gc.collect()
        card.full = False
        space.finish()
        assert near.tolist() == list(range(9))
    assert card.held == {}
