"""The link to a stored graph with an overlay of changes: it delivers the changed graph as if that were stored.

Engines, caches and kernels know nothing of it. Blocks of the changed graph begin elsewhere than stored ones, so one of
them may need two stored blocks. That hardly matters for long reads; for single lists only their own stored blocks are
read (`gather`).
"""

from __future__ import annotations

import numpy as np

from isthmus.graph.far import FarArray
from isthmus.graph.overlay.patched_reader import PatchedReader, Pieces, patch_of
from isthmus.graph.store.extent_reader import ExtentReader
from isthmus.link.link import CHANNELS, Array, Extents, Link, Profile
from isthmus.link.requests import ListSpans


class PatchedLink(PatchedReader, Link):
    """Reads arrays in files, and patches them. Its channels each have a staging buffer."""

    def __init__(self, arrays: list[FarArray], profile: Profile, verify: bool = True) -> None:
        self.profile = profile
        stored = ExtentReader([patch_of(array).base for array in arrays], profile.depth, CHANNELS, verify)
        self.notes = stored.notes
        super().__init__(stored, arrays, list(range(len(arrays))))

    def move(self, extents: Extents, buffer: Array, channel: int = 0) -> int:
        widths, counts = self.widths[extents.sections], self.counts[extents.sections]
        lasts = np.minimum((extents.offsets + extents.lengths) // widths, counts)
        return self.read(
            Pieces(extents.sections, extents.offsets // widths, lasts, extents.places), buffer.view(np.uint8), channel
        )

    def gather(self, extents: Extents, buffer: Array, lists: ListSpans, channel: int = 0) -> int:
        """Only the lists themselves: the rest of the extents' blocks stays as it was."""
        found = []
        for k, width in enumerate(lists.widths):
            section = lists.section + k
            mine = np.flatnonzero(extents.sections == section)
            offsets, places = extents.offsets[mine], extents.places[mine]
            at = np.searchsorted(offsets, lists.begins * width, "right") - 1
            found.append(
                (
                    np.full(lists.begins.size, section),
                    lists.begins,
                    lists.ends,
                    places[at] + lists.begins * width - offsets[at],
                )
            )
        columns = [np.concatenate(column) for column in zip(*found, strict=True)]
        return self.read(Pieces(*columns), buffer.view(np.uint8), channel)
