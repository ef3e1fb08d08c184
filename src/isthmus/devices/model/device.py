"""A modelled GPU: the host's memory is far, and a model of the interconnect counts what crosses it.

Programs run on the processor. The link counts bytes and requests exactly, and the clock computes the seconds that they
would take (`modelled_clock.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from isthmus import sizes
from isthmus.cache.cache import Cache
from isthmus.devices.cpu import DeviceMemory, RunParts, forget_counts
from isthmus.devices.device import Device, DeviceInfo
from isthmus.devices.model.figures import PREFIX, GpuFigures, builtin, find
from isthmus.devices.model.launches import Launches
from isthmus.devices.model.link import ModelLink
from isthmus.devices.model.modelled_clock import ModelledClock
from isthmus.devices.model.residency import ModelResidency
from isthmus.devices.run_clock import RunClock
from isthmus.devices.worker import Worker
from isthmus.engines.engine import PageCost, Side
from isthmus.frontier import Frontier
from isthmus.graph.changing.changing_graph import ChangingGraph
from isthmus.graph.far import FarArray
from isthmus.graph.snapshot import Snapshot
from isthmus.link.hints import Hint
from isthmus.link.link import Array, Link, Moved, Profile
from isthmus.link.profile.measurement import Say
from isthmus.memory import DEFAULT_SHARE, available, format_size
from isthmus.policies.recipe import Recipe
from isthmus.policies.recipes import recipe
from isthmus.policies.stream_recipes import StreamRecipe
from isthmus.programs.program import Program
from isthmus.threads import Team


class ModelledGpu(Device):
    """A GPU of which only figures are known."""

    kind = "model"
    sweeps = solves = reads_disks = False
    same_partitions = counts_reads = True

    def __init__(self, figures: GpuFigures, name: str) -> None:
        self.figures, self.name = figures, name

    @classmethod
    def open(cls, argument: str | None) -> ModelledGpu:
        figures = find(argument or "")
        name = argument if argument in builtin() else figures.name
        return cls(figures, f"{PREFIX}{name}")

    @classmethod
    def listed(cls) -> list[DeviceInfo]:
        return [DeviceInfo(f"{PREFIX}{name}", in_words(find(name))) for name in builtin()]

    def memory(self, snapshot: Snapshot, team: Team, verify: bool, far: str) -> DeviceMemory:
        return ModelMemory(snapshot, team, verify, far, self.figures)

    def recipe(self, policy: str, without: tuple[str, ...], program: Program) -> Recipe:
        return recipe(policy, without, len(program.sides), program.levels)

    def default_budget(self) -> int:
        """All of its memory, if the host has as much: what is near there lies in the host's memory here."""
        return min(int(available() * DEFAULT_SHARE), self.figures.near.bytes)

    def buffer_bytes(self) -> tuple[int, int]:
        least = min(sizes.now.least_buffer, sizes.now.modelled_buffer)
        return least, least

    def page_bytes(self, program: Program, graph: Snapshot) -> int:
        """A page for every array."""
        arrays = len(program.sides) * (2 if program.reads_weights() and graph.weighted else 1)
        return arrays * self.figures.managed.page_bytes

    def queues(self, threads: int) -> int:
        """One, whatever threads the host has."""
        return 1

    def rounds_up_pages(self) -> bool:
        return True

    def budget_notes(self, budget: int, keeps_nothing: bool) -> list[str]:
        notes = ["the budget leaves no room to keep edges near"] if keeps_nothing else []
        if budget > self.figures.near.bytes:
            size = format_size(self.figures.near.bytes)
            notes.append(f"the budget is more than the {size} of memory of {self.figures.name}")
        return notes

    def profile(self, snapshot: Snapshot) -> Profile:
        return self.figures.profile()

    # For streams

    def residency(
        self,
        graph: ChangingGraph,
        recipe: StreamRecipe,
        sides: list[str],
        weights: bool,
        near_bytes: int,
        bytes_left: Callable[[int], int | None],
    ) -> ModelResidency:
        """What stays near of a changing graph from batch to batch. See `ModelResidency`."""
        return ModelResidency(graph, self.figures, recipe, sides, weights, near_bytes, bytes_left)

    def residency_bytes(self, vertices: int, sides: int, hot: bool) -> int:
        """Near memory of a residency beside its lists or pages and their index."""
        return 0

    def shared_bytes(self, offsets: int) -> int:
        """Of the positions of lists that a run needs, what the stream holds for all runs."""
        return 0

    # For plans

    def page_cost(self) -> PageCost:
        return PageCost(self.figures.managed.page_bytes, self.figures.managed.peak_share)

    def plan_note(self, snapshot: Snapshot, profile: Profile) -> str:
        return f"seconds are modelled: {self.figures.costs_of or self.figures.name}"


