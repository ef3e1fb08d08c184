"""Grus's choice: near memory goes to what is used most; edges that do not fit are read from far memory.

Grus (Wang et al., TACO 2021), section 4.1.2 and Algorithm 1. Structures are prefetched whole by priority while they
fit: vertex state and frontier, then offsets, then edges. The first that does not fit (always the edges, here) is
prefetched up to tau of the near memory left, and nothing below it: the part that holds the source's edges with tau =
0.5 for searches, the part from the start with tau = 0.8 where all vertices are active at first. All other pages are
mapped (the hint accessed-by): a kernel reads them where they are, without faults, and nothing is evicted. The pages do
that by themselves (`devices/model/managed_memory.py`). This file decides only what to prefetch.

Where this differs: the paper leaves memory free so that pages that migrate later do not evict others. Over PCIe none
migrates: the hint does not move pages, and the driver follows the device's access counters only where host and device
share page tables. So the memory left over stays empty, as in the release, and on a modelled card a tau of 1 is the
fastest; where counters are followed (`gh200`), it fills. On a disk a page that was read is near anyway, so pages are
kept while there is room (`link/pages.py`).

The paper's "chunk containing the source's edges" is placed so that the source is in its middle, as far as the ends
allow. Prefetching ends at whole partitions. Algorithm 1 treats a structure that fits exactly as one that does not. Its
list puts offsets before the frontier, its text after; both are far smaller than edges. `link/hints.py` explains the
hints of unified memory.
"""

from __future__ import annotations

import numpy as np

from isthmus.link.link import Array

TAU_SEARCH, TAU_ALL_ACTIVE = 0.5, 0.8  # Grus, validated in its section 6.3: share of the near memory left


def prefetched(sizes: Array, near_bytes: int, tau: float) -> Array:
    """Bytes to prefetch of each structure; `sizes` are in order of falling priority."""
    ends = np.cumsum(sizes, dtype=np.int64)
    fits = ends <= near_bytes
    found = np.where(fits, sizes, 0)
    if not fits.all():
        big = int(np.argmin(fits))  # the first that does not fit
        left = near_bytes - int(ends[big] - sizes[big])
        found[big] = min(int(tau * left), int(sizes[big]))
    return found


def region(partition_bytes: Array, room: int, source: int | None = None) -> Array:
    """Which partitions to prefetch into `room` bytes: from the start, or around the one that holds the source's
    edges.
    """
    cuts = np.concatenate([[0], np.cumsum(partition_bytes, dtype=np.int64)])
    begin = 0
    if source is not None:
        middle = (cuts[source] + cuts[source + 1]) // 2
        begin = int(np.clip(middle - room // 2, 0, max(int(cuts[-1]) - room, 0)))
    return np.asarray((cuts[:-1] >= begin) & (cuts[1:] <= begin + room))
