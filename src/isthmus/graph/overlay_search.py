"""Where the edges of a batch lie in a changing graph on disk.

Added arcs are sorted and near. Stored lists are sorted too, and the first target of every block is near. So of each list that may hold an
arc a single block is read, however long the list is. Blocks that are close together are read at once.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from isthmus import sizes
from isthmus.graph.extent_reader import ExtentReader
from isthmus.graph.files import BLOCK, Array, aligned_empty
from isthmus.graph.overlay_side import OverlaySide
from isthmus.graph.search import Search, SideArcs
from isthmus.kernels import overlay as kernels
from isthmus.threads import Team

GAP = 4  # blocks; reading them takes a disk about as long as another request
LEAST = 2 * GAP * BLOCK  # of the buffer


class OverlaySearch(Search):
    """Finds distinct edges, sorted by tail and then head; if the graph is undirected, no tail exceeds its head."""

    def __init__(
        self, sides: dict[str, OverlaySide], directed: bool, tails: Array, heads: Array, team: Team, reader: ExtentReader
    ) -> None:
        super().__init__(sides, directed, tails, heads, team)
        self._overlays, self._reader = sides, reader

    def _find(self, side: SideArcs, name: str, once: Array) -> None:
        lists, overlay = self._overlays[name], self._overlays[name].overlay
        sought = np.empty(side.ends.size, np.int64)
        added = (overlay.added_tails, overlay.added_heads, overlay.added_weights)
        count = kernels.find_added(
            side.vertices, side.others, side.ends, self._lengths, once, *added, overlay.stored, side.places, self.exists, self.old, sought
        )
        sought = sought[:count]
        lows, highs, blocks = (np.empty(count, np.int64) for _ in range(3))
        targets = lists.base.arrays[0]
        per_block = BLOCK // np.dtype(targets.dtype).itemsize
        kernels.choose_blocks(
            sought, side.vertices, side.others, overlay.begins, overlay.added_tails, overlay.removed_tails, lists.base.fences, per_block,
            lows, highs, blocks,
        )  # fmt: skip
        order = np.argsort(blocks, kind="stable")
        order = order[np.searchsorted(blocks[order], 0) :]  # without those that can be in no block
        for first, last, near, stage in self._near(blocks[order], lists.base.sections[0]):
            kernels.find_stored(
                order, first, last, sought, side.others, lows, highs, near * per_block, stage.view(targets.dtype), overlay.removed_slots,
                side.places,
            )  # fmt: skip
        self._read_weights(side, sought, lists)

    def _read_weights(self, side: SideArcs, sought: Array, lists: OverlaySide) -> None:
        """Note the edges whose arcs were found in the store, and the weights of those that were not found before."""
        found = sought[side.places[sought] >= 0]
        edges = side.ends[found] >> 1
        fresh = self.exists[edges] == 0
        found, edges = found[fresh], edges[fresh]
        edges, first = np.unique(edges, return_index=True)  # both arcs of an undirected edge may have been found
        self.exists[edges] = 1
        if not self.old.size or not edges.size:
            return
        slots, width = side.places[found[first]], self.old.dtype.itemsize
        blocks = slots * width // BLOCK
        order = np.argsort(blocks, kind="stable")
        for low, high, near, stage in self._near(blocks[order], lists.base.sections[1]):
            some = order[low:high]
            self.old[edges[some]] = stage.view(self.old.dtype)[slots[some] - near[low:high] * (BLOCK // width)]

    def _near(self, blocks: Array, section: int) -> Iterator[tuple[int, int, Array, Array]]:
        """Ascending blocks of a section, brought near as many at a time as fit: (first, last, near, buffer) of each time.

        Block blocks[k], for k in first:last, begins at block blocks[k] - near[k] of the buffer.
        """
        stage = aligned_empty(max(LEAST, sizes.now.staging), np.uint8)
        room, near, first = stage.size // BLOCK, np.empty(blocks.size, np.int64), 0
        breaks = np.diff(blocks, prepend=blocks[:1]) > GAP
        while first < blocks.size:
            # Reads begin where a gap is too long, and where a buffer begins.
            some = breaks[first:].copy()
            some[0] = True
            starts = np.flatnonzero(some)
            ends = np.append(starts[1:], some.size) - 1
            lengths = blocks[first:][ends] - blocks[first:][starts] + 1
            used = np.cumsum(lengths)
            whole = int(np.searchsorted(used, room, "right"))
            if whole:
                last = first + int(ends[whole - 1]) + 1
                starts, lengths = starts[:whole], lengths[:whole]
            else:  # a single read that is longer than the buffer
                last = first + int(np.searchsorted(blocks[first:], blocks[first] + room))
                starts, lengths = starts[:1], np.array([blocks[last - 1] - blocks[first] + 1])
            places = np.concatenate([[0], np.cumsum(lengths)[:-1]])
            begins = blocks[first:][starts]
            at = np.searchsorted(starts, np.arange(last - first), "right") - 1
            near[first:last] = begins[at] - places[at]
            extents = np.full(starts.size, section), begins * BLOCK, lengths * BLOCK, places * BLOCK
            self._reader.read(extents, stage)
            yield first, last, near, stage
            first = last
