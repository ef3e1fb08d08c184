"""A list of vertices that kernels make on a GPU, each vertex once (`devices/cuda/kernels/correction.py: add_once`)."""

from __future__ import annotations

import numpy as np

from isthmus.devices.cuda.gpu_space import CardSpace
from isthmus.devices.cuda.kernels import rows as row_kernels
from isthmus.link.link import Array

NOTHING = np.empty(0, np.uint32)


class DeviceVertexList:
    """Room for a list, in near memory: a bit for every vertex, the list, and its length."""

    def __init__(self, space: CardSpace) -> None:
        self._space, self._fill, self._room = space, row_kernels.build(space.card.gpu).fill, 0
        self.arrays: tuple[Array, ...] = ()
        self.taken: Array = NOTHING  # what was taken last, in near memory, until more is added

    def reserve(self, vertices: int) -> None:
        """Have memory for this number of vertices. If more memory is needed, the listed vertices are forgotten."""
        if self._room < vertices or not self.arrays:
            self._space.finish()
            # All references, so that memory is free.
            old, self.arrays, self.taken, self._room = list(self.arrays), (), NOTHING, 0
            self._space.free_each(old)
            self.arrays = self._space.near_each((words_of(vertices), np.uint32), (vertices, np.uint32), (1, np.int64))
            self._room = vertices

    def clear(self) -> None:
        """Forget all vertices."""
        self._space.launch(self._fill, self.arrays[0], 0)
        self._space.launch(self._fill, self.arrays[2], 0)
        self._space.finish()

    def take(self) -> Array:
        """The vertices that were added since the last call; those taken are not added again before `clear`."""
        _, found, count = self.arrays
        vertices = np.empty(self._space.number(count, 0), np.uint32)
        if vertices.size:
            self._space.copy_back(vertices, found[: vertices.size])
            self._space.launch(self._fill, count, 0)
            self._space.finish()
        self.taken = found[: vertices.size]
        return vertices


def words_of(vertices: int) -> int:
    """Words with a bit for every vertex."""
    return -(-vertices // 32) + 1


def listed_bytes(vertices: int) -> int:
    """Near memory that a list of this number of vertices takes."""
    return 4 * (words_of(vertices) + vertices) + 8
