"""The lists of some vertices, read piece by piece: what subgraphs and neighbourhoods are made from.

Lists that lie close to each other are read at once, so a choice of many vertices is read in order and in large pieces,
while a choice of few touches only their blocks. A piece has a bounded number of arcs; a list that is longer comes in
several.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from isthmus import sizes
from isthmus.errors import StoreError
from isthmus.graph.graph import Graph
from isthmus.graph.ids import stretches
from isthmus.graph.lists import Lists
from isthmus.graph.store.files import Array

CLOSE = 1024  # arcs: reading over a larger gap takes longer than a second read


@dataclass
class SomeArcs:
    """Arcs of some chosen vertices. `rows` are ascending indices into the choice; `others` the other ends."""

    rows: Array
    others: Array
    weights: Array | None


def some_arcs(graph: Graph, numbers: Array, side: str = "out", weights: bool = False) -> Iterator[SomeArcs]:
    """The arcs of the vertices `numbers`, which ascend. Held while it is read: `graph.reading()`."""
    for first, begins, ends in rows_of(graph, numbers, side):
        for begin, end in close_together(begins, ends):
            yield from read_arcs(graph, side, first + begin, begins[begin:end], ends[begin:end], weights)


def rows_of(graph: Graph, numbers: Array, side: str) -> Iterator[tuple[int, Array, Array]]:
    """Where the lists begin and end, for some vertices at a time: (index of the first of them, begins, ends)."""
    near = graph.near_lists(side)
    for which, first, last in stretches(numbers):
        at = numbers[which].astype(np.int64)
        if near is not None:
            yield int(which[0]), near.begins[at], near.ends[at]
        else:
            lists = checked(graph, side, first, last)
            yield int(which[0]), lists.begins[at - first], lists.ends[at - first]


def checked(graph: Graph, side: str, first: int, last: int) -> Lists:
    """The lists of the vertices first to last of a stored graph."""
    offsets = graph.entries(f"{side}.offsets", first, last + 2).astype(np.int64)
    if offsets[0] < 0 or offsets[-1] > graph.arcs or (offsets[1:] < offsets[:-1]).any():
        raise StoreError(f"{graph}: section {side}.offsets does not ascend from 0 to {graph.arcs}; run isthmus verify")
    return Lists.of(offsets)


def close_together(begins: Array, ends: Array) -> Iterator[tuple[int, int]]:
    """Ranges of lists that are read at once: small gaps between them, few arcs unless one list has more."""
    if not begins.size:
        return
    apart = begins[1:] - ends[:-1] > CLOSE
    pieces = (begins - begins[0]) // sizes.now.verified_arcs
    cuts = np.flatnonzero(apart | (pieces[1:] > pieces[:-1])) + 1
    yield from zip([0, *cuts.tolist()], [*cuts.tolist(), int(begins.size)], strict=True)


def read_arcs(graph: Graph, side: str, row: int, begins: Array, ends: Array, weights: bool) -> Iterator[SomeArcs]:
    """The arcs of lists that lie close together; `row` is the index of the first of them."""
    for at in range(int(begins[0]), int(ends[-1]), sizes.now.verified_arcs):
        to = min(at + sizes.now.verified_arcs, int(ends[-1]))
        lows, highs = np.clip(begins, at, to), np.clip(ends, at, to)
        lengths = highs - lows
        slots = np.repeat(lows - at - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
        heavy = graph.entries(f"{side}.weights", at, to)[slots] if weights else None
        yield SomeArcs(
            np.repeat(np.arange(row, row + begins.size), lengths),
            graph.entries(f"{side}.targets", at, to)[slots],
            heavy,
        )