def in_words(figures: GpuFigures) -> str:
    near, rate = format_size(figures.near.bytes), format_size(figures.link.bandwidth)
    return f"modelled: {near} near memory, {rate}/s over the link"


class ModelMemory(DeviceMemory):
    """What a modelled GPU holds for a session: links that count, in front of arrays in the host's memory."""

    counts_lists = False  # the link carries edges alone
    is_near_already = False

    def __init__(self, snapshot: Snapshot, team: Team, verify: bool, far: str, figures: GpuFigures) -> None:
        super().__init__(snapshot, team, verify, far)
        self.figures = figures
        self._near_links: dict[tuple[str, ...], ModelLink] = {}  # in front of near arrays, by the arrays' names

    def far_link(self, arrays: list[FarArray], recipe: Recipe, page_bytes: int, say: Say) -> ModelLink:
        return self._link(arrays, page_bytes, recipe.hint)

    def near_link(self, arrays: list[FarArray]) -> ModelLink:
        names = tuple(array.name for array in arrays)
        if names not in self._near_links:
            self._near_links[names] = self._link(arrays)
        return self._near_links[names]

    def _link(self, arrays: list[FarArray], page_bytes: int = 0, hint: Hint = Hint.NONE) -> ModelLink:
        """A link in front of arrays, which lie in the host's memory."""
        whole = [np.ascontiguousarray(self.snapshot.whole(array, self.verify)) for array in arrays]
        if self.residency is not None:
            return self.residency.link([array.name for array in arrays], whole)  # type: ignore[no-any-return]
        return ModelLink(whole, self.figures, page_bytes, hint)

    def load(self, missing: list[FarArray], arrays: list[FarArray], link: Link) -> tuple[dict[str, Array], Moved]:
        assert isinstance(link, ModelLink)
        found = {array.name: link.whole(arrays.index(array)).view(array.dtype) for array in missing}
        return found, link.take()

    def drop_counts(self) -> None:
        for link in self._near_links.values():
            forget_counts(link)

    def frontier(self) -> Frontier:
        return Frontier(self.snapshot.vertices, self._team.size, repeats=True)

    def cache(self, recipe: Recipe, sides: list[Side], memory: Array, link: Link) -> Cache:
        if self.residency is not None:
            return self.residency.cache(sides)  # type: ignore[no-any-return]
        return super().cache(recipe, sides, memory, link)

    def clock(self, link: Link, recipe: Recipe, partitions: int) -> RunClock:
        assert isinstance(link, ModelLink)
        return ModelledClock(link, recipe, self.snapshot.vertices, partitions)

    @contextmanager
    def running(self, parts: RunParts) -> Iterator[Worker]:
        launches = Launches(parts.program, parts.state)
        yield Worker(parts.module, parts.program, parts.state, self._team, parts.least_again, launches)

    def close(self) -> None:
        for link in self._near_links.values():
            link.close()
        self._near_links.clear()

    def end(self) -> None:
        if self.residency is not None:
            self.residency.close()
