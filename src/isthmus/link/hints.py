"""Hints for unified memory, and what each means for edges, which are only read.

Grus (Wang et al., TACO 2021), section 3.2 and Table 1. Without any, a page that is not near faults, migrates, and when
near memory is full sends the page that was used longest ago back. At most one of accessed-by, preferred-location
and read-mostly holds for the same data; each goes with prefetching.
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
        """All edges are moved in bulk before the start. What does not fit pushes out what came first."""
        return self.value.startswith("prefetch")

    @property
    def direct(self) -> bool:
        """Pages are mapped from the start: no faults, and what is far is read there once near memory is full."""
        return self.value.endswith("accessed-by")

    @property
    def evicts(self) -> bool:
        """A page that comes pushes another out when near memory is full."""
        return not self.direct

    @property
    def copies_back(self) -> bool:
        """An evicted page is sent back over the link; a read-only copy is dropped.

        A preferred location changes nothing where only one device reads, so such pages are sent back, too.
        """
        return not self.value.endswith("read-mostly")
