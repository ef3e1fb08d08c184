"""Choosing vertices, and counting them by label, piece by piece: temporary arrays do not grow with the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from isthmus.kernels.loops import vertices
from isthmus.programs.program import Array

AT_ONCE = 1 << 18  # vertices


def chosen(vertices: int, find: Callable[[int, int, Array], int]) -> Iterator[Array]:
    """The vertices that find(first, last, out) puts into `out`, over all vertices; none of the pieces is empty."""
    for first in range(0, vertices, AT_ONCE):
        out = np.empty(min(AT_ONCE, vertices - first), np.uint32)
        count = find(first, first + out.size, out)
        if count:
            yield out[:count]


def above(values: Array, threshold: float) -> Iterator[Array]:
    """The vertices whose value is above the threshold, in pieces."""
    for first in range(0, values.size, AT_ONCE):
        found = np.flatnonzero(values[first : first + AT_ONCE] > threshold)
        if found.size:
            yield found + first


def as_mask(pieces: Iterable[Array], vertices: int) -> Array:
    """Pieces of chosen vertices as a mask, for `State.start`."""
    mask = np.zeros(vertices, bool)
    for piece in pieces:
        mask[piece] = True
    return mask


def replace_by(values: Array, numbers: Array) -> None:
    """Replace every number by the value that it is the index of."""
    for first in range(0, numbers.size, AT_ONCE):
        piece = numbers[first : first + AT_ONCE]
        piece[:] = values[piece]


def label_counts(labels: Array, room: Array) -> tuple[int, int]:
    """(Number of different labels, vertices of the commonest). `room`: an array for one count per label,
    overwritten.
    """
    different, most = vertices.count_labels(labels, room)
    return int(different), int(most)
