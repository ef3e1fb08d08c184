"""Prefetches pages before the first iteration: all pages if the recipe's hint asks for it, else Grus's region of every
side.
"""

from __future__ import annotations

import numpy as np

from isthmus.engines.engine import Side
from isthmus.engines.unified import Unified
from isthmus.link.link import Moved
from isthmus.policies import grus_policy
from isthmus.policies.recipe import Recipe
from isthmus.programs.program import State
from isthmus.runtime.near.budget import Split
from isthmus.runtime.near.near_memory import Pipeline


def prefetch(pipeline: Pipeline, recipe: Recipe, split: Split, state: State) -> Moved:
    """Prefetch pages; returns the bytes and requests that crossed the link."""
    engine, moved = pipeline.engines["unified"], Moved()
    assert isinstance(engine, Unified)
    for side in pipeline.sides:
        begin, end = (
            (0, side.lists.slots) if recipe.hint.prefetches else region(side, split, state, len(pipeline.sides))
        )
        if begin < end:
            moved.add(engine.prefetch(side, begin, end))
    return moved


def region(side: Side, split: Split, state: State, sides: int) -> tuple[int, int]:
    """The slots that Grus prefetches: those around the source's list for searches, else those from the first slot
    on.
    """
    parts, searches = side.partitions, state.start is not None
    needs = np.array([split.state + split.frontier, split.offsets, side.lists.slots * side.entry_bytes])
    tau = grus_policy.TAU_SEARCH if searches else grus_policy.TAU_ALL_ACTIVE
    room = int(grus_policy.prefetched(needs, split.peak - split.edges, tau)[2]) // sides
    source = None
    if state.start is not None and state.start.size and len(parts):
        first = state.start.argmax() if state.start.dtype == bool else state.start[0]
        source = min(int(np.searchsorted(parts.last, first, "right")), len(parts) - 1)
    chosen = np.flatnonzero(grus_policy.region(parts.slots * side.entry_bytes, room, source))
    return (int(parts.cuts[chosen[0]]), int(parts.cuts[chosen[-1] + 1])) if chosen.size else (0, 0)
