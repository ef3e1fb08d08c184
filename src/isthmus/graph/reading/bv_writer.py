"""Writes a graph in WebGraph's BV format, with WebGraph's usual parameters.

Three files: NAME.graph with the lists, NAME.offsets with where each of them begins (differences in gamma code), and
NAME.properties. WebGraph in Java opens them as they are; WebGraph in Rust makes its own index first (`webgraph build ef
NAME`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from isthmus import sizes
from isthmus.errors import BudgetError
from isthmus.graph.store.files import Array
from isthmus.kernels.text import bit_codes, bv_successors
from isthmus.memory import format_size
from isthmus.messages import option

if TYPE_CHECKING:
    from isthmus.graph.export.outgoing import Outgoing

# The defaults of WebGraph: lists that may be referred to, references in a row, length of an interval, parameter of the
# zeta code.
WINDOW, MOST_CHAINED, SHORTEST, ZETA_K = 7, 3, 4, 3
ENTRY = 16  # bytes of a neighbour while lists are made and compared
LIST_BITS, ENTRY_BITS = 128, 64  # no list has more bits than these for itself and for every neighbour


class BitFile:
    """A stream of bits into a file: whole words are written, the rest of the last one waits."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._last, self.bits = file, np.uint64(0), 0

    def words(self, bits: int) -> tuple[Array, int]:
        """(Zero words for `bits` more bits behind those not written yet, the bit to go on at)."""
        words = np.zeros((self.bits % 64 + bits) // 64 + 1 + bit_codes.PADDING, np.uint64)
        words[0] = self._last
        return words, self.bits % 64

    def write(self, words: Array, end: int) -> None:
        """Write the words up to bit `end`."""
        whole = end // 64
        self._file.write(words[:whole].astype(">u8").tobytes())
        self.bits += end - self.bits % 64
        self._last = words[whole]

    def close(self) -> None:
        """Write the rest."""
        self._file.write(np.array([self._last], ">u8").tobytes()[: -(-(self.bits % 64) // 8)])


class BvWriter:
    """The lists of a graph on their way into three files."""

    def __init__(self, edges: Outgoing, graph: BinaryIO, offsets: BinaryIO, properties: BinaryIO) -> None:
        self._edges, self._properties = edges, properties
        self._graph, self._offsets = BitFile(graph), BitFile(offsets)
        # The lists that the next ones may refer to.
        self._earlier, self._bounds = np.empty(0, np.uint32), np.zeros(1, np.int64)
        self._chained = np.empty(0, np.int64)

    def write(self) -> None:
        self._write_gammas(np.zeros(1, np.int64))
        for first, lengths, targets in whole_lists(self._edges):
            self._write_lists(first, lengths, targets)
        self._graph.close()
        self._offsets.close()
        self._properties.write(self._described().encode())

    def _write_lists(self, first: int, lengths: Array, targets: Array) -> None:
        before = self._bounds.size - 1
        lists = np.concatenate([self._earlier, targets])
        bounds = np.append(self._bounds, self._bounds[-1] + np.cumsum(lengths))
        chained = np.append(self._chained, np.zeros(lengths.size, np.int64))
        words, at = self._graph.words(LIST_BITS * lengths.size + ENTRY_BITS * targets.size)
        ends = np.empty(lengths.size, np.int64)
        end = bv_successors.encode(
            words, at, first, before, lengths.size, WINDOW, MOST_CHAINED, SHORTEST, ZETA_K, lists, bounds, chained, ends
        )
        self._graph.write(words, end)
        self._write_gammas(np.diff(ends, prepend=at))
        bounds = bounds[-min(WINDOW + 1, bounds.size) :]
        self._earlier, self._bounds, self._chained = (
            lists[bounds[0] :].copy(),
            bounds - bounds[0],
            chained[chained.size - bounds.size + 1 :],
        )

    def _write_gammas(self, values: Array) -> None:
        words, at = self._offsets.words(LIST_BITS * values.size)
        self._offsets.write(words, bv_successors.write_gammas(words, at, values))

    def _described(self) -> str:
        graph, bits = self._edges, self._graph.bits
        return (
            "#BVGraph properties\ngraphclass=it.unimi.dsi.webgraph.BVGraph\nversion=0\n"
            f"nodes={graph.vertices}\narcs={graph.arcs}\nwindowsize={WINDOW}\nmaxrefcount={MOST_CHAINED}\nminintervallength={SHORTEST}\n"
            f"zetak={ZETA_K}\ncompressionflags=\n"
            f"bitsperlink={bits / max(graph.arcs, 1):.3f}\nbitspernode={bits / max(graph.vertices, 1):.3f}\n"
        )


def whole_lists(edges: Outgoing) -> Iterator[tuple[int, Array, Array]]:
    """(A vertex, lengths of the lists from it on, the lists): all lists in order, none of them cut."""
    vertex = 0
    waiting: list[tuple[Array, Array]] = []  # arcs of lists that may go on
    for sources, targets, _ in edges.both():
        if not sources.size:
            continue
        waiting.append((sources, targets.astype(np.uint32)))
        check_memory(edges, int(sources[-1]), sum(part.size for part, _ in waiting))
        if sources[-1] == waiting[0][0][0]:
            continue
        columns = [np.concatenate(column) for column in zip(*waiting, strict=True)]
        cut = int(np.searchsorted(columns[0], columns[0][-1]))
        yield from in_stretches(vertex, int(columns[0][-1]), columns[0][:cut], columns[1][:cut])
        vertex = int(columns[0][-1])
        waiting = [(columns[0][cut:], columns[1][cut:])]
    rest = (
        [np.concatenate(column) for column in zip(*waiting, strict=True)]
        if waiting
        else [np.empty(0, np.int64), np.empty(0, np.uint32)]
    )
    yield from in_stretches(vertex, edges.vertices, *rest)


def in_stretches(first: int, last: int, sources: Array, targets: Array) -> Iterator[tuple[int, Array, Array]]:
    """The lists of the vertices first:last, few vertices at a time."""
    for begin in range(first, last, sizes.now.list_vertices):
        end = min(begin + sizes.now.list_vertices, last)
        low, high = np.searchsorted(sources, [begin, end])
        yield begin, np.bincount(sources[low:high] - begin, minlength=end - begin), targets[low:high]


def check_memory(edges: Outgoing, vertex: int, waiting: int) -> None:
    """Raise an error if a list is too long for the budget: it is written whole."""
    needed = ENTRY * waiting * (WINDOW + 1)
    if needed > max(edges.limit, sizes.now.least_block_memory):
        raise BudgetError(
            f"{edges.name}: vertex {vertex}: {WINDOW + 1} lists of this length, which are compared, take "
            f"{format_size(needed)}; the budget is {format_size(edges.limit)}: raise {option('memory')}"
        )
