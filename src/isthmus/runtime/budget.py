"""What fits where: near memory split between vertex state, offsets, frontier and edges, before a job starts.

`memory` is a promise. An absolute budget that cannot work fails here and names the smallest that does; a
percentage means vertex state plus that share of the edge bytes, raised to the least that works.
"""

from __future__ import annotations

import re
import sys
from dataclasses import asdict, dataclass, field

from isthmus.errors import BudgetError, OptionError
from isthmus.frontier import frontier_bytes
from isthmus.graph.graph import Graph
from isthmus.memory import DEFAULT_SHARE, available, format_size, parse_size
from isthmus.programs.program import Program

BUFFERS = 4  # two being filled, two being worked on
LEAST_BLOCKS = 24  # of 4 KB in a buffer: the narrower zone of the two then holds several lists whatever their alignment
LEAST_BUFFER = 256 << 10  # bytes; smaller ones make more requests than sense
MODELLED_BUFFER = 80 << 10  # bytes; a modelled link has no time to save, and small graphs stand for large ones
ENOUGH = 4 << 20  # bytes; larger ones are read a little faster, but what keeps edges near saves reading them
ROW_BYTES = 64  # the plan of a delivery, per row of a buffer: bounded by its blocks


@dataclass
class Near:
    """Bytes of near memory by purpose. `resident`: all edges stay near."""

    budget: int
    state: int
    offsets: int
    frontier: int
    edges: int  # staging buffers, or all edges when resident
    resident: bool
    cache: int  # for edges that stay near
    notes: list[str] = field(default_factory=list)
    least: int = 0  # the smallest budget that works
    whole: int = 0  # the smallest that all edges fit in

    @property
    def peak(self) -> int:
        return self.state + self.offsets + self.frontier + self.edges + self.cache

    def as_dict(self) -> dict[str, object]:
        split = asdict(self)
        for other in ("notes", "least", "whole"):
            split.pop(other)
        return split


def plan(
    graph: Graph, program: Program, memory: str | int | None, threads: int, policy: str, keeps: bool = False,
    device_bytes: int | None = None, index_bytes: int = 0, page_bytes: int = 0,
) -> Near:  # fmt: skip
    """Split a budget for `program` on `graph`, or raise BudgetError. `keeps`: what is left keeps edges near.

    `index_bytes`: per vertex, of what finds kept edges; it is vertex state, though part of the cache. `device_bytes`: near memory
    of a modelled device, which is the default budget there. `page_bytes`: the least for lists that are read through pages.
    """
    least_buffer, enough = (LEAST_BUFFER, ENOUGH) if device_bytes is None else (min(LEAST_BUFFER, MODELLED_BUFFER),) * 2
    n, sides = graph.vertices, len(program.sides)
    entry = graph.target_bytes + (graph.weight_bytes if program.reads_weights() else 0)
    edge_bytes = sum(graph.store.slots(side if graph.directed else "out") for side in program.sides) * entry
    state, offsets, frontier = n * program.state_bytes, 8 * (n + 1) * sides, frontier_bytes(n, threads)
    index = n * index_bytes if keeps else 0
    vertex = state + offsets + frontier + index
    least_edges = min(BUFFERS * least_buffer, edge_bytes + BUFFERS * LEAST_BLOCKS * 4096) + page_bytes
    share = re.fullmatch(r"\s*([0-9.]+)\s*%\s*", memory) if isinstance(memory, str) else None
    notes: list[str] = []
    if share:
        wanted = int(edge_bytes * parse_share(share[1]))
        if wanted < least_edges:
            notes.append(f"{share[0].strip()} of the edges raised to {format_size(least_edges)}, the least that works")
        budget = vertex + max(wanted, least_edges)
    else:
        budget = min(int(available() * DEFAULT_SHARE), device_bytes or sys.maxsize) if memory is None else parse_size(memory)
    least = vertex + least_edges
    if budget < least:
        raise BudgetError(
            f"{program.name} on {graph} needs at least {format_size(least)} near memory (vertex state {format_size(vertex)}); "
            f"got {format_size(budget)}. Give --memory {least // 10**6 + 1}MB or more"
        )
    room = budget - vertex
    # A recipe that was asked for by name moves edges even when they would fit, unless the budget is the default.
    all_edges = edge_bytes + n * program.solve_bytes
    resident = room >= all_edges and (policy == "auto" or memory is None)
    if resident:
        state += n * program.solve_bytes
    edges = edge_bytes if resident else min(room - page_bytes, most_staging(edge_bytes))
    if (keeps or device_bytes is not None) and not resident:  # modelled recipes have partitions of one size, to compare them
        edges = min(edges, max(room // 4, BUFFERS * enough))
    cache = 0 if resident else page_bytes
    if keeps and not resident:
        cache = max(cache, min(room - edges, edge_bytes)) + index
    return Near(budget, state, offsets, frontier, edges, resident, cache, notes, least, max(least, vertex + all_edges))


def parse_share(text: str) -> float:
    try:
        return float(text) / 100
    except ValueError:
        raise OptionError(f"memory: expected a share such as 10%, got {text}%") from None


def most_staging(edge_bytes: int) -> int:
    """Beyond a few tasks' worth, staging only delays the first kernel."""
    return max(BUFFERS * LEAST_BUFFER, min(edge_bytes + BUFFERS * LEAST_BUFFER, BUFFERS * (32 << 20)))
