"""Whether a changing graph fits in memory."""

from __future__ import annotations

from isthmus.errors import BudgetError
from isthmus.graph.graph import Graph
from isthmus.memory import format_size
from isthmus.messages import option


def check_room(graph: Graph, needed: int, budget: int) -> None:
    """Raise BudgetError unless a changing graph fits in memory."""
    if needed >= budget:
        raise BudgetError(
            f"a stream on {graph} needs {format_size(needed)} for its edges, and more for programs; the budget is {format_size(budget)}: "
            f"give {option('memory', f'{2 * needed // 10**6 + 1}MB')}"
        )
