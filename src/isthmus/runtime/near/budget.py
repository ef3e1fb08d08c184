"""Splits near memory between vertex state, offsets, frontier and edges, before a run starts.

`memory` is a promise. An absolute budget that is too small fails here, and the error names the smallest that works. A
percentage means vertex state plus that share of the edge bytes, raised to the minimum if it is smaller.
"""

from __future__ import annotations

import re
import sys
from dataclasses import asdict, dataclass, field

from isthmus import sizes
from isthmus.cache.ranking import RANKINGS
from isthmus.devices.model.figures import Device
from isthmus.errors import BudgetError, OptionError
from isthmus.frontier import frontier_bytes
from isthmus.graph.snapshot import Snapshot
from isthmus.graph.store.files import BLOCK
from isthmus.memory import DEFAULT_SHARE, available, format_size, parse_size
from isthmus.messages import option
from isthmus.policies.recipe import Recipe
from isthmus.programs.program import Program

BUFFERS = 4  # two being filled, two being run
# of 4 KB in a buffer: the narrower of its two zones then holds several lists whatever their alignment.
LEAST_BLOCKS = 24
ENOUGH = 4 << 20  # bytes of a buffer; larger ones read a little faster, but a cache saves more with the same memory
INDEX_BYTES = {name: ranking.index_bytes for name, ranking in RANKINGS.items()}  # per vertex, by cache
LEAST_PAGES = 64  # of 4 KB, where lists are read through pages


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


