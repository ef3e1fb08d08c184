"""The loops of a maintained monotone program on a GPU: kernels find wrong values and set them right.

The state lies in managed memory from batch to batch. The host gets the list of vertices that a kernel has found, four
bytes each, and decides from it which lists are near and which are read over the link (`residency.py`), as it does for
a run's frontier. No recipe for a GPU looks for other parents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus.devices.correction_loops import OPPOSITE, Array, CorrectionLoops, Maintained, MonotoneState
from isthmus.devices.cuda.kernels import correction, incremental
from isthmus.programs.program import Facts

if TYPE_CHECKING:
    from isthmus.devices.cuda.residency import CudaResidency


class CudaLoops(CorrectionLoops):
    """Kernels over the lists of a program, and its state in managed memory."""

    def __init__(self, reads: CudaResidency, lists: Maintained, state: MonotoneState, facts: Facts) -> None:
        self._reads, self._lists, self._state = reads, lists, state
        gpu, program = reads.card.gpu, state.memoised(lists.sides)
        self._kernels = correction.build(gpu)
        weighted = lists.reads_weights() and lists.graph.weighted
        self._own = incremental.build(program.name, program.text(facts), weighted, gpu)
        self._initials: Array | None = None  # there
        self._listed = reads.listed
        self._listed.reserve(state.parents.size)
        self._listed.clear()
        self._pulled: list[Array] = []  # vertices that are active although their value may not have improved

    # On the old edges

    def orphan_heads(self, tails: Array, heads: Array) -> None:
        for near in self._reads.uploaded([tails, heads], (np.uint32, np.uint32)):
            self._reads.launch(self._kernels.orphan_heads, *near, self._state.parents, *self._listed.arrays)

    def orphan_children(self, side: str, rows: Array) -> int:
        edges, weights = self._count_read(side, rows), self._lists.reads_weights()
        listed = (self._state.parents, *self._listed.arrays)
        self._reads.follow(side, rows, weights, self._kernels.orphan_children, *listed)
        return edges

    def _count_read(self, side: str, rows: Array) -> int:
        """Count a read of these lists, which may bring some near; returns their edges."""
        self._reads.read(side, rows, self._lists.reads_weights())
        begins, ends = self._lists.ends_of(side)
        return int((ends[rows] - begins[rows]).sum())

    def take_orphans(self) -> Array:
        return self._listed.take()

    def reset(self, orphans: Array, adopted: Array) -> Array:
        """The kernel resets the vertices that were taken last, on the GPU: these orphans, none of which is adopted."""
        state, nothing = self._state, self._reads.no_weights  # no array twice: numba-cuda's simulator copies each
        if state.has_labels:
            kind, initials = correction.FROM_NUMBER, nothing
        elif state.initials.size:
            kind, initials = correction.FROM_ARRAY, self._uploaded_initials()
        else:
            kind, initials = correction.FROM_CONSTANT, nothing
        levels = (nothing, False) if state.levels is None else (state.levels, True)
        given = (*levels, state.parents, *state.changes, state.values.dtype.type(state.initial), initials, kind)
        self._reads.launch(self._kernels.give_up, self._listed.taken, state.values, *given)
        self._reads.finish()
        return orphans

    def _uploaded_initials(self) -> Array:
        if self._initials is None:
            (self._initials,) = self._reads.place_state(self._lists, (self._state.initials,), "initials")
        return self._initials

    def end_correction(self, lost: Array) -> None:
        self._listed.clear()

    # On the new edges

    def pull(self, side: str, rows: Array) -> int:
        if self._state.silent is None:
            self._pulled.append(rows)  # every value is sent, also an initial one
        edges, weights = self._count_read(OPPOSITE[side], rows), self._lists.reads_weights()
        self._reads.follow(OPPOSITE[side], rows, weights, self._own.hear, *self._sending(side))
        return edges

    def relax(self, side: str, tails: Array, heads: Array, weights: Array) -> None:
        given: list[Any] = [tails, heads]
        kinds: list[Any] = [np.uint32, np.uint32]
        if weights.size:
            given, kinds = [*given, weights], [*kinds, weights.dtype]
        sending = self._sending(side)
        for near in self._reads.uploaded(given, tuple(kinds)):
            self._reads.launch(self._own.send, *near, *(() if weights.size else (self._reads.no_weights,)), *sending)

    def _sending(self, side: str) -> tuple[Any, ...]:
        """The arguments of both kernels: degrees, the silent value, the state, and the list of what improves."""
        lists, state = self._reads.positions(self._lists.graph.snapshot.lists(side)), self._state
        assert lists is not None
        return (*lists, *state.silent_value, state.arrays, state.params, *self._listed.arrays)

    def improved(self) -> Array:
        found, self._pulled = [self._listed.take(), *self._pulled], []
        self._listed.clear()
        return np.unique(np.concatenate(found)) if len(found) > 1 else found[0]
