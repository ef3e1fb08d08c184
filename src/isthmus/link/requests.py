"""Memory requests for reading lists: requests of a kernel over the interconnect, and pieces fetched by a host core.

A warp reads a list line by line, starting at the line that holds its first byte (EMOGI's merged and aligned access:
Min et al., VLDB 2020). From each line it requests the sectors between the first and the last byte it needs, in one
request. So an unaligned list may touch one line more than its length needs, and requests at its ends are short. Lists
share no request, even if they share a line: different warps read them at different times. A host core packs lists one
after the other, and finds the piece it has just fetched in its cache.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isthmus.link.link import Array, Extents


@dataclass
class ListSpans:
    """Entries begins[i]:ends[i] that a kernel reads, from as many sections as there are widths.

    The section of targets, followed by that of weights if the program uses them.
    """

    begins: Array
    ends: Array
    widths: tuple[int, ...]
    section: int = 0  # of the targets

    def extents(self) -> Extents:
        """The bytes of all lists, section by section, and no others. All their `places` are 0."""
        wanted = self.ends > self.begins
        begins, ends = self.begins[wanted], self.ends[wanted]
        sections = np.repeat(self.section + np.arange(len(self.widths)), begins.size)
        offsets = np.concatenate([begins * width for width in self.widths])
        lengths = np.concatenate([(ends - begins) * width for width in self.widths])
        return Extents(sections, offsets, lengths, np.zeros(offsets.size, np.int64))


def count(begins: Array, lengths: Array, line: int = 128, sector: int = 32) -> Array:
    """Numbers of requests of 1, 2, ... sectors for non-empty lists, given in bytes. Sections start at a line."""
    sectors = line // sector
    first, last = begins // sector, (begins + lengths - 1) // sector
    lines = last // sectors - first // sectors + 1
    single = lines == 1
    counts = np.bincount(last[single] - first[single] + 1, minlength=sectors + 1)
    # From the list's start to the end of its line.
    counts += np.bincount(sectors - first[~single] % sectors, minlength=sectors + 1)
    counts += np.bincount(last[~single] % sectors + 1, minlength=sectors + 1)
    counts[sectors] += int((lines[~single] - 2).sum())
    return counts[1:]


def fetched(extents: Extents, piece: int) -> int:
    """Bytes of the whole pieces of memory that hold extents; consecutive extents in one piece share it."""
    wanted = extents.lengths > 0
    sections, begins = extents.sections[wanted], extents.offsets[wanted]
    first, last = begins // piece, (begins + extents.lengths[wanted] - 1) // piece
    shared = (sections[1:] == sections[:-1]) & (first[1:] == last[:-1])
    return int((last - first + 1).sum() - shared.sum()) * piece
