"""The session of a stream on a device, modelled or a GPU: what is near stays from batch to batch, and all that is read
is counted.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from isthmus.cache.ranking import USES
from isthmus.devices.model.device import ModelledGpu
from isthmus.errors import BudgetError, OptionError
from isthmus.graph.changing.changing_graph import ChangingGraph
from isthmus.memory import format_size, parse_size, share_of
from isthmus.policies.stream_recipes import StreamRecipe
from isthmus.runtime.near.budget import split_for
from isthmus.stream.stream_session import StreamSession

if TYPE_CHECKING:
    from isthmus.programs.program import Program
    from isthmus.stream.maintain.maintained import Maintained

LEAST = "0%"  # of the edges: runs have the smallest buffers that work; lists that stay near have memory of their own


class CountedSession(StreamSession):
    """A session on a changing graph whose edges are far: every read of a list is counted."""

    device: ModelledGpu

    def __init__(self, graph: ChangingGraph, device: str, recipe: StreamRecipe, threads: int | None) -> None:
        super().__init__(graph, device=device, memory=LEAST, policy=recipe.runs_by, threads=threads)
        self.recipe = recipe
        self._runs: list[Program] = []
        self._memory: str | int | None = None
        self._peak = 0
        self._sides: list[str] = []  # what is followed, and what correction reads

    def begin(self, programs: Sequence[Maintained], memory: str | int | None) -> None:
        """Split near memory among these programs and the lists that stay near, and count reads from now on."""
        graph = self.graph
        assert isinstance(graph, ChangingGraph)
        snapshot, self._memory = graph.snapshot, memory
        for program in programs:
            runs = program.runs()
            if runs is None:
                raise OptionError(
                    f"{program.name} is not kept current on a device, only on this machine; use device='cpu'"
                )
            self._runs.append(runs)
        weights = snapshot.weighted and any(program.reads_weights() for program in programs)
        self._sides = sides = sorted({snapshot.stored(side) for side in ("out", "in")})
        entry = snapshot.target_bytes + (snapshot.weight_bytes if weights else 0)
        index = USES.index_bytes * len(sides) * snapshot.vertices if self.recipe.hot else 0
        room = near_room(memory, self.device, self._vertex_bytes() + index, len(sides) * snapshot.arcs * entry)
        room = min(room, 2 * len(sides) * snapshot.arcs * entry)  # more is of no use
        residency = self.device.residency(graph, self.recipe, sides, weights, room, of_session(self))
        self.residency = self.near_memory.device.residency = residency
        self._peak = self.near_peak

    def _vertex_bytes(self) -> int:
        """What programs and their runs need of near memory, for as many vertices as there are now."""
        state = besides = 0
        for runs in self._runs:
            chosen = self.device.recipe(self.settings.policy, (), runs)
            split = split_for(runs, self.graph.snapshot, chosen, self.device, LEAST, 1, self.settings.policy)
            state, besides = (
                state + split.state,
                max(besides, split.peak - split.state - self.device.shared_bytes(split.offsets)),
            )
        return state + besides + self.device.residency_bytes(self.graph.vertices, len(self._sides), self.recipe.hot)

    def room_left(self, index: int) -> int | None:
        """Bytes for lists beside an index of that size, when vertices were added; None: as before, as vertices come on
        top of a share.
        """
        if share_of(self._memory) is not None:
            return None
        budget = self.device.figures.near.bytes if self._memory is None else parse_size(self._memory)
        return max(0, budget - self._vertex_bytes() - index)

    @property
    def near_peak(self) -> int:
        """Near memory that programs, buffers and lists take, at the opening or now."""
        return max(self._peak, self._vertex_bytes() + self.residency.near_bytes)

    @property
    def recipe_name(self) -> str:
        return self.recipe.name


def of_session(session: CountedSession) -> Callable[[int], int | None]:
    """Its `room_left`, without a reference to it: a session that is forgotten unclosed must not be held by what it has
    near.
    """
    known = weakref.ref(session)

    def room_left(index: int) -> int | None:
        there = known()
        return None if there is None else there.room_left(index)

    return room_left


def near_room(memory: str | int | None, device: ModelledGpu, vertex: int, edge_bytes: int) -> int:
    """Bytes for lists that stay near: a share of the edges, or what a budget leaves beside `vertex` bytes."""
    share = share_of(memory)
    if share is not None:
        return int(edge_bytes * share)
    budget = device.figures.near.bytes if memory is None else parse_size(memory)
    if budget < vertex:
        raise BudgetError(
            f"the stream needs at least {format_size(vertex)} near memory for its vertices and buffers; got "
            f"{format_size(budget)}. {device.more_memory(vertex)}"
        )
    return budget - vertex
