"""Extents cut into groups that pass through a buffer: whole blocks are read into it, and parts of it go on to their
places.

Pure: what is read and what goes where. `disk_link.py` does it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from isthmus.graph.store.files import BLOCK
from isthmus.link.link import Array, Extents


@dataclass
class Group:
    """What goes through a buffer at once: the blocks that are read into it, and the pieces that are needed of them."""

    reads: Extents
    starts: Array  # of the pieces in the buffer, in bytes
    lengths: Array
    places: Array  # where each piece goes


def groups(extents: Extents, section_bytes: Array, room: int) -> Iterator[Group]:
    """Cut extents of any alignment into groups whose blocks fit in `room` bytes, at least four blocks.

    Extents of a section that lie side by side, or in the same block, are read together. What lies past a section's end
    is left out.
    """
    sections, offsets, lengths, places = cut(extents, section_bytes, room - 2 * BLOCK)
    firsts, lasts = offsets // BLOCK, -(-(offsets + lengths) // BLOCK)
    ends = np.cumsum((lasts - firsts) * BLOCK)
    start = 0
    while start < ends.size:
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + room, "right")))
        mine = slice(start, stop)
        yield group(sections[mine], offsets[mine], lengths[mine], places[mine], firsts[mine], lasts[mine])
        start = stop


def cut(extents: Extents, section_bytes: Array, most: int) -> tuple[Array, Array, Array, Array]:
    """The extents without what lies past their sections, in pieces of at most `most` bytes."""
    sections, offsets, lengths, places = extents.columns
    lengths = np.clip(section_bytes[sections] - offsets, 0, lengths)
    counts = -(-lengths // most)
    which = np.repeat(np.arange(lengths.size), counts)
    skips = (np.arange(which.size) - np.repeat(np.cumsum(counts) - counts, counts)) * most
    return sections[which], offsets[which] + skips, np.minimum(lengths[which] - skips, most), places[which] + skips


def group(sections: Array, offsets: Array, lengths: Array, places: Array, firsts: Array, lasts: Array) -> Group:
    """One group; `firsts` and `lasts` are the blocks of its pieces."""
    fresh = np.ones(firsts.size, np.bool_)
    fresh[1:] = (sections[1:] != sections[:-1]) | (firsts[1:] > lasts[:-1]) | (firsts[1:] < firsts[:-1])
    runs, begin = np.cumsum(fresh) - 1, firsts[fresh]
    end = np.zeros(begin.size, np.int64)
    np.maximum.at(end, runs, lasts)
    sizes = (end - begin) * BLOCK
    at = np.cumsum(sizes) - sizes
    return Group(
        Extents(sections[fresh], begin * BLOCK, sizes, at), at[runs] + offsets - begin[runs] * BLOCK, lengths, places
    )
