"""Hints for unified memory, and their effect on edges, which are only read.

Grus (Wang et al., TACO 2021), section 3.2 and Table 1. Without a hint, access to a far page faults and the page
migrates; if near memory is full, the block that was filled longest ago is sent back. At most one of accessed-by,
preferred-location and read-mostly applies to the same data; each can be combined with prefetching.
"""

from __future__ import annotations

from enum import Enum


class Hint(Enum):
    """A configuration of Table 1."""

    NONE = "none"
    PREFETCH = "prefetch"
    ACCESSED_BY = "accessed-by"
    PREFERRED_LOCATION = "preferred-location"
    READ_MOSTLY = "read-mostly"
    PREFETCH_ACCESSED_BY = "prefetch+accessed-by"
    PREFETCH_PREFERRED_LOCATION = "prefetch+preferred-location"
    PREFETCH_READ_MOSTLY = "prefetch+read-mostly"

    @property
    def prefetches(self) -> bool:
        """All edges are moved in bulk before the start. If they do not fit, later pages evict earlier ones."""
        return self.value.startswith("prefetch")

    @property
    def advice(self) -> str:
        """What the driver is told about the memory: accessed-by, preferred-location, read-mostly, or nothing."""
        word = self.value.removeprefix("prefetch").removeprefix("+")
        return "" if word == "none" else word

    @property
    def direct(self) -> bool:
        """Pages are mapped from the start: no faults, and far pages are read where they are (zero-copy).

        The hint causes no migration (CUDA driver API, cuMemAdvise). Counters of the device's requests do, where the
        driver follows them (`devices/model/managed_memory.py`). Grus's own Table 1 is divided where everything fits:
        components on SK-2005 take 2.26 times as long as with faults, so pages were read again and again from far
        memory; components and PageRank on Friendster take 0.65 and 0.85 times as long, which pages that stay far do not
        explain.
        """
        return self.value.endswith("accessed-by")

    @property
    def evicts(self) -> bool:
        """A new page evicts another when near memory is full."""
        return not self.direct

    @property
    def copies_back(self) -> bool:
        """An evicted page is sent back over the link; a read-only copy is dropped.

        A preferred location changes nothing if only one device reads, so such pages are sent back, too.
        """
        return not self.value.endswith("read-mostly")
