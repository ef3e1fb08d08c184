"""The link of a stream to a GPU whose kernels read lists through managed memory: as `devices/model/lru_pages.py`
counts, on a real interconnect.

The driver migrates pages when kernels touch them, and when the host does. A GPU does not say which of its pages are
near, so pages, faults and their bytes are those of modelled pages of 4 KB, of which the least recently used go; the
driver has rules of its own.
"""

from __future__ import annotations

from isthmus.devices.cuda.card import Card, Shared
from isthmus.devices.cuda.link import CudaLink
from isthmus.devices.model.figures import GpuFigures
from isthmus.devices.model.lru_pages import LruPagedLink, LruPages


class CudaLruPagedLink(LruPagedLink, CudaLink):
    """Far arrays that lie in managed memory; the caller frees it."""

    def __init__(self, arrays: list[Shared], names: list[str], device: GpuFigures, pages: LruPages, card: Card) -> None:
        CudaLink.__init__(self, arrays, device, card)
        self._names, self._lru = names, pages
        self.notes.append("pages and faults are modelled: a GPU does not report them")
