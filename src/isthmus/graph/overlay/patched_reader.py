"""Reads lists of a stored graph with the arcs that were added and removed since, as if they lay in one array.

Stored blocks come into a staging buffer, from which the entries that are still there go to their place, with the added
ones between them. There is a staging buffer for each channel: while one thread patches, another's reads are under way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.errors import StoreError
from isthmus.graph.far import FarArray
from isthmus.graph.overlay.overlay import Patch
from isthmus.graph.store.extent_reader import ExtentReader, Extents
from isthmus.graph.store.files import BLOCK, Array, aligned_empty
from isthmus.kernels.changing import overlay_arcs as kernels

LEAST = 8 * BLOCK  # of a staging buffer


@dataclass
class Pieces:
    """Slots firsts[i]:lasts[i] of section sections[i], which go to places[i], in bytes, of a buffer."""

    sections: Array
    firsts: Array
    lasts: Array
    places: Array

    def chosen(self, which: Any) -> Pieces:
        return Pieces(self.sections[which], self.firsts[which], self.lasts[which], self.places[which])

    def between(self, low: int, high: int, widths: Array) -> Pieces:
        """The pieces between two places of the buffer, which are multiples of 8 or its end. Pieces follow each other in
        the buffer.
        """
        sizes_now = (self.lasts - self.firsts) * widths[self.sections]
        first = int(np.searchsorted(self.places, low, "right")) - 1
        last = int(np.searchsorted(self.places, high))
        some = self.chosen(np.s_[max(first, 0) : last])
        width, ends = widths[some.sections], some.places + sizes_now[max(first, 0) : last]
        begins = np.clip(some.places, low, high)
        firsts, lasts = some.firsts + (begins - some.places) // width, some.lasts - np.maximum(ends - high, 0) // width
        return Pieces(some.sections, np.minimum(firsts, lasts), lasts, begins)

    def joined(self, widths: Array) -> Pieces:
        """Join pieces that follow each other both in the section and in the buffer."""
        if self.firsts.size < 2:
            return self
        sizes_before = (self.lasts - self.firsts)[:-1] * widths[self.sections[:-1]]
        follows = (self.sections[1:] == self.sections[:-1]) & (self.firsts[1:] == self.lasts[:-1])
        follows &= self.places[1:] == self.places[:-1] + sizes_before
        starts = np.flatnonzero(np.concatenate([[True], ~follows]))
        stops = np.concatenate([starts[1:], [self.firsts.size]]) - 1
        return Pieces(self.sections[starts], self.firsts[starts], self.lasts[stops], self.places[starts])

    def halved(self, large: Array, widths: Array) -> Pieces:
        """Split each of the large pieces into two."""
        middles = (self.firsts + self.lasts + 1) // 2
        index = np.repeat(np.arange(large.size), 1 + large)
        second = np.concatenate([[False], index[1:] == index[:-1]])
        halves = self.chosen(index)
        first_half = large[index] & ~second
        halves.lasts = np.where(first_half, middles[index], halves.lasts)
        moved = (middles - self.firsts) * widths[self.sections]
        halves.firsts, halves.places = (
            np.where(second, middles[index], halves.firsts),
            halves.places + np.where(second, moved[index], 0),
        )
        return halves


class PatchedReader:
    """Reads pieces of patched arrays. `reader` reads their stored ones, whose numbers there are `sections`."""

    def __init__(self, reader: ExtentReader, arrays: list[FarArray], sections: list[int]) -> None:
        self._reader = reader
        self._patches = [patch_of(array) for array in arrays]
        self.counts = np.array([array.count for array in arrays], np.int64)
        self.dtypes = [np.dtype(array.dtype) for array in arrays]
        self.widths = np.array([dtype.itemsize for dtype in self.dtypes], np.int64)
        self._stored = np.array(sections, np.int64)
        self._stages: dict[int, Array] = {}  # by channel

    def read(self, pieces: Pieces, buffer: Array, channel: int = 0) -> int:
        """Fill a buffer of bytes; returns the number of requests. One thread uses a channel at a time."""
        pieces = pieces.chosen(pieces.lasts > pieces.firsts).joined(self.widths)
        if channel not in self._stages:
            self._stages[channel] = aligned_empty(max(LEAST, sizes.now.staging), np.uint8)
        stage, requests = self._stages[channel], 0
        for section in np.unique(pieces.sections).tolist():
            requests += self._read(section, pieces.chosen(pieces.sections == section), stage, buffer, channel)
        return requests

    def _read(self, section: int, pieces: Pieces, stage: Array, buffer: Array, channel: int) -> int:
        """Pieces of one section."""
        patch, dtype, width = self._patches[section], self.dtypes[section], int(self.widths[section])
        overlay, requests = patch.overlay, 0
        pieces, located = self._located(patch, pieces, stage.size // width - 2 * BLOCK // width)
        stored_firsts, stored_lasts, added_at, removed_at = located
        places, near = pieces.places // width, np.empty(pieces.firsts.size, np.int64)
        reads = tuple(np.empty(pieces.firsts.size, np.int64) for _ in range(4))
        at, staged, out = 0, stage.view(dtype), buffer.view(dtype)
        while at < pieces.firsts.size:
            stop, count = kernels.cover(
                at, stored_firsts, stored_lasts, pieces.sections, self.widths, BLOCK, stage.size, near, *reads
            )
            if count:
                sections, offsets, lengths, where = (column[:count] for column in reads)
                requests += self._reader.move(Extents(self._stored[sections], offsets, lengths, where), stage, channel)
            kernels.patch(
                pieces.firsts,
                pieces.lasts,
                places,
                at,
                stop,
                stored_firsts,
                added_at,
                removed_at,
                near,
                overlay.begins,
                overlay.added_tails,
                patch.added,
                overlay.removed_slots,
                staged,
                out,
            )
            if patch.needs_bounds and kernels.beyond(
                pieces.firsts, pieces.lasts, places, at, stop, out, overlay.vertices - 1
            ):
                path = patch.base.open_file().path
                raise StoreError(
                    f"{path}: a list has a vertex that was removed, as in-edges and out-edges differ; run "
                    f"isthmus verify"
                )
            at = stop
        return requests

    def _located(self, patch: Patch, pieces: Pieces, capacity: int) -> tuple[Pieces, tuple[Array, Array, Array, Array]]:
        """The stored slots that pieces need. A piece that needs more than `capacity` stored entries is halved until
        it does not.
        """
        overlay = patch.overlay
        while True:
            found = tuple(np.empty(pieces.firsts.size, np.int64) for _ in range(4))
            kernels.locate(
                pieces.firsts,
                pieces.lasts,
                overlay.begins,
                overlay.vertices,
                overlay.added_tails,
                overlay.removed_tails,
                overlay.removed_slots,
                *found,
            )
            large = found[1] - found[0] > capacity
            if not large.any():
                return pieces, (found[0], found[1], found[2], found[3])
            pieces = pieces.halved(large, self.widths)

    def close(self) -> None:
        """Close the files; for a reader of its own."""
        self._reader.close()

    def entries(self, section: int, first: int, last: int) -> Array:
        """Entries first:last of a section."""
        out = np.empty((last - first) * int(self.widths[section]), np.uint8)
        self.read(Pieces(*(np.array([each], np.int64) for each in (section, first, last, 0))), out)
        return out.view(self.dtypes[section])


def patch_of(array: FarArray) -> Patch:
    if array.patch is None:
        raise StoreError(f"{array.name} is not patched; this is a bug, please report it")
    return array.patch
