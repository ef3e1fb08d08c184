"""Uses of lists on a GPU take no more near memory than they need; the lists that are chosen are compared in
`test_list_cache.py` and `test_contiguous.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests import sides
from tests.devices.cuda.test_list_cache import DEGREES, N, two
from tests.gpus import LazyCard

from isthmus.cache.list_cache import ListCache
from isthmus.cache.ranking import USES
from isthmus.devices.cuda import ranking
from isthmus.devices.cuda.gpu_space import CardSpace
from isthmus.devices.cuda.ranking import CudaCounts, key_bytes, temporary_bytes
from isthmus.errors import BudgetError
from isthmus.threads import Team

KINDS: tuple[Any, Any] = (np.uint32, np.float64)


class Weighed(LazyCard):
    """Knows the most bytes that were taken at once, without the host's own."""

    most = 0

    def near(self, count: int, dtype: Any) -> Any:
        made = super().near(count, dtype)
        self.most = max(self.most, self.bytes_held)
        return made

    @property
    def bytes_held(self) -> int:
        return sum(array.nbytes for at, array in self.held.items() if at not in self.far)


@pytest.mark.parametrize("at_once", [4, 1 << 19])
@pytest.mark.parametrize("on_read", [False, True])
def test_what_choosing_takes_is_known(on_read: bool, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of a part of the lists lie where those of the part before were."""
    monkeypatch.setattr(ranking, "AT_ONCE", at_once)
    lists, card, team = [sides.lists_of(DEGREES, [0] * N)], Weighed(), Team(1)
    with CardSpace(card) as space:
        there, here = two(space, lists, 200, (np.uint32, None), team, interval=None, on_read=on_read)
        taken = card.bytes_held
        for cache in (there, here):
            cache.use("out", np.arange(0, N, 2))
            cache.fill(lists)
            chunks = cache.chunks
            if on_read:
                chunks.chosen[cache.counts.coldest(chunks.members, chunks.sizes, 100)] = 0
            else:
                chunks.chosen[:] = cache.counts.choose(lists, chunks.held, chunks.chunk, 100)
        assert (there.chunks.chosen == here.chunks.chosen).all() and there.chunks.chosen.any()
        assert card.bytes_held == taken < card.most <= taken + temporary_bytes(N)
    team.close()


def grown(there: ListCache, here: ListCache, vertices: int, entry_bytes: int | None) -> None:
    for cache in (there, here):
        cache.grow(vertices, entry_bytes)
    assert there.counts.words.tolist() == here.counts.words.tolist()


@pytest.mark.parametrize("kinds", [(np.uint32, None), KINDS])
def test_words_of_more_vertices_lie_in_memory_that_lists_have_left(kinds: Any) -> None:
    lists, card, team = [sides.lists_of(DEGREES, [0] * N)], Weighed(), Team(1)
    with CardSpace(card) as space:
        there, here = two(space, lists, 4000, kinds, team, interval=None)
        for cache in (there, here):
            cache.use("out", np.arange(0, N, 2))
        taken = card.bytes_held
        grown(there, here, 2 * N, None)
        assert card.bytes_held == taken, "the index has memory for that"
        lost = there.bytes // 2
        grown(there, here, 10 * N, lost)
        assert card.bytes_held == taken
        for array in (there.chunks.targets, *([] if there.chunks.weights is None else [there.chunks.weights])):
            assert array.size == there.capacity and not np.shares_memory(array, there.counts.words)
    team.close()


def test_words_that_need_memory_of_their_own_give_it_back() -> None:
    lists, card, team = [sides.lists_of(DEGREES, [0] * N)], Weighed(), Team(1)
    with CardSpace(card) as space:
        there, here = two(space, lists, 400, KINDS, team, interval=None)
        for cache in (there, here):
            cache.use("out", np.arange(0, N, 2))
        taken = card.bytes_held
        for vertices in (8 * N, 9 * N):
            assert key_bytes(USES) * vertices > USES.index_bytes * N
            grown(there, here, vertices, None)
            assert card.bytes_held == taken + key_bytes(USES) * vertices
        card.fails_at = card.taken
        with pytest.raises(BudgetError):
            there.grow(10 * N)
        assert there.side_keys == 9 * N and there.counts.words.tolist() == here.counts.words.tolist(), "as before"
        card.fails_at = None
        grown(there, here, 10 * N, None)
        assert isinstance(there.counts, CudaCounts)
    team.close()
    assert card.held == {}
