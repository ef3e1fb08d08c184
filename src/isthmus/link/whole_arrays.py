"""Whole arrays read from disk by all members of a team."""

from __future__ import annotations

import numpy as np

from isthmus.graph.far import FarArray
from isthmus.graph.store.files import BLOCK, aligned_empty
from isthmus.link.link import Array, Extents, Link, Moved
from isthmus.threads import Team

# Bytes of edges that one call loads: enough to keep the disk busy, and Ctrl-C is handled after each.
AT_ONCE = 128 << 20
THROUGH = 16 << 20  # the same where they pass through a buffer, which every member has


def read_array(team: Team, array: FarArray, index: int, disk: Link, memory: Array, directly: bool = True) -> Moved:
    """Read all blocks of an array, section `index` of a link. While a member checks what has arrived, another's reads
    are under way.

    `directly`: into `memory` itself, else through buffers: not every kind of memory takes direct reads.
    """
    step = min(AT_ONCE if directly else THROUGH, -(-array.blocks // team.size) * BLOCK)
    pieces = range(0, memory.size, step) if array.bytes else range(0)
    moved = [Moved()] * len(pieces)

    def read(piece: int) -> None:
        where, size = np.array(pieces[piece : piece + 1]), min(step, memory.size - pieces[piece])
        buffer, to = (memory, where) if directly else (aligned_empty(size, np.uint8), np.zeros(1, np.int64))
        with disk.lend() as channel:
            requests = disk.move(Extents(np.array([index]), where, np.array([size]), to), buffer, channel)
        if not directly:
            memory[where[0] : where[0] + size] = buffer
        moved[piece] = Moved(size, 0, requests)

    team.each(read, len(pieces))
    total = Moved()
    for each in moved:
        total.add(each)
    return total
