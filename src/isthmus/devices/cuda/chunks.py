"""The chunks of the hot subgraph in the memory of a GPU: the host decides which lists lie where, kernels move them.

The index of places is the host's, as in `cache/chunks.py`: it hands out places one by one, which is no work for many
threads. What it tells the GPU is where lists lie and where they go, 24 bytes for each list that moves.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from isthmus.cache.chunks import ChunkedLists
from isthmus.devices.cuda.gpu_space import CardSpace
from isthmus.devices.cuda.list_mover import ListMover
from isthmus.link.link import Array


def unmapped(array: Array) -> Array:
    raise NotImplementedError("no kernel reads far lists here")


class CudaChunkedLists(ChunkedLists):
    """Places for lists in near memory. A run boards it before lists move."""

    def __init__(self, memory: Array, keys: int, dtypes: tuple[Any, Any], longest: int, team: Any) -> None:
        super().__init__(memory, keys, dtypes, longest, team)
        self._lock = threading.Lock()
        self.far: Callable[[Array], Array] = unmapped  # a far array as kernels see it; a stream sets it

    def attach(self, mover: ListMover) -> None:
        self.mover = mover

    def detach(self) -> None:
        vars(self).pop("mover", None)

    @property
    def _near(self) -> list[Array]:
        """Targets and, if there are any, weights."""
        return [self.targets] if self.weights is None else [self.targets, self.weights]

    def _compact(self, chunk: int) -> None:
        members = self.members[chunk]
        members = members[self.begins[members] >= 0]
        froms, lengths = self.begins[members].astype(np.int64), self.sizes[members].astype(np.int64)
        ends = np.cumsum(lengths)
        tos = chunk * self.chunk + ends - lengths
        moves = (froms != tos) & (self.held[members] != 0)
        with self._lock:
            self.mover.shift(froms[moves], tos[moves], lengths[moves], self._near)
        self.begins[members] = tos
        self.members[chunk], self.used[chunk] = members, int(ends[-1]) if ends.size else 0

    def _pour(self, members: Array, at: int, room: int) -> tuple[int, int]:
        lengths = self.sizes[members[::-1]].astype(np.int64)
        ends = np.cumsum(lengths)
        moved = int(np.searchsorted(ends, room, "right"))
        keys, lengths, ends = members[::-1][:moved], lengths[:moved], ends[:moved]
        froms, tos, there = self.begins[keys].astype(np.int64), at + ends - lengths, self.held[keys] != 0
        self._copy(froms[there], tos[there], lengths[there])
        self.begins[keys] = tos
        return moved, int(ends[-1]) if moved else 0

    def _copy(self, froms: Array, tos: Array, lengths: Array) -> None:
        with self._lock:
            self.mover.copy(froms, tos, lengths, [(near, near) for near in self._near])

    def keep(
        self, rows: tuple[Array, ...], offset: int, lists: tuple[Array, Array], targets: Array, weights: Array | None
    ) -> None:
        vertices, begins, weight_begins, lengths = rows
        keys = vertices.astype(np.int64) + offset
        whole = (lengths == lists[1][vertices] - lists[0][vertices]) & (lengths > 0)
        with self._lock:
            chosen = np.flatnonzero(whole & (self.wanted[keys] != 0) & (self.held[keys] == 0))
            keys = keys[chosen]
            tos, lengths = self.begins[keys].astype(np.int64), lengths[chosen]
            self.mover.copy(begins[chosen], tos, lengths, [(targets, self.targets)])
            if self.weights is not None and weights is not None:
                self.mover.copy(weight_begins[chosen], tos, lengths, [(weights, self.weights)])
            self.held[keys] = 1

    def load(self, keys: Array, offset: int, lists: tuple[Array, Array], targets: Array, weights: Array) -> None:
        rows = keys - offset
        froms, far = lists[0][rows], [targets] if self.weights is None else [targets, weights]
        with self._lock:
            pairs = list(zip((self.far(each) for each in far), self._near, strict=True))
            self.mover.fetch(froms, self.begins[keys].astype(np.int64), lists[1][rows] - froms, pairs)
            self.held[keys] = 1

    def refresh(
        self,
        keys: Array,
        groups: Array,
        changes: Any,
        offset: int,
        lists: tuple[Array, Array],
        targets: Array,
        weights: Array,
    ) -> None:
        """The device gets the changes of the batch, and reads the entries that have changed where they are."""
        if not keys.size:
            return
        rows = keys - offset
        begins = lists[0][rows]
        numbers = (begins, lists[1][rows] - begins, self.begins[keys].astype(np.int64), self.held[keys], groups)
        columns = (*numbers, changes.cuts, changes.others, changes.actions, changes.positions)
        weighted = self.weights is not None
        with self._lock, CardSpace(self.mover.space.card) as there:
            near = [there.upload(np.ascontiguousarray(column)) for column in columns]
            near_weights = self.weights if weighted else self.targets
            far = (self.far(targets), self.far(weights if weighted else targets), weighted)
            there.launch(self.mover.rows.list_kernels.refresh, *near, *far, self.targets, near_weights)
            there.finish()  # before the host's columns are freed
        self.held[keys] = 1
