"""What one user has on a card: memory for several arrays or for none, and sources that copies may still read."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pytest
from tests.gpus import LazyCard

from isthmus.devices.cuda import gpu_space
from isthmus.devices.cuda.gpu_space import CardSpace, RowSpace
from isthmus.errors import BudgetError


@dataclass
class NoEvents(LazyCard):
    """A card that has no memory for events."""

    def record(self, stream: int) -> Any:
        raise MemoryError("the card is full")


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


def test_waiting_takes_no_memory() -> None:
    """So memory is never freed under work for want of memory."""
    card = NoEvents()
    with CardSpace(card) as space:
        near = space.upload(np.arange(9))
        space.finish()
        assert near.tolist() == list(range(9))
        space.upload(np.arange(5))
    assert card.held == {} and card.done == card.record_of


def test_a_wait_that_is_interrupted_keeps_what_copies_read(monkeypatch: pytest.MonkeyPatch) -> None:
    card = LazyCard()

    def interrupted(stream: int) -> None:
        raise KeyboardInterrupt

    with CardSpace(card) as space:
        host = np.arange(9)
        read, near = weakref.ref(host), space.upload(host)
        card.record_of.clear()
        card._streams[0][0].reads.clear()
        card._streams[0][0].do = lambda: np.copyto(near, read())  # as a GPU would: it keeps no array of the host alive
        del host
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(card, "drain", interrupted)
            space.finish()
        gc.collect()
        space.finish()
        assert near.tolist() == list(range(9))
    assert card.held == {}


def test_room_for_rows_grows_with_the_rows_that_there_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_space, "ROOM", 100)
    card = LazyCard()
    with CardSpace(card) as space:
        rows = RowSpace(space, 3)
        taken = len(card.held)
        for most, room in ((3, 3), (4, 6), (40, 40), (50, 80), (1000, 100), (2000, 100)):
            rows.grow(most)
            assert (rows.room, len(card.held)) == (room, taken)
            columns = [np.arange(7), np.arange(7) + 10]
            parts = [[near.tolist() for near in part] for part in waited(space, rows.parts(columns, 1))]
            assert [[*chain(*column)] for column in zip(*parts, strict=True)] == [list(range(7)), list(range(10, 17))]
    assert card.held == {}


def waited(space: CardSpace, parts: Any) -> Any:
    for part in parts:
        space.finish()
        yield part


@pytest.mark.parametrize("more", range(9))
def test_rows_keep_their_room_if_there_is_no_more(more: int) -> None:
    card = LazyCard()
    with CardSpace(card) as space:
        rows = RowSpace(space, 3)
        taken = len(card.held)
        card.fails_at = card.taken + more
        rows.grow(1000)
        assert (rows.room, len(card.held)) == (3, taken)
        assert [near.size for (near,) in rows.parts([np.arange(7)])] == [3, 3, 1]
    assert card.held == {}
