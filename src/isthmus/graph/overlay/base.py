"""The stored graph under an overlay: its files, open for direct reads, and the first target of each of their blocks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from isthmus import sizes
from isthmus.errors import GraphFormatError, StoreError
from isthmus.graph.graph import Graph
from isthmus.graph.overlay.overlay import Overlay
from isthmus.graph.overlay.overlay_side import Base, OverlaySide
from isthmus.graph.snapshot import StoredSnapshot
from isthmus.graph.store.extent_reader import DEPTH, ExtentReader, Extents
from isthmus.graph.store.files import BLOCK, Array, aligned_empty
from isthmus.messages import option
from isthmus.threads import Team


class StoredBase:
    """The files of a stored graph. A batch's look-ups and the lists of maintained programs are read through
    `reader`.
    """

    def __init__(self, graph: Graph, team: Team, channels: int) -> None:
        base = graph.snapshot
        if not isinstance(base, StoredSnapshot) or not base.on_disk:
            raise StoreError(
                f"{graph} is in memory; {option('on_disk', True)} needs a store, which isthmus.ingest makes"
            )
        if not base.has_in_edges:
            again = f"ingest it without {option('in_edges', False)}"
            raise StoreError(f"{graph} was stored without in-edges, which a changing graph on disk needs; {again}")
        self._graph, self._team = graph, team
        self.snapshot = base
        self.names = ("out", "in") if base.directed else ("out",)
        arrays = [array for name in self.names for array in base.far(name, True)]
        self.reader = ExtentReader(arrays, DEPTH, channels)
        try:
            self.sides = self._sides()
            self.negative_arcs = self._negatives() if base.weighted and base.negative_weights else 0
        except BaseException:
            self.close()
            raise

    def _sides(self) -> dict[str, OverlaySide]:
        base, found, first = self.snapshot, {}, 0
        for name in self.names:
            arrays = base.far(name, True)
            offsets = base.offsets(name)
            fences = self._fences(first, arrays[0].blocks, arrays[0].dtype)
            if self._graph.parallel:
                self._refuse_parallel(first, arrays[0].blocks, arrays[0].dtype, offsets)
            overlay = Overlay.nothing(offsets, np.dtype(base.target_dtype), base.weight_dtype)
            found[name] = OverlaySide(
                Base(arrays, list(range(first, first + len(arrays))), fences), overlay, self._team
            )
            first += len(arrays)
        return found if base.directed else {"out": found["out"], "in": found["out"]}

    def _passed(self, section: int, blocks: int, work: Callable[[int, int, Array], None]) -> None:
        """Let the members of the team call work(first block, last block, bytes) for all parts of a section."""
        step = max(1, sizes.now.staging // BLOCK)
        parts, stages = range(0, blocks, step), [aligned_empty(step * BLOCK, np.uint8) for _ in range(self._team.size)]

        def part(member: int, k: int) -> None:
            first, last = parts[k], min(parts[k] + step, blocks)
            columns = np.array([[section], [first * BLOCK], [(last - first) * BLOCK], [0]])
            self.reader.move(Extents(*columns), stages[member], member)
            work(first, last, stages[member][: (last - first) * BLOCK])

        self._team.share(part, len(parts))

    def _fences(self, section: int, blocks: int, dtype: np.dtype) -> Array:
        fences, per_block = np.empty(blocks, dtype), BLOCK // np.dtype(dtype).itemsize

        def note(first: int, last: int, data: Array) -> None:
            fences[first:last] = data.view(dtype)[::per_block]

        self._passed(section, blocks, note)
        return fences

    def _refuse_parallel(self, section: int, blocks: int, dtype: np.dtype, offsets: Array) -> None:
        """Raise GraphFormatError if a list has an entry twice; lists are sorted."""
        per_block, equal = BLOCK // np.dtype(dtype).itemsize, list[Array]()
        borders: dict[int, tuple[int, int]] = {}  # first slot of each part: its target, and the last one

        def look(first: int, last: int, data: Array) -> None:
            low, targets = first * per_block, data.view(dtype)
            borders[low] = int(targets[0]), int(targets[-1])
            equal.append(np.flatnonzero(targets[1:] == targets[:-1]) + 1 + low)

        self._passed(section, blocks, look)
        parts = sorted(borders)
        equal.append(
            np.array([slot for before, slot in pairwise(parts) if borders[before][1] == borders[slot][0]], np.int64)
        )
        slots = np.concatenate(equal)
        slots = slots[slots < offsets[-1]]
        vertices = np.searchsorted(offsets, slots, "right") - 1
        for v in vertices[offsets[vertices] < slots][:1].tolist():
            user = self._graph.ids.users(np.array([v])).tolist()[0]
            remedy = "ingest it with parallel='min', 'sum' or 'drop'"
            raise GraphFormatError(
                f"{self._graph} has parallel edges, for example at vertex {user!r}; a changing graph has none: {remedy}"
            )

    def _negatives(self) -> int:
        weights, section = self.snapshot.far("out", True)[1], 1
        counts = [0] * self._team.size

        def count(first: int, last: int, data: Array) -> None:
            counts.append(int(np.count_nonzero(data.view(weights.dtype) < 0)))

        self._passed(section, weights.blocks, count)
        return sum(counts)

    def close(self) -> None:
        self.reader.close()
