"""A link to arrays in memory: bytes are copied, so engines work as they do with a disk."""

from __future__ import annotations

import numpy as np

from isthmus.link.link import Array, Extents, Link, Profile

PROFILE = Profile("memory", 8e9, 50e6, 64, 1, False)


class RamLink(Link):
    """Copies out of arrays; for graphs that were read into memory, and for tests."""

    def __init__(self, arrays: list[Array], profile: Profile = PROFILE) -> None:
        self.profile = profile
        self.notes = []
        self._arrays = [array.view(np.uint8) for array in arrays]

    def move(self, extents: Extents, buffer: Array, channel: int = 0) -> int:
        near = buffer.view(np.uint8)
        for section, offset, length, place in extents.each():
            part = self._arrays[section][offset : offset + length]  # shorter at the end of the array
            near[place : place + part.size] = part
        return int(extents.lengths.size)

    def close(self) -> None:
        self._arrays = []
