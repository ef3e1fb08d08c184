"""How the memory budget of a stream is split: the graph, its ids, all arrays of the maintained programs, and a run of
one of them.

A budget that cannot work is refused before programs compute anything, and the error names the smallest that does.
Programs count their arrays for the worst batch, one that changes all values (`Maintained.near_bytes`). Runs on a graph
in memory find the edges there. The rows of a batch are not counted, nor the columns of results that are read.

For a graph on disk, the positions of its lists and the changes since it was stored are near. The budget beyond the
minimum is for runs, which read edges from disk, and for changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isthmus import sizes
from isthmus.devices.cpu import Cpu
from isthmus.errors import BudgetError
from isthmus.graph.changing.advancing import AdvancingGraph
from isthmus.graph.store.files import BLOCK
from isthmus.memory import format_size, share_of
from isthmus.messages import option
from isthmus.runtime.execute import recipe_for
from isthmus.runtime.near.budget import Split, needs_of, split_budget, split_for

if TYPE_CHECKING:
    from isthmus.programs.program import Program
    from isthmus.runtime.session import Session
    from isthmus.stream.maintain.maintained import Maintained

# Per vertex: ids by number, back, and in order; texts are Python's.
ID_BYTES = {"dense": 16, "int64": 48, "string": 300}
UNLIMITED = 1 << 62
LEAST_CHANGES = 256 << 10  # bytes for changes in every budget: some ten thousand changes; less for a small graph
# One part in sixteen of the memory beyond the minimum is the capacity for changes, and they are given HELD parts.
CHANGES = 16
# Times the capacity: the changes in the snapshot that is merged, 1; in the current one, and in the next while a batch
# is applied, FULL of `stream/merger.py` each; those since the merge began, in the merged graph and its next one,
# FULL - 1 each; and as batches that wait for it.
HELD = 6
# Copies of the positions of lists: of these three, of the merged graph, and of its next one while it catches up.
LISTS_HELD = 5
CHECKED = BLOCK // 8  # bytes of edges per byte of their checksums
IDS_HELD = 2  # copies of the ids: the merged graph has its own


def is_share(memory: str | int | None) -> bool:
    """Whether a budget is a share of the edges, such as 10%: the others are on disk."""
    return isinstance(memory, str) and memory.strip().endswith("%")


def memory_for_runs(
    graph: AdvancingGraph, graph_bytes: int, programs: Sequence[Maintained], budget: int, threads: int
) -> int:
    """The budget of runs; BudgetError if there is not enough beside the graph and the programs.

    A run counts the edges and its program's state, which are there already: they are added to its budget.
    """
    n = graph.vertices
    near = sum(program.near_bytes(n) for program in programs) + n * ID_BYTES.get(
        graph.changing_ids.kind, ID_BYTES["int64"]
    )
    splits = [(program.running(), split_of(program.running(), graph, threads)) for program in programs]
    there = min((counted(graph, program, split) for program, split in splits), default=0)
    least = graph_bytes + near + max((split.whole for _, split in splits), default=there) - there
    if budget < least:
        names = ", ".join(program.name for program in programs)
        raise BudgetError(
            f"a stream on {graph}{' with ' if names else ''}{names} needs at least {format_size(least)} near "
            f"memory (edges "
            f"{format_size(graph_bytes)}, programs and ids {format_size(near)}); got {format_size(budget)}. "
            f"Give {option('memory', f'{least // 10**6 + 1}MB')} or more"
        )
    return budget - graph_bytes - near + there


def split_of(program: Program, graph: AdvancingGraph, threads: int) -> Split:
    device = Cpu()
    return split_budget(needs_of(program, graph.snapshot, device, threads), UNLIMITED, "auto", device)


def counted(graph: AdvancingGraph, program: Program, split: Split) -> int:
    """What a run of a program counts that the graph and the maintained program hold."""
    return graph.vertices * program.state_bytes + program.table_bytes(graph.snapshot) + split.offsets + split.edges


@dataclass(frozen=True)
class DiskMemory:
    """How the budget of a stream on disk is split."""

    budget: int
    runs: int  # for runs, with what the graph and the programs hold anyway
    changes: int  # for changes, before they are merged into a new store


def memory_on_disk(
    graph: AdvancingGraph, programs: Sequence[Maintained], memory: str | int | None, budget: int, session: Session
) -> DiskMemory:
    """Split a budget, or the minimum plus a share of the edges; BudgetError if the budget is too small."""
    threads, policy = session.team.size, session.settings.policy
    n, snapshot, sides = graph.vertices, graph.snapshot, 2 if graph.directed else 1
    ids = IDS_HELD * n * ID_BYTES.get(graph.changing_ids.kind, ID_BYTES["int64"])
    near = sum(program.near_bytes(n) for program in programs) + ids
    # And where gathered lists lie, of both graphs.
    lists = sides * (LISTS_HELD * snapshot.list_bytes("out") + 2 * 16 * n)
    buffers = 4 * min(sizes.now.merged, snapshot.edge_bytes) + 2 * min(sizes.now.gathered, snapshot.edge_bytes)
    fences = graph.near_bytes - sides * snapshot.list_bytes("out")
    # of this graph and the merged one; a merge has checksums of its own.
    tables = 2 * fences + 3 * sides * snapshot.edge_bytes // CHECKED
    buffers += (threads + 2) * sizes.now.staging + tables
    running = [program.running() for program in programs]
    splits = [
        split_for(program, snapshot, recipe_for(program, session), session.device, "0%", threads, policy)
        for program in running
    ]
    there = min((n * program.state_bytes + program.table_bytes(snapshot) for program in running), default=0)
    run = max((split.least for split in splits), default=there)
    few = min(LEAST_CHANGES, max(BLOCK, snapshot.edge_bytes // CHANGES))
    least = near + lists + buffers + run - there + HELD * few
    edge_bytes = max(
        (sum(snapshot.slots(side) for side in program.sides) * entry_bytes(program, graph) for program in running),
        default=0,
    )
    share = share_of(memory)
    if share is not None:
        budget = least + int(edge_bytes * share)
    if budget < least:
        names = ", ".join(program.name for program in programs)
        raise BudgetError(
            f"a stream on {graph}{' with ' if names else ''}{names}, its edges on disk, needs at least "
            f"{format_size(least)} near memory "
            f"(positions of lists {format_size(lists)}, programs and ids {format_size(near)}); got "
            f"{format_size(budget)}. "
            f"Give {option('memory', f'{least // 10**6 + 1}MB')} or more"
        )
    changes = (budget - least) // CHANGES
    # Runs let go of their edges before a batch is published.
    lent = sum(program.publishing_bytes(n) for program in programs)
    return DiskMemory(budget, run + budget - least - HELD * changes + lent, few + changes)


def entry_bytes(program: Program, graph: AdvancingGraph) -> int:
    return graph.snapshot.target_bytes + (graph.snapshot.weight_bytes if program.reads_weights() else 0)
