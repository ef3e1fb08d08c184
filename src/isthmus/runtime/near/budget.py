"""Splits near memory between vertex state, offsets, frontier and edges, before a run starts.

`memory` is a promise. An absolute budget that is too small fails here, and the error names the smallest that works. A
percentage means vertex state plus that share of the edge bytes, raised to the minimum if it is smaller.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from isthmus import sizes
from isthmus.cache.ranking import RANKINGS
from isthmus.devices.device import Device
from isthmus.engines.engine import BUFFERS
from isthmus.errors import BudgetError
from isthmus.frontier import frontier_bytes
from isthmus.graph.snapshot import Snapshot
from isthmus.memory import format_size, parse_size, share_of
from isthmus.policies.recipe import Recipe
from isthmus.programs.program import Program

# Of 4 KB in a buffer: the narrower of its two zones then holds several lists whatever their alignment.
LEAST_BLOCKS = 24
INDEX_BYTES = {name: ranking.index_bytes for name, ranking in RANKINGS.items()}  # per vertex, by cache


@dataclass
class Split:
    """Bytes of near memory by purpose. `resident`: all edges stay near."""

    budget: int
    state: int
    offsets: int  # with the checksums of edges in files, and what a link takes beside its buffers
    frontier: int
    edges: int  # staging buffers, or all edges when resident
    resident: bool
    cache: int  # for edges that stay near
    notes: list[str] = field(default_factory=list)
    least: int = 0  # the smallest budget that works
    whole: int = 0  # the smallest budget that holds all edges

    @property
    def peak(self) -> int:
        return self.state + self.offsets + self.frontier + self.edges + self.cache

    def as_dict(self) -> dict[str, object]:
        split = asdict(self)
        for other in ("notes", "least", "whole"):
            split.pop(other)
        return split


@dataclass(frozen=True)
class Needs:
    """What a run needs of near memory before its edges get the rest, in bytes."""

    state: int
    offsets: int
    frontier: int
    index: int  # of the cache; it counts as vertex state, though it is part of the cache
    edges: int  # all edges that the program follows
    solve: int  # beside them, if all edges are near
    pages: int  # the least for pages, where lists are read through them
    keeps: bool  # memory beyond the minimum keeps edges near

    @property
    def vertex(self) -> int:
        return self.state + self.offsets + self.frontier + self.index

    def least_edges(self, buffer: int) -> int:
        """The least memory for edges, with staging buffers of this size in bytes."""
        return min(BUFFERS * buffer, self.edges + BUFFERS * LEAST_BLOCKS * 4096) + self.pages


def needs_of(program: Program, graph: Snapshot, device: Device, threads: int, recipe: Recipe | None = None) -> Needs:
    """What a program needs on a graph. Without a recipe it keeps no edges near, and reads through no pages."""
    n = graph.vertices
    keeps = recipe is not None and keeps_edges(program, recipe)
    entry = graph.target_bytes + (graph.weight_bytes if program.reads_weights() else 0)
    return Needs(
        state=n * program.state_bytes + program.table_bytes(graph),
        offsets=sum(graph.list_bytes(side) for side in program.sides) + device.table_bytes(program, graph),
        frontier=frontier_bytes(n, device.queues(threads)),
        index=n * INDEX_BYTES.get(recipe.cache, 0) if recipe is not None and keeps else 0,
        edges=entry * sum(graph.slots(side) for side in program.sides),
        solve=n * program.solve_bytes,
        pages=device.page_bytes(program, graph) if recipe is not None and recipe.pages else 0,
        keeps=keeps,
    )


def keeps_edges(program: Program, recipe: Recipe) -> bool:
    """Whether memory beyond the minimum keeps edges near: not if the program uses it, or reads no edge again."""
    one_pass = program.max_iter == 1 and not program.runs_again and not recipe.pages
    used_once = one_pass or (recipe.keeps_lists and program.follows_each_vertex_once)
    return recipe.keeps and not program.needs_spare_memory and not used_once


def split_budget(
    needs: Needs, memory: str | int | None, policy: str, device: Device, what: str = "the program"
) -> Split:
    """Split a budget, or raise BudgetError, which says `what` needs more."""
    least_buffer, enough = device.buffer_bytes()
    least_edges = needs.least_edges(least_buffer)
    budget, notes = budget_of(needs, least_edges, memory, device)
    least, beside = needs.vertex + least_edges, budget - needs.vertex
    if budget < least:
        raise BudgetError(
            f"{what} needs at least {format_size(least)} near memory (vertex state {format_size(needs.vertex)}); "
            f"got {format_size(budget)}. {device.more_memory(least)}"
        )
    # A recipe chosen by name moves edges even when they would fit, unless the budget is the default.
    resident = beside >= needs.edges + needs.solve and (policy == "auto" or memory is None)
    edges = needs.edges if resident else min(beside - needs.pages, most_staging(needs.edges))
    if (needs.keeps or device.same_partitions) and not resident:
        edges = min(edges, max(beside // 4, BUFFERS * enough))
    cache = 0 if resident else needs.pages
    if needs.keeps and not resident:
        cache = max(cache, min(beside - edges, needs.edges)) + needs.index
    state = needs.state + (needs.solve if resident else 0)
    whole = max(least, needs.vertex + needs.edges + needs.solve)
    return Split(budget, state, needs.offsets, needs.frontier, edges, resident, cache, notes, least, whole)


def budget_of(needs: Needs, least_edges: int, memory: str | int | None, device: Device) -> tuple[int, list[str]]:
    """The bytes that a caller's `memory` means, and notes about it."""
    share = share_of(memory)
    if share is None:
        return (device.default_budget() if memory is None else parse_size(memory)), []
    edges, notes = int(needs.edges * share), []
    if edges < least_edges:
        name = str(memory).strip()
        notes.append(f"{name} is below the minimum for this graph; using {format_size(least_edges)} for edges")
    return needs.vertex + max(edges, least_edges), notes


def most_staging(edge_bytes: int) -> int:
    """The largest useful staging memory: more than a few tasks only delays the first kernel."""
    least = BUFFERS * sizes.now.least_buffer
    return max(least, min(edge_bytes + least, BUFFERS * (32 << 20)))


def split_for(
    program: Program,
    graph: Snapshot,
    recipe: Recipe,
    device: Device,
    memory: str | int | None,
    threads: int,
    policy: str,
) -> Split:
    """Split a budget for a program and a recipe on a device."""
    needs = needs_of(program, graph, device, threads, recipe)
    split = split_budget(needs, memory, policy, device, f"{program.name} on {graph}")
    if needs.pages and not split.resident and device.rounds_up_pages():
        split.cache += min(split.budget - split.peak, needs.pages)
    index = INDEX_BYTES.get(recipe.cache, 0) * graph.vertices
    keeps_nothing = needs.keeps and not split.resident and split.cache <= max(needs.pages, index)
    split.notes += device.budget_notes(split.budget, keeps_nothing)
    return split
