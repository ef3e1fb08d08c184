"""The cache of whole partitions in the memory of a GPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from isthmus.cache.partition_cache import PartitionCache
from isthmus.devices.cuda.list_mover import ListMover
from isthmus.graph.lists import Lists
from isthmus.link.link import Array


class CudaPartitionCache(PartitionCache):
    """The host decides what is kept; kernels copy it there. A run boards it before it is used."""

    def attach(self, mover: ListMover, lists: Callable[[Lists], tuple[Array, Array]]) -> None:
        self._mover = mover

    def detach(self) -> None:
        vars(self).pop("_mover", None)

    def _copy(self, near: Array, to: int, source: Array, at: int, size: int) -> None:
        froms, tos, lengths = (np.array([each], np.int64) for each in (at, to, size))
        self._mover.copy(froms, tos, lengths, [(source, near)])
