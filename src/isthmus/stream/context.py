"""What a stream stands on: a changing graph in memory or on disk, the session of its runs, its programs, and the memory
for all of them.

Everything that needs memory is opened here, or refused together with the smallest budget that works (`memory_plan.py`).
If edges do not fit in memory, it is tried once more with the edges on disk (`edge_location.py`).
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from isthmus.devices.choose import device_named
from isthmus.errors import OptionError
from isthmus.graph.changing.advancing import AdvancingGraph
from isthmus.graph.changing.changing_graph import ChangingGraph
from isthmus.graph.graph import Graph
from isthmus.graph.overlay.overlay_graph import OverlayGraph
from isthmus.memory import Budget
from isthmus.messages import option
from isthmus.programs.program import Program
from isthmus.runtime.session import Session
from isthmus.stream.devices.device_session import DeviceSession
from isthmus.stream.devices.reads import FarReads
from isthmus.stream.edge_location import EdgeLocation, is_share, location_of
from isthmus.stream.log.unlogged import Unlogged
from isthmus.stream.maintain.maintained import Maintained
from isthmus.stream.maintain.program_request import ProgramRequest, maintained
from isthmus.stream.memory_plan import memory_for_runs, memory_on_disk
from isthmus.stream.merger import Merger
from isthmus.stream.stream_recipes import stream_recipe


@dataclass
class StreamOptions:
    """How a caller wants a stream, by the options of `isthmus.stream`."""

    threads: int | None
    memory: str | int | None
    align: bool | None
    device: str
    policy: str | None
    on_disk: bool | None

    def __post_init__(self) -> None:
        self.modelled = device_named(self.device).counts_reads
        self.near = self.memory  # of a modelled device or a GPU
        if self.modelled:
            self.align = True if self.align is None else self.align
            self.threads = 1 if self.threads is None else self.threads
            self.on_disk, self.memory = False, None


@dataclass
class StreamContext:
    """A graph that takes batches, and what serves it."""

    graph: AdvancingGraph
    budget: int
    session: Session = field(init=False)
    requested: list[tuple[Maintained, Any]] = field(default_factory=list)  # programs, and what was asked for
    far: FarReads | None = None  # on a modelled device or a GPU
    merger: Merger | None = None  # of a graph on disk
    notes: list[str] = field(default_factory=list)

    def serve(self, programs: list[Any], options: StreamOptions) -> None:
        """Make the session and the programs, and split the memory; BudgetError if there is not enough."""
        graph, threads, policy = self.graph, options.threads, options.policy
        if isinstance(graph, ChangingGraph) and options.modelled:
            self.session = DeviceSession(graph, options.device, stream_recipe(policy), threads)
        else:
            self.session = Session(graph, threads=threads, policy=policy or "auto")
        self.requested = [(maintained(wanted, self.session), wanted) for wanted in programs]
        self._split([program for program, _ in self.requested], options)

    def _split(self, programs: list[Maintained], options: StreamOptions) -> None:
        if isinstance(self.session, DeviceSession):
            self.far = self.session.begin(programs, options.near)
            return
        if isinstance(self.graph, OverlayGraph):
            room = memory_on_disk(self.graph, programs, options.memory, self.budget, self.session)
            self.budget, runs = room.budget, room.runs
            self.merger = Merger(self.graph, room.changes)
        else:
            runs = memory_for_runs(self.graph, self.graph.near_bytes, programs, self.budget, self.session.team.size)
        self.session.settings = self.session.settings.changed(memory=runs)

    def close(self) -> None:
        with self.graph.lock, ExitStack() as rest:  # a batch or a run of another thread reads the files
            rest.callback(self.graph.close)
            if "session" in vars(self):
                rest.callback(self.session.close)
            if self.merger is not None:
                self.merger.close()  # Ctrl-C while it waits: the others are closed all the same


def open_context(graph: Graph | None, programs: Any, log: Unlogged, options: StreamOptions) -> StreamContext:
    """Open the graph where it fits, with everything that needs memory. `graph`: None if the log has it."""
    programs = [programs] if isinstance(programs, str | Program | ProgramRequest) else list(programs)
    budget = Budget(None if is_share(options.memory) else options.memory).limit

    def attempt(location: EdgeLocation) -> StreamContext:
        if options.policy is not None and not options.modelled and not location.on_disk:
            raise OptionError(
                f"policy: recipes are for streams on disk, on a modelled device or on a GPU: give "
                f"{option('on_disk', True)} or "
                f"{option('device', 'model:rtx2080ti')}"
            )
        context = StreamContext(log.changing(graph, location), budget)
        try:
            context.serve(programs, options)
            return context
        except BaseException:
            context.close()
            raise

    location = location_of(options.on_disk, options.memory, budget, options.threads, options.align)
    context = location.tried(attempt, graph is None or graph.path is not None)
    context.notes += location.notes
    return context
