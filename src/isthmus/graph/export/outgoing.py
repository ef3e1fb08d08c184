"""The edges of a graph for export: in blocks, in natural order, with the users' ids or with numbers.

Numbers run from 0 in ascending order of the ids, also where the store is in hub order. A block holds few edges, so that
a graph of any size is written within the memory budget; only a list of a hub-ordered store is always read whole, since
it is sorted anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from isthmus import sizes
from isthmus.errors import BudgetError, OptionError, StoreError
from isthmus.graph.export import arrow
from isthmus.graph.graph import Graph
from isthmus.graph.ids import pieces
from isthmus.graph.order import degrees_of
from isthmus.graph.store.files import Array
from isthmus.memory import Budget, format_size
from isthmus.messages import option
from isthmus.progress import SILENT, Progress

Block = tuple[Array, Array, "Array | None"]  # sources, targets, weights
EDGE_BYTES = 256  # of an edge on its way: numbers, ids, text, and what making them takes
LEAST_BLOCK = 1 << 10  # edges
SHARE = 4  # the id map is held in memory if it takes at most this part of the budget


class Outgoing:
    """The edges of a graph, for a writer. `ending` is that of the file; a writer leaves notes for the user by `say`."""

    def __init__(
        self,
        graph: Graph,
        memory: str | int | None = None,
        weights: bool = True,
        ending: str = "",
        header: bool | None = None,
        progress: Progress = SILENT,
    ) -> None:
        graph = graph.frozen() if hasattr(graph, "frozen") else graph
        self.graph, self.name, self.ending, self.header, self.progress = (
            graph,
            str(graph.path or "the graph"),
            ending,
            header,
            progress,
        )
        self.vertices, self.edges, self.arcs, self.directed = graph.vertices, graph.edges, graph.arcs, graph.directed
        self.weighted = graph.weighted and weights
        self.weight_dtype = np.dtype(graph.snapshot.weight_dtype) if self.weighted else np.dtype(np.int32)
        self.notes: list[str] = []
        self.parts: dict[str, BinaryIO] = {}  # further files by their endings, for a format of several files
        self.limit = Budget(memory).limit
        self.block_edges = int(np.clip(self.limit // SHARE // EDGE_BYTES, LEAST_BLOCK, sizes.now.block_edges))
        self._ids = graph.ids.kept()
        self._near: Any = None  # all ids as an Arrow array, if they fit

    # Numbers

    def both(self, side: str = "out") -> Iterator[Block]:
        """All arcs, by ascending source and, in every list, by ascending target."""
        return self._stored(side) if self._ids.is_natural else self._reordered(side)

    def once(self) -> Iterator[Block]:
        """All edges: those of an undirected graph once, from the smaller number to the larger."""
        for sources, targets, weights in self.both():
            if not self.directed:
                first = sources <= targets
                sources, targets, weights = sources[first], targets[first], None if weights is None else weights[first]
            yield sources, targets, weights

    def offsets(self, side: str = "out") -> Iterator[Array]:
        """Where each list begins among all arcs, and where the last one ends, in parts."""
        end = 0
        yield np.zeros(1, np.int64)
        for begin in range(0, self.vertices, sizes.now.degree_vertices):
            offsets = end + np.cumsum(self._degrees(side, begin, min(begin + sizes.now.degree_vertices, self.vertices)))
            end = int(offsets[-1])
            yield offsets

    def _degrees(self, side: str, begin: int, end: int) -> Array:
        """Degrees of the vertices begin:end in natural order."""
        if self._ids.is_natural:
            return degrees_of(self.graph.store, side, begin, end)
        return np.concatenate([np.diff(offsets) for _, offsets in self._runs(side, begin, end)])

    def _stored(self, side: str) -> Iterator[Block]:
        for first in range(0, self.vertices, sizes.now.list_vertices):
            last = min(first + sizes.now.list_vertices, self.vertices)
            offsets = self._offsets(side, first, last)
            for arc in range(int(offsets[0]), int(offsets[-1]), self.block_edges):
                stop = min(arc + self.block_edges, int(offsets[-1]))
                lengths = np.diff(np.clip(offsets, arc, stop))
                yield np.repeat(np.arange(first, last), lengths), *self._arcs(side, arc, stop)

    def _reordered(self, side: str) -> Iterator[Block]:
        """Whole lists in natural order, each sorted by the natural numbers of its targets."""
        for begin in range(0, self.vertices, sizes.now.list_vertices):
            end = min(begin + sizes.now.list_vertices, self.vertices)
            ends = np.cumsum(self._degrees(side, begin, end))
            for places in pieces(np.arange(begin, end), ends // self.block_edges):
                yield self._lists(side, int(places[0]), int(places[-1]) + 1)

    def _lists(self, side: str, begin: int, end: int) -> Block:
        runs = list(self._runs(side, begin, end))
        degrees = np.concatenate([np.diff(offsets) for _, offsets in runs])
        needed = int(degrees.sum()) * EDGE_BYTES
        if needed > max(self.limit, SHARE * self.block_edges * EDGE_BYTES):
            raise BudgetError(
                f"{self.name}: a list of a store in hub order is read whole, which takes {format_size(needed)}; "
                f"the budget is {format_size(self.limit)}: raise {option('memory')}, or ingest the store again in "
                f"natural order"
            )
        parts = [self._arcs(side, int(offsets[0]), int(offsets[-1])) for _, offsets in runs]
        sources = np.repeat(np.arange(begin, end), degrees)
        targets = np.asarray(self._ids.places(np.concatenate([part[0] for part in parts]))).astype(np.int64)
        order = np.lexsort((targets, sources))  # stable: parallel edges keep their order
        weights = np.concatenate([part[1] for part in parts])[order] if self.weighted else None
        return sources, targets[order], weights

    def _runs(self, side: str, begin: int, end: int) -> Iterator[tuple[int, Array]]:
        """(Its first number, its offsets) of every run of stored vertices that are neighbours in natural order, too."""
        numbers = np.asarray(self._ids.numbers(begin, end)).astype(np.int64)
        for run in pieces(numbers, np.append(0, np.cumsum(np.diff(numbers) != 1))):
            yield int(run[0]), self._offsets(side, int(run[0]), int(run[-1]) + 1)

    def _offsets(self, side: str, first: int, last: int) -> Array:
        offsets = self.graph.store.read(f"{side}.offsets", first, last + 1).astype(np.int64)
        if offsets[0] < 0 or offsets[-1] > self.arcs or (offsets[1:] < offsets[:-1]).any():
            raise StoreError(
                f"{self.name}: section {side}.offsets does not ascend from 0 to {self.arcs}; run isthmus verify"
            )
        return offsets

    def _arcs(self, side: str, begin: int, end: int) -> tuple[Array, Array | None]:
        self.progress.advance(end - begin)
        targets = self.graph.entries(f"{side}.targets", begin, end)
        if self._ids.is_natural:
            targets = targets.astype(np.int64)
        return targets, self.graph.entries(f"{side}.weights", begin, end) if self.weighted else None

    # The users' ids

    @property
    def schema(self) -> Any:
        """The Arrow schema of `batches`: source, target and, of a weighted graph, weight."""
        nothing = np.empty(0, np.int64)
        return self._batch(nothing, nothing, np.empty(0, self.weight_dtype) if self.weighted else None).schema

    def batches(self, tally: Array | None = None) -> Iterator[Any]:
        """The edges as Arrow batches with the users' ids. Vertices that occur are marked in `tally`."""
        for sources, targets, weights in self.once():
            if tally is not None:
                tally[sources] = tally[targets] = True
            for rows in self._rows(sources, targets):
                part = slice(int(rows[0]), int(rows[-1]) + 1)
                yield self._batch(sources[part], targets[part], None if weights is None else weights[part])

    def tables(self) -> Iterator[Any]:
        """The batches, and at the end a note about vertices that are not in the file, since they have no edges."""
        tally = np.zeros(self.vertices, np.bool_) if self.vertices <= self.limit // SHARE else None
        yield from self.batches(tally)
        if tally is not None and (alone := self.vertices - int(np.count_nonzero(tally))):
            self.say(
                f"{alone} {'vertex' if alone == 1 else 'vertices'} without edges cannot be written to a list of edges"
            )

    def _rows(self, sources: Array, targets: Array) -> list[Array]:
        """Rows of a block in pieces of bounded text."""
        rows = np.arange(sources.size)
        if self._ids.kind != "string":
            return pieces(rows, np.zeros(rows.size, np.int64))
        most = max(sizes.now.result_bytes, self.block_edges * EDGE_BYTES // SHARE // 2)
        return pieces(rows, np.cumsum(self._ids.text_bytes(sources) + self._ids.text_bytes(targets)) // most)

    def _batch(self, sources: Array, targets: Array, weights: Array | None) -> Any:
        import pyarrow as pa

        columns = {"source": self.users(sources), "target": self.users(targets)}
        if weights is not None:
            columns["weight"] = arrow.numbers(weights)
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def users(self, places: Array) -> Any:
        """User ids of natural numbers, as an Arrow array."""
        if self._ids.kind == "dense":
            return arrow.numbers(places)
        if self._near is None and self._id_bytes() <= self.limit // SHARE:
            self._near = self._ids.to_arrow(np.arange(self.vertices))
        return self._ids.to_arrow(places) if self._near is None else self._near.take(arrow.numbers(places))

    def _id_bytes(self) -> int:
        sections = self.graph.store.manifest.sections
        return 2 * sum(section.bytes for name, section in sections.items() if name.startswith("ids."))

    # What formats need

    def say(self, note: str) -> None:
        """A note for the user."""
        self.notes.append(f"{self.name}: {note}")

    def say_numbers(self, base: int) -> None:
        """Note that the file has numbers from `base` on, unless they are the ids."""
        first = self._ids.natural(0, min(1, self.vertices)).tolist()
        last = self._ids.natural(max(self.vertices - 1, 0), self.vertices).tolist()
        if (first, last) != ([base] * len(first), [base + self.vertices - 1] * len(last)):
            self.say(f"the format has no ids; vertices are numbered from {base} in ascending order of their ids")

    def writes_weights(self, plain: str, weighted: str) -> bool:
        """Whether to write weights: as the ending says, else if there are any. Notes name weights lost or set to 1."""
        chosen = self.ending == weighted or (self.ending != plain and self.weighted)
        if chosen and not self.weighted:
            self.say("has no weights, so every weight in the file is 1")
        if self.weighted and not chosen:
            self.say(f"the weights are not written; a name that ends in {weighted} keeps them")
        return chosen

    def need_vertices(self, most: int) -> None:
        if self.vertices > most:
            raise OptionError(f"{self.name}: {self.vertices} vertices; the format has at most {most}")

    def need_in_edges(self) -> None:
        if not self.graph.has_in_edges:
            without = option("in_edges", False)
            raise OptionError(
                f"{self.name}: the format needs in-edges, but the store was made with {without}; ingest it without that"
            )

    def need_whole_weights(self, dtype: Any = np.int64, least: int = 0) -> None:
        """Raise an error unless all weights are whole numbers from `least` on that fit `dtype`."""
        if not self.weighted:
            return
        without = f"{option('weights', False)} leaves them out"
        if self.weight_dtype.kind == "f":
            raise OptionError(
                f"{self.name}: the weights are {self.weight_dtype}, but the format has only whole numbers; {without}"
            )
        low, high = max(least, np.iinfo(dtype).min), np.iinfo(dtype).max
        for at in range(0, self.arcs, sizes.now.verified_arcs):
            weights = self.graph.entries("out.weights", at, min(at + sizes.now.verified_arcs, self.arcs))
            if int(weights.min()) < low or int(weights.max()) > high:
                wrong = int(weights.min()) if int(weights.min()) < low else int(weights.max())
                raise OptionError(
                    f"{self.name}: has a weight of {wrong}, but the format has only weights from {low} to {high}; "
                    f"{without}"
                )

    def need_simple(self) -> None:
        """Raise an error if there are self loops or parallel edges."""
        if self.graph.snapshot.self_loops:
            raise OptionError(
                f"{self.name}: has self loops, the format has none; ingest it with {option('self_loops', 'drop')}"
            )
        self.need_no_parallel()

    def need_no_parallel(self) -> None:
        if self.graph.parallel and has_parallel(self.both()):
            raise OptionError(
                f"{self.name}: has parallel edges, the format has none; ingest it with {option('parallel', 'drop')}"
            )

    def write_rows(self, file: BinaryIO, columns: list[Array | None], first: bytes | None = None) -> None:
        """Lines of numbers, separated by blanks, after a word that all lines begin with."""
        import pyarrow as pa
        import pyarrow.csv as pc

        arrays = [arrow.numbers(np.asarray(column)) for column in columns if column is not None]
        if first is not None:
            arrays.insert(0, pa.repeat(first.decode(), len(arrays[0])))
        table = pa.RecordBatch.from_arrays(arrays, names=[str(k) for k in range(len(arrays))])
        pc.write_csv(table, file, pc.WriteOptions(include_header=False, delimiter=" ", quoting_style="none"))


def has_parallel(blocks: Iterator[Block]) -> bool:
    """Whether two neighbouring arcs of sorted lists are the same."""
    last: tuple[Any, Any] | None = None
    for sources, targets, _ in blocks:
        if not sources.size:
            continue
        same = (sources[1:] == sources[:-1]) & (targets[1:] == targets[:-1])
        if same.any() or last == (sources[0], targets[0]):
            return True
        last = (sources[-1], targets[-1])
    return False