def split_budget(
    graph: Snapshot,
    program: Program,
    memory: str | int | None,
    threads: int,
    policy: str,
    keeps: bool = False,
    device_bytes: int | None = None,
    index_bytes: int = 0,
    page_bytes: int = 0,
    gpu: str = "",
) -> Split:
    """Split a budget for `program` on `graph`, or raise BudgetError. `keeps`: the remaining memory keeps edges near.

    `index_bytes`: bytes per vertex of the cache's index; they count as vertex state, though they are part of the cache.
    `device_bytes`: near memory of a modelled device, and the default budget there, if the host has as much.
    `page_bytes`: the minimum for pages, where lists are read through them. `gpu`: the GPU whose free memory
    `device_bytes` is; the host's does not matter.
    """
    least_buffer, enough = sizes.now.least_buffer, ENOUGH
    if device_bytes is not None:
        least_buffer = enough = min(least_buffer, sizes.now.modelled_buffer)
    n = graph.vertices
    entry = graph.target_bytes + (graph.weight_bytes if program.reads_weights() else 0)
    edge_bytes = entry * sum(graph.slots(side) for side in program.sides)
    state, frontier = n * program.state_bytes + program.table_bytes(graph), frontier_bytes(n, threads)
    offsets = sum(graph.list_bytes(side) for side in program.sides)
    if device_bytes is None:
        offsets += (
            sum(checksum_bytes(graph, side, program.reads_weights()) for side in program.sides) + graph.staging_bytes
        )
    index = n * index_bytes if keeps else 0
    vertex = state + offsets + frontier + index
    least_edges = min(BUFFERS * least_buffer, edge_bytes + BUFFERS * LEAST_BLOCKS * 4096) + page_bytes
    share = re.fullmatch(r"\s*([0-9.]+)\s*%\s*", memory) if isinstance(memory, str) else None
    notes: list[str] = []
    if share:
        wanted = int(edge_bytes * parse_share(share[1]))
        if wanted < least_edges:
            notes.append(
                f"{share[0].strip()} is below the minimum for this graph; using {format_size(least_edges)} for edges"
            )
        budget = vertex + max(wanted, least_edges)
    else:
        budget = default_budget(device_bytes, gpu) if memory is None else parse_size(memory)
    least = vertex + least_edges
    if budget < least:
        raise BudgetError(
            f"{program.name} on {graph} needs at least {format_size(least)} near memory (vertex state "
            f"{format_size(vertex)}); "
            f"got {format_size(budget)}. {more_memory(least, device_bytes, gpu)}"
        )
    room = budget - vertex
    # A recipe chosen by name moves edges even when they would fit, unless the budget is the default.
    all_edges = edge_bytes + n * program.solve_bytes
    resident = room >= all_edges and (policy == "auto" or memory is None)
    if resident:
        state += n * program.solve_bytes
    edges = edge_bytes if resident else min(room - page_bytes, most_staging(edge_bytes))
    # on a modelled device all recipes get partitions of the same size.
    if (keeps or device_bytes is not None) and not resident:
        edges = min(edges, max(room // 4, BUFFERS * enough))
    cache = 0 if resident else page_bytes
    if keeps and not resident:
        cache = max(cache, min(room - edges, edge_bytes)) + index
    return Split(budget, state, offsets, frontier, edges, resident, cache, notes, least, max(least, vertex + all_edges))


def default_budget(device_bytes: int | None, gpu: str) -> int:
    """The budget if none is given. Near memory of a modelled device is the host's, that of a GPU is its own."""
    if gpu and device_bytes is not None:
        return device_bytes
    return min(int(available() * DEFAULT_SHARE), device_bytes or sys.maxsize)


def more_memory(least: int, device_bytes: int | None, gpu: str) -> str:
    """What to do if a budget is smaller than `least`: a GPU cannot be given more memory than it has."""
    if gpu and device_bytes is not None and least > device_bytes:
        return (
            f"{gpu} has {format_size(device_bytes)} free; use {option('device', 'cpu')}, or end other programs "
            f"on the GPU"
        )
    return f"Give {option('memory', f'{least // 10**6 + 1}MB')} or more"


def checksum_bytes(graph: Snapshot, side: str, weights: bool) -> int:
    """Bytes of the tables of checksums that a link to a side's arrays holds."""
    return 8 * sum(array.blocks for array in graph.far(side, weights) if array.file is not None)


def parse_share(text: str) -> float:
    try:
        return float(text) / 100
    except ValueError:
        raise OptionError(f"memory: expected a share such as 10%, got {text}%") from None


def most_staging(edge_bytes: int) -> int:
    """The largest useful staging memory: more than a few tasks only delays the first kernel."""
    least = BUFFERS * sizes.now.least_buffer
    return max(least, min(edge_bytes + least, BUFFERS * (32 << 20)))


def split_for(
    program: Program,
    graph: Snapshot,
    recipe: Recipe,
    model: Device | None,
    memory: str | int | None,
    threads: int,
    policy: str,
) -> Split:
    """Split a budget for a program and a recipe. The default budget of a modelled device is its own memory.

    The frontier of a modelled device has one queue, whatever threads the host has.
    """
    one_pass = program.max_iter == 1 and not program.runs_again and not recipe.pages
    used_once = one_pass or (recipe.keeps_lists and program.follows_each_vertex_once)
    keeps = recipe.keeps and not program.needs_spare_memory and not used_once
    index_bytes = INDEX_BYTES.get(recipe.cache, 0)
    if model is None:
        pages = LEAST_PAGES * BLOCK if recipe.pages else 0
        return split_budget(graph, program, memory, threads, policy, keeps, None, index_bytes, pages)
    arrays = len(program.sides) * (2 if program.reads_weights() and graph.weighted else 1)
    pages = arrays * model.managed.page_bytes if recipe.pages else 0
    split = split_budget(graph, program, memory, 1, policy, keeps, model.near.bytes, index_bytes, pages, model.gpu)
    if pages and not split.resident:  # the last page of every array takes the room of a whole page
        split.cache += min(split.budget - split.peak, pages)
    if keeps and not split.resident and split.cache <= max(pages, index_bytes * graph.vertices):
        split.notes.append("the budget leaves no room to keep edges near")
    if split.budget > model.near.bytes:
        split.notes.append(f"the budget is more than the {format_size(model.near.bytes)} of memory of {model.name}")
    return split
