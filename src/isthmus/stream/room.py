"""What a stream takes of its memory budget: the graph, its ids, all arrays of the maintained programs, and a run of one of them.

A budget that cannot work is refused before programs compute anything, and the error names the smallest that does. Programs count their
arrays for the worst batch, one that changes all values (`Maintained.near_bytes`). Runs find the edges in memory. What a batch brings is
not counted, nor the columns of results that are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from isthmus.errors import BudgetError
from isthmus.graph.changing import ChangingGraph
from isthmus.graph.graph import Graph
from isthmus.memory import format_size
from isthmus.messages import option
from isthmus.runtime.budget import Split, split_budget

if TYPE_CHECKING:
    from isthmus.programs.program import Program
    from isthmus.stream.maintained import Maintained

ID_BYTES = {"dense": 16, "int64": 48, "string": 300}  # per vertex: ids by number, back, and in order; texts are Python's
UNLIMITED = 1 << 62


def check_room(graph: Graph, needed: int, budget: int) -> None:
    """Raise BudgetError unless a changing graph fits in memory."""
    if needed >= budget:
        raise BudgetError(
            f"a stream on {graph} needs {format_size(needed)} for its edges, and more for programs; the budget is {format_size(budget)}: "
            f"give {option('memory', f'{2 * needed // 10**6 + 1}MB')}"
        )


def room_for_runs(graph: ChangingGraph, graph_bytes: int, programs: Sequence[Maintained], budget: int, threads: int) -> int:
    """The budget of runs; BudgetError if there is not enough beside the graph and the programs.

    A run counts the edges and its program's state, which are there already: they are added to its budget.
    """
    n = graph.vertices
    near = sum(program.near_bytes(n) for program in programs) + n * ID_BYTES.get(graph.changing_ids.kind, ID_BYTES["int64"])
    splits = [(program.running(), split_of(program.running(), graph, threads)) for program in programs]
    there = min((counted(graph, program, split) for program, split in splits), default=0)
    least = graph_bytes + near + max((split.whole for _, split in splits), default=there) - there
    if budget < least:
        names = ", ".join(program.name for program in programs)
        raise BudgetError(
            f"a stream on {graph}{' with ' if names else ''}{names} needs at least {format_size(least)} near memory (edges "
            f"{format_size(graph_bytes)}, programs and ids {format_size(near)}); got {format_size(budget)}. "
            f"Give {option('memory', f'{least // 10**6 + 1}MB')} or more"
        )
    return budget - graph_bytes - near + there


def split_of(program: Program, graph: ChangingGraph, threads: int) -> Split:
    return split_budget(graph.snapshot, program, UNLIMITED, threads, "auto")


def counted(graph: ChangingGraph, program: Program, split: Split) -> int:
    """What a run of a program counts that the graph and the maintained program hold."""
    return graph.vertices * program.state_bytes + program.table_bytes(graph.snapshot) + split.offsets + split.edges
