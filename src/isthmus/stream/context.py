"""How a stream was opened: its options, the changing graph in memory or on disk, the session of its runs, its programs,
and the memory for all of them.

Everything that needs memory is opened here, or refused together with the smallest budget that works (`memory_plan.py`).
Edges are in memory if they fit in the budget. Otherwise a stored graph stays on disk, under an overlay of changes
(`graph/overlay/overlay_graph.py`).
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, TypedDict

from isthmus.devices.choose import device_named
from isthmus.devices.residency import Residency
from isthmus.errors import BudgetError, OptionError
from isthmus.graph.changing.advancing import AdvancingGraph
from isthmus.graph.changing.changing_graph import ChangingGraph
from isthmus.graph.graph import Graph
from isthmus.graph.overlay.overlay_graph import OverlayGraph
from isthmus.memory import Budget, format_size
from isthmus.messages import option
from isthmus.policies.stream_recipes import stream_recipe
from isthmus.programs.program import Program
from isthmus.stream.counted_session import CountedSession
from isthmus.stream.log.unlogged import Unlogged
from isthmus.stream.maintain.maintained import Maintained
from isthmus.stream.maintain.program_request import ProgramRequest, maintained
from isthmus.stream.memory_plan import is_share, memory_for_runs, memory_on_disk
from isthmus.stream.merger import Merger
from isthmus.stream.stream_session import StreamSession


class StreamOptions(TypedDict, total=False):
    """Options of `isthmus.stream`."""

    threads: int | None  # None: one for each core
    # What the stream holds: bytes, "2GB", or a share of the edges on disk, such as "10%". On a device: its memory, or a
    # share of the edges for lists that stay near.
    memory: str | int | None
    align: bool | None  # whether lists in memory begin on boundaries of 128 bytes
    device: str  # "model:NAME" for a modelled GPU or "cuda:NUMBER" for one of this machine; the host has the edges
    policy: str | None  # a recipe for edges on disk, or one of `policies/stream_recipes.py` for a device
    # Edges stay in the store, and only changes are in memory; None: if they do not fit in `memory`.
    on_disk: bool | None


OPTIONS = tuple(StreamOptions.__annotations__)


class StreamContext:
    """A graph that takes batches, and what serves it."""

    graph: AdvancingGraph
    session: StreamSession

    def __init__(
        self,
        graph: Graph | None,
        programs: Any,
        log: Unlogged,
        *,
        threads: int | None = None,
        memory: str | int | None = None,
        align: bool | None = None,
        device: str = "auto",
        policy: str | None = None,
        on_disk: bool | None = None,
    ) -> None:
        """Open the graph where it fits, and all that needs memory. `graph`: None if the log has it."""
        requested = [programs] if isinstance(programs, str | Program | ProgramRequest) else list(programs)
        self.threads, self.align, self._policy, self._device = threads, align, policy, device
        self._near_memory: str | int | None = None  # of a modelled device or a GPU
        self._on_device = device_named(device).counts_reads
        if self._on_device:
            self.align = True if align is None else align
            self.threads = 1 if threads is None else threads
            self._near_memory, memory, on_disk = memory, None, False
        self._memory, self.budget = memory, Budget(None if is_share(memory) else memory).limit
        self.requested: list[tuple[Maintained, Any]] = []  # maintained programs, and what the caller gave
        self.merger: Merger | None = None  # of a graph on disk
        self.notes: list[str] = []
        self._falls_back = False  # if the edges do not fit in memory, they stay on disk
        self._on_disk = self._location(on_disk)
        self._open(graph, requested, log)

    def _location(self, on_disk: Any) -> bool | None:
        """Whether edges are on disk; None: if they do not fit in memory."""
        if on_disk not in (True, False, None):
            raise OptionError(f"{option('on_disk')}: expected True or False, got {on_disk!r}")
        if not is_share(self._memory):
            return on_disk  # type: ignore[no-any-return]
        if on_disk is False:
            raise OptionError(
                f"{option('memory')}: a share of the edges is for a graph on disk; give a size such as 2GB"
            )
        return True

    @property
    def residency(self) -> Residency:
        """What is near between batches."""
        return self.session.residency

    # Opening

    def _open(self, graph: Graph | None, programs: list[Any], log: Unlogged) -> None:
        """With edges in memory or on disk; if no option says where, in memory, or on disk if they do not fit."""
        if self._on_disk is not None:
            self._open_all(graph, programs, log)
            return
        self._on_disk, self._falls_back = False, self.align is None and (graph is None or graph.path is not None)
        try:
            self._open_all(graph, programs, log)
            return
        except BudgetError as error:
            if not self._falls_back:
                raise
            self.notes.append(f"the edges do not fit in the memory budget, so they stay on disk: {error}")
        self._on_disk = True
        self._open_all(graph, programs, log)

    def _open_all(self, graph: Graph | None, programs: list[Any], log: Unlogged) -> None:
        if self._policy is not None and not self._on_device and not self._on_disk:
            raise OptionError(
                f"policy: recipes are for streams on disk, on a modelled device or on a GPU: give "
                f"{option('on_disk', True)} or "
                f"{option('device', 'model:rtx2080ti')}"
            )
        with ExitStack() as opened:
            changing = log.changing(graph, self)
            opened.callback(changing.close)
            session = self._open_session(changing)
            opened.callback(session.close)
            requested = [(maintained(each, session), each) for each in programs]
            self._split_memory(changing, session, [program for program, _ in requested])
            if self.merger is not None:
                opened.callback(self.merger.close)
            self.graph, self.session, self.requested = changing, session, requested
            self._opened = opened.pop_all()

    def open_graph(self, graph: Graph, number: int = 0) -> AdvancingGraph:
        """The graph, as one that takes batches. If it is that of another stream, none of its batches is applied
        meanwhile.
        """
        with graph.reading():
            return self._open_on_disk(graph, number) if self._on_disk else self._open_in_memory(graph, number)

    def _open_on_disk(self, graph: Graph, number: int) -> OverlayGraph:
        if self.align is not None:
            raise OptionError(f"{option('align')}: lists on disk are not aligned; leave it out for a graph on disk")
        return OverlayGraph(graph, self.threads, number)

    def _open_in_memory(self, graph: Graph, number: int) -> ChangingGraph:
        self._check_budget(graph, graph.edge_bytes * (2 if graph.directed else 1))  # before they are loaded
        opened = ChangingGraph(graph, self.threads, self.align, number)
        try:
            self._check_budget(opened, opened.near_bytes)
        except BudgetError:
            opened.close()
            raise
        return opened

    def _check_budget(self, graph: Graph, needed: int) -> None:
        """Raise BudgetError unless a changing graph fits in memory."""
        if needed >= self.budget:
            may_be_on_disk = graph.path is not None and not self._falls_back
            more = f", or leave the edges on disk with {option('on_disk', True)}" if may_be_on_disk else ""
            raise BudgetError(
                f"a stream on {graph} needs {format_size(needed)} for its edges, and more for programs; "
                f"the budget is {format_size(self.budget)}: give "
                f"{option('memory', f'{2 * needed // 10**6 + 1}MB')}{more}"
            )

    def _open_session(self, graph: AdvancingGraph) -> StreamSession:
        if self._on_device and isinstance(graph, ChangingGraph):
            return CountedSession(graph, self._device, stream_recipe(self._policy), self.threads)
        return StreamSession(graph, threads=self.threads, policy=self._policy or "auto")

    def _split_memory(self, graph: AdvancingGraph, session: StreamSession, programs: list[Maintained]) -> None:
        """Split the memory among graph, programs, runs and changes; BudgetError if there is not enough."""
        if self._on_device:
            session.begin(programs, self._near_memory)
            return
        if isinstance(graph, OverlayGraph):
            memory = memory_on_disk(graph, programs, self._memory, self.budget, session)
            self.budget, runs = memory.budget, memory.runs
            self.merger = Merger(graph, memory.changes)
        else:
            runs = memory_for_runs(graph, graph.near_bytes, programs, self.budget, session.team.size)
        session.settings = session.settings.changed(memory=runs)

    def close(self) -> None:
        """Stop the merger, and close session and graph, also after Ctrl-C."""
        with self.graph.lock:  # a batch or a run of another thread reads the files
            self._opened.close()
