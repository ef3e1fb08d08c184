"""Where the edges of a stream are: in memory, or on disk under an overlay of changes
(`graph/overlay/overlay_graph.py`).

They are in memory if they fit the budget. Otherwise a stored graph stays on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from isthmus.errors import BudgetError, OptionError
from isthmus.graph.changing.advancing import AdvancingGraph
from isthmus.graph.changing.changing_graph import ChangingGraph
from isthmus.graph.graph import Graph
from isthmus.graph.overlay.overlay_graph import OverlayGraph
from isthmus.memory import format_size
from isthmus.messages import option

Opened = TypeVar("Opened")


@dataclass
class EdgeLocation:
    """How a changing graph is opened. `on_disk` is None if the budget decides."""

    on_disk: bool | None
    budget: int
    threads: int | None = None
    align: bool | None = None  # of lists in memory
    falls_back: bool = False  # if the edges do not fit in memory, they stay on disk
    notes: list[str] = field(default_factory=list)

    def open(self, graph: Graph, number: int = 0) -> AdvancingGraph:
        """The graph, as one that takes batches. If it is that of another stream, none of its batches is applied
        meanwhile.
        """
        with graph.reading():
            return self._on_disk(graph, number) if self.on_disk else self._in_memory(graph, number)

    def _on_disk(self, graph: Graph, number: int) -> OverlayGraph:
        if self.align is not None:
            raise OptionError(f"{option('align')}: lists on disk are not aligned; leave it out for a graph on disk")
        return OverlayGraph(graph, self.threads, number)

    def _in_memory(self, graph: Graph, number: int) -> ChangingGraph:
        self._check_room(graph, graph.edge_bytes * (2 if graph.directed else 1))  # before they are loaded
        opened = ChangingGraph(graph, self.threads, self.align, number)
        try:
            self._check_room(opened, opened.near_bytes)
        except BudgetError:
            opened.close()
            raise
        return opened

    def tried(self, attempt: Callable[[EdgeLocation], Opened], may_be_on_disk: bool) -> Opened:
        """Call `attempt` with the edges in memory; if they do not fit, and may be on disk, with the edges on disk."""
        if self.on_disk is not None:
            return attempt(self)
        falls_back = may_be_on_disk and self.align is None
        try:
            return attempt(replace(self, on_disk=False, falls_back=falls_back))
        except BudgetError as error:
            if not falls_back:
                raise
            self.notes.append(f"the edges do not fit in the memory budget, so they stay on disk: {error}")
            return attempt(replace(self, on_disk=True))

    def _check_room(self, graph: Graph, needed: int) -> None:
        """Raise BudgetError unless a changing graph fits in memory."""
        if needed >= self.budget:
            more = (
                ""
                if graph.path is None or self.falls_back
                else f", or leave the edges on disk with {option('on_disk', True)}"
            )
            raise BudgetError(
                f"a stream on {graph} needs {format_size(needed)} for its edges, and more for programs; "
                f"the budget is {format_size(self.budget)}: give "
                f"{option('memory', f'{2 * needed // 10**6 + 1}MB')}{more}"
            )


def location_of(
    on_disk: Any, memory: str | int | None, budget: int, threads: int | None, align: bool | None
) -> EdgeLocation:
    """The home that a caller wants. A share of the edges, such as 10%, means that the others are on disk."""
    if on_disk not in (True, False, None):
        raise OptionError(f"{option('on_disk')}: expected True or False, got {on_disk!r}")
    share = is_share(memory)
    if share and on_disk is False:
        raise OptionError(f"{option('memory')}: a share of the edges is for a graph on disk; give a size such as 2GB")
    return EdgeLocation(True if share else on_disk, budget, threads, align)


def is_share(memory: str | int | None) -> bool:
    return isinstance(memory, str) and memory.strip().endswith("%")
