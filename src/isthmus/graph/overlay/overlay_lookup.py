"""Where the edges of a batch lie in a changing graph on disk.

Added arcs are sorted and near. Stored lists are sorted too, and the first target of every block is near. So of each
list that may hold an arc a single block is read, however long the list is. Blocks that are close together are read at
once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from isthmus import sizes
from isthmus.graph.changing.edge_lookup import Search, SideArcs
from isthmus.graph.overlay.overlay_side import OverlaySide
from isthmus.graph.store.extent_reader import ExtentReader, Extents
from isthmus.graph.store.files import BLOCK, Array, aligned_empty
from isthmus.kernels.changing import overlay_arcs as kernels
from isthmus.threads import Team

GAP = 4  # blocks; reading them takes a disk about as long as another request
LEAST = 2 * GAP * BLOCK  # of the buffer


class OverlaySearch(Search):
    """Finds distinct edges, sorted by tail and then head; if the graph is undirected, no tail exceeds its head."""

    def __init__(
        self,
        sides: dict[str, OverlaySide],
        directed: bool,
        tails: Array,
        heads: Array,
        team: Team,
        reader: ExtentReader,
    ) -> None:
        super().__init__(sides, directed, tails, heads, team)
        self._overlays, self._reader = sides, reader

    def _find(self, side: SideArcs, name: str, once: Array) -> None:
        lists, overlay = self._overlays[name], self._overlays[name].overlay
        sought = np.empty(side.ends.size, np.int64)
        added = (overlay.added_tails, overlay.added_heads, overlay.added_weights)
        count = kernels.find_added(
            side.vertices,
            side.others,
            side.ends,
            self._lengths,
            once,
            *added,
            overlay.stored,
            side.places,
            self.exists,
            self.old,
            sought,
        )
        sought = sought[:count]
        lows, highs, blocks = (np.empty(count, np.int64) for _ in range(3))
        targets = lists.base.arrays[0]
        per_block = BLOCK // np.dtype(targets.dtype).itemsize
        kernels.choose_blocks(
            sought,
            side.vertices,
            side.others,
            overlay.begins,
            overlay.added_tails,
            overlay.removed_tails,
            lists.base.fences,
            per_block,
            lows,
            highs,
            blocks,
        )
        order = np.argsort(blocks, kind="stable")
        order = order[np.searchsorted(blocks[order], 0) :]  # without those that can be in no block

        def find(first: int, last: int, near: Array, stage: Array) -> None:
            staged = stage.view(targets.dtype)
            kernels.find_stored(
                order,
                first,
                last,
                sought,
                side.others,
                lows,
                highs,
                near,
                per_block,
                staged,
                overlay.removed_slots,
                side.places,
            )

        self._through(blocks[order], lists.base.sections[0], find)
        self._read_weights(side, sought, lists)

    def _read_weights(self, side: SideArcs, sought: Array, lists: OverlaySide) -> None:
        """Record the edges whose arcs were found in the store, with the weight of each that had not been found yet."""
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

        def take(first: int, last: int, near: Array, stage: Array) -> None:
            some = order[first:last]
            self.old[edges[some]] = stage.view(self.old.dtype)[slots[some] - near[first:last] * (BLOCK // width)]

        self._through(blocks[order], lists.base.sections[1], take)

    def _through(self, blocks: Array, section: int, work: Callable[[int, int, Array, Array], None]) -> None:
        """Read ascending blocks of a section, and let members of the team work(first, last, near, buffer) on some of
        them at a time.

        Block blocks[k], for k in first:last, is block blocks[k] - near[k] of the buffer.
        """
        if not blocks.size:
            return
        blocks_at_once = max(LEAST, sizes.now.staging) // BLOCK
        near, begins, lengths, places = (np.empty(blocks.size, np.int64) for _ in range(4))
        cuts, read_cuts = np.empty(blocks.size + 1, np.int64), np.empty(blocks.size + 1, np.int64)
        portions = kernels.plan_reads(blocks, GAP, blocks_at_once, near, begins, lengths, places, cuts, read_cuts)
        stages: dict[int, Array] = {}

        def portion(member: int, k: int) -> None:
            if member not in stages:
                stages[member] = aligned_empty(blocks_at_once * BLOCK, np.uint8)
            reads = slice(int(read_cuts[k]), int(read_cuts[k + 1]))
            extents = Extents(
                np.full(reads.stop - reads.start, section),
                begins[reads] * BLOCK,
                lengths[reads] * BLOCK,
                places[reads] * BLOCK,
            )
            self._reader.move(extents, stages[member], member)
            work(int(cuts[k]), int(cuts[k + 1]), near, stages[member])

        self._team.share(portion, portions)
