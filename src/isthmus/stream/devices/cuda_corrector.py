"""The loops of a monotone program that is kept current, on a GPU: kernels find wrong values and set them right.

The state lies in managed memory from batch to batch. The host gets the list of vertices that a kernel has found, four
bytes each, and decides from it which lists are near and which are read over the link (`cuda_reads.py`), as it does for
a run's frontier.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus.devices.cuda.kernels import correction, incremental
from isthmus.errors import NotOnGpu
from isthmus.graph.changing.change import Change
from isthmus.programs.dependencies import Memoised
from isthmus.programs.program import Facts
from isthmus.stream.devices.cuda_reads import CudaReads
from isthmus.stream.maintain.corrector import Corrector
from isthmus.stream.maintain.maintained import OPPOSITE, Array

if TYPE_CHECKING:
    from isthmus.stream.maintain.propagation import Propagating

NONE = np.empty(0, np.uint32)


class CudaCorrector(Corrector):
    """Kernels over the lists of a program, `of`."""

    def __init__(self, of: Propagating, facts: Facts) -> None:
        assert isinstance(of.reads, CudaReads)
        self._of, self._reads, self._lost = of, of.reads, NONE
        gpu, program = self._reads.card.gpu, Memoised(of.program, of.state, of.position)
        self._kernels = correction.build(gpu)
        self._own = incremental.build(program.name, program.text(facts), of.reads_weights() and of.graph.weighted, gpu)
        self._initials: Array | None = None  # there
        self._listed = self._reads.listed
        self._listed.reserve(of.parents.size)
        self._listed.clear()
        self._heard: list[Array] = []

    @property
    def lost(self) -> Array:
        return self._lost

    def lose(self, vertices: Array) -> None:
        self._lost = vertices

    # On the old edges

    def orphan_heads(self, tails: Array, heads: Array) -> None:
        for near in self._reads.uploaded([tails, heads], (np.uint32, np.uint32)):
            self._reads.launch(self._kernels.orphan_heads, *near, self._of.parents, *self._listed.arrays)

    def orphan_children(self, side: str, rows: Array) -> None:
        self._of.effort.edges_read += self._read(side, rows)
        self._reads.follow(
            side, rows, self._of.reads_weights(), self._kernels.orphan_children, self._of.parents, *self._listed.arrays
        )

    def _read(self, side: str, rows: Array) -> int:
        """Count a read of these lists, which may bring some near; returns their edges."""
        self._of.reads.read(side, rows, self._of.reads_weights())
        begins, ends = self._of.ends_of(side)
        return int((ends[rows] - begins[rows]).sum())

    def orphans(self) -> Array:
        return self._listed.take()

    def adopted(self, orphans: Array, change: Change) -> Array:
        raise NotOnGpu("no recipe for a GPU looks for other parents")

    def give_up(self, orphans: Array, adopted: Array) -> Array:
        of, number = self._of, getattr(self._of.program, "labels_are_vertices", False)
        kind = (
            correction.FROM_NUMBER
            if number
            else correction.FROM_ARRAY
            if of.initials.size
            else correction.FROM_CONSTANT
        )
        # no array twice: numba-cuda's simulator copies each.
        levels = self._reads.no_weights if of.levels is None else of.levels
        initials = self._uploaded_initials() if kind == correction.FROM_ARRAY else self._reads.no_weights
        state = (
            of.values,
            levels,
            of.levels is not None,
            of.parents,
            *of.changes,
            of.values.dtype.type(of.initial),
            initials,
            kind,
        )
        self._reads.launch(self._kernels.give_up, self._listed.taken, *state)
        self._reads.finish()
        self._lost = np.concatenate([self._lost, orphans])
        return orphans

    def _uploaded_initials(self) -> Array:
        if self._initials is None:
            (self._initials,) = self._reads.place_state(self._of, (self._of.initials,), "initials")
        return self._initials

    def end(self) -> None:
        self._listed.clear()

    # On the new edges

    def hear(self, side: str, rows: Array) -> None:
        of = self._of
        if of.silent is None:
            self._heard.append(rows)  # every value is sent, also an initial one
        of.effort.edges_read += self._read(OPPOSITE[side], rows)
        self._reads.follow(OPPOSITE[side], rows, of.reads_weights(), self._own.hear, *self._sending(side))

    def send(self, side: str, tails: Array, heads: Array, weights: Array) -> None:
        given: list[Any] = [tails, heads]
        kinds: list[Any] = [np.uint32, np.uint32]
        if weights.size:
            given, kinds = [*given, weights], [*kinds, weights.dtype]
        sending = self._sending(side)
        for near in self._reads.uploaded(given, tuple(kinds)):
            self._reads.launch(self._own.send, *near, *(() if weights.size else (self._reads.no_weights,)), *sending)

    def _sending(self, side: str) -> tuple[Any, ...]:
        """The arguments of both kernels: degrees, the silent value, the state, and the list of what improves."""
        of = self._of
        lists = self._reads.positions(of.graph.snapshot.lists(side))
        assert lists is not None
        return (*lists, *self._silent, of.state.arrays, of.state.params, *self._listed.arrays)

    def improved(self) -> Array:
        found, self._heard = [self._listed.take(), *self._heard], []
        self._listed.clear()
        return np.unique(np.concatenate(found)) if len(found) > 1 else found[0]
