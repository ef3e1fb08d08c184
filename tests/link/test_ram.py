"""The link to arrays in memory: the same extents, copied."""

from __future__ import annotations

import numpy as np

from isthmus.link.link import Extents
from isthmus.link.ram import PROFILE, RamLink


def test_extents_are_copied_and_the_last_may_be_short():
    first, second = np.arange(50, dtype=np.uint32), np.arange(40, dtype=np.float64)
    link = RamLink([first, second])
    buffer = np.full(512, 9, np.uint8)
    block = PROFILE.block
    offsets, lengths, places = (np.array(blocks) * block for blocks in ([0, 1, 3], [1, 2, 1], [0, 2, 5]))
    wanted = Extents(np.array([0, 1, 0]), offsets, lengths, places)
    assert link.move(wanted, buffer) == 3
    assert buffer[:block].view(np.uint32).tolist() == list(range(16))
    assert (buffer[block : 2 * block] == 9).all()
    assert buffer[2 * block : 4 * block].view(np.float64).tolist() == list(range(8, 24))
    assert buffer[5 * block : 5 * block + 8].view(np.uint32).tolist() == [48, 49]
    assert (buffer[5 * block + 8 :] == 9).all()
    link.close()
