"""Reads of lists by a stream on a GPU: the edges stay in the host's memory, page-locked where they lie, and the host changes them there.

The hot subgraph lies in the GPU's memory. Runs follow what has improved by kernels, which read lists that are not held by zero-copy.
The loops that correct answers read the host's memory, as for a modelled device; what they would read is counted (`reads.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from isthmus.cache.cuda_chunks import CudaChunkedLists
from isthmus.cache.hot_subgraph import VERTEX_BYTES, HotSubgraph
from isthmus.graph.change import Change
from isthmus.graph.lists import Lists
from isthmus.kernels.cuda.card import Card, Shared
from isthmus.link.card_space import CardSpace, RowSpace, taken
from isthmus.link.cuda import CudaLink
from isthmus.link.link import Array
from isthmus.link.list_mover import ListMover
from isthmus.stream.reads import FarReads


class OutlastingHotSubgraph(HotSubgraph):
    """Has a mover of its own, as lists also move between runs."""

    def board(self, mover: ListMover, lists: Callable[[Lists], tuple[Array, Array]]) -> None:
        """It needs nothing of a run."""

    def leave(self) -> None:
        """It keeps its mover."""


class CudaReads(FarReads):
    """Edges in page-locked memory of the host. Close it after the session."""

    def __init__(self, *given: Any) -> None:
        """As `FarReads`, and a card."""
        *others, card = given
        self._card: Card = card
        self._space = CardSpace(card)
        self._registered: dict[int, Shared] = {}  # by address
        try:
            super().__init__(*others)
        except BaseException:
            self.close()
            raise

    def _hot_subgraph(self, near_bytes: int) -> HotSubgraph:
        snapshot = self._graph.snapshot
        memory = self._space.near(near_bytes + VERTEX_BYTES * len(self._sides) * snapshot.vertices, "uint8")
        kinds = (snapshot.target_dtype, snapshot.weight_dtype if self._weights else None)
        hot = OutlastingHotSubgraph(
            self._sides, self._lists(), memory, kinds, self._graph.team, None, self._recipe.on_read, CudaChunkedLists
        )
        assert isinstance(hot.chunks, CudaChunkedLists)
        hot.chunks.board(ListMover(RowSpace(self._space, snapshot.vertices)))
        hot.chunks.far = self._far
        return hot

    def _far(self, array: Array) -> Array:
        """A far array as kernels see it."""
        far: Array = self._register(array.view("uint8")).device.view(array.dtype)
        return far

    def _register(self, section: Array) -> Shared:
        at = address(section)
        known = self._registered.get(at)
        if known is None or known.host.size != section.size:
            self._unregister([at])
            known = self._registered[at] = taken(self._card, self._card.register, section)
        return known

    def _unregister(self, addresses: list[int]) -> None:
        for at in addresses:
            if at in self._registered:
                self._card.free(self._registered.pop(at))

    def link(self, names: list[str], arrays: list[Array]) -> CudaLink:
        return CudaLink([self._register(array.view("uint8")) for array in arrays], self._device, self._card)

    def committed(self, change: Change) -> None:
        """Arrays that the graph has replaced are let go before others are used."""
        used = {address(array) for side in self._sides for array in self._graph.sides[side].arrays()[2:]}
        self._unregister([at for at in self._registered if at not in used])
        super().committed(change)

    def close(self) -> None:
        self._space.close()
        self._unregister(list(self._registered))


def address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])
