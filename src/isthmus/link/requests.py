"""What reading lists asks of memory: requests of a kernel over the interconnect, pieces that a host core fetches.

A warp reads a list line by line, beginning at the line that holds its first byte (EMOGI's merged and aligned access:
Min et al., VLDB 2020). Of every line it asks for the sectors between the first and the last byte it wants, in one
request. So a list that starts unaligned may touch a line more than its length, and requests at its ends are short.
Lists share no request, even where they share a line: other warps read them at other times. A host core that packs lists
reads them one after the other, and finds what it has just fetched in its cache.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isthmus.link.link import Array, Extents


@dataclass
class ListSpans:
    """Entries begins[i]:ends[i] that a kernel reads, from as many sections as there are widths.

    Targets, and right behind them weights where they count.
    """

    begins: Array
    ends: Array
    widths: tuple[int, ...]
    section: int = 0  # of the targets

    def extents(self) -> Extents:
        """The bytes of all lists, section by section, and no others. They have no place to go."""
        wanted = self.ends > self.begins
        begins, ends = self.begins[wanted], self.ends[wanted]
        sections = np.repeat(self.section + np.arange(len(self.widths)), begins.size)
        offsets = np.concatenate([begins * width for width in self.widths])
        lengths = np.concatenate([(ends - begins) * width for width in self.widths])
        return Extents(sections, offsets, lengths, np.zeros(offsets.size, np.int64))


def count(begins: Array, lengths: Array, line: int = 128, sector: int = 32) -> Array:
    """How many requests of 1, 2, ... sectors these lists of bytes take, none of them empty. Sections start at a line."""
    sectors = line // sector
    first, last = begins // sector, (begins + lengths - 1) // sector
    lines = last // sectors - first // sectors + 1
    single = lines == 1
    counts = np.bincount(last[single] - first[single] + 1, minlength=sectors + 1)
    counts += np.bincount(sectors - first[~single] % sectors, minlength=sectors + 1)  # from the list's start to the end of its line
    counts += np.bincount(last[~single] % sectors + 1, minlength=sectors + 1)
    counts[sectors] += int((lines[~single] - 2).sum())
    return counts[1:]


def fetched(extents: Extents, piece: int) -> int:
    """Bytes of the whole pieces of memory that hold extents; neighbours in the order given share one."""
    wanted = extents.lengths > 0
    sections, begins = extents.sections[wanted], extents.offsets[wanted]
    first, last = begins // piece, (begins + extents.lengths[wanted] - 1) // piece
    shared = (sections[1:] == sections[:-1]) & (first[1:] == last[:-1])
    return int((last - first + 1).sum() - shared.sum()) * piece
