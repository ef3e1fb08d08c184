"""Threads that pack lists side by side. Each copies about as many entries as any other.

Costs assume that all cores pack (`devices/model/costs.py`), as HyTGraph's host does (section VIII). If few vertices are
active, costs assume one core, and the caller packs by itself (`ALONE`); `engines/compaction.py` decides this for both.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from isthmus.kernels.loops.gather import pack
from isthmus.link.link import Array


class Packers:
    """`threads` threads, which start with the first work."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="isthmus-pack") if threads > 1 else None

    def pack(self, source: Array, begins: Array, lengths: Array, places: Array, out: Array) -> None:
        """Copy lengths[i] entries from source[begins[i]] on to out[places[i]] on, for all i. Places ascend."""
        count = begins.size
        if self._pool is None or count < 2:
            pack(source, begins, lengths, places, out, 0, count)
            return
        cuts = np.searchsorted(places, np.linspace(int(places[0]), int(places[-1]), self._threads + 1)[1:-1])
        bounds = [0, *cuts.tolist(), count]
        parts = self._pool.map(
            lambda k: pack(source, begins, lengths, places, out, bounds[k], bounds[k + 1]), range(self._threads)
        )
        for _ in parts:
            pass

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()


ALONE = Packers(1)  # the caller
