"""What a stream stands on: a changing graph in memory or on disk, the session of its runs, its programs, and the memory
for all of them.

Everything that needs memory is opened here, or refused together with the smallest budget that works (`memory_plan.py`).
If edges do not fit in memory, it is tried once more with the edges on disk (`edge_location.py`).
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from isthmus.devices.choose import device_of
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
from isthmus.stream.edge_location import Home, home_of, is_share
from isthmus.stream.log.unlogged import Unlogged
from isthmus.stream.maintain.maintained import Maintained
from isthmus.stream.maintain.program_request import Wanted, maintained
from isthmus.stream.memory_plan import room_for_runs, room_on_disk
from isthmus.stream.merger import Merger
from isthmus.stream.stream_recipes import stream_recipe


@dataclass
class Wishes:
    """How a caller wants a stream, by the options of `isthmus.stream`."""

    threads: int | None
    memory: str | int | None
    align: bool | None
    device: str
    policy: str | None
    on_disk: bool | None

    def __post_init__(self) -> None:
        self.modelled = device_of(self.device) is not None
        self.near = self.memory  # of a modelled device or a GPU
        if self.modelled:
            self.align = True if self.align is None else self.align
            self.threads = 1 if self.threads is None else self.threads
            self.on_disk, self.memory = False, None


@dataclass
class Ground:
    """A graph that takes batches, and what serves it."""

    graph: AdvancingGraph
    budget: int
    session: Session = field(init=False)
    asked: list[tuple[Maintained, Any]] = field(default_factory=list)  # programs, and what was asked for
    far: FarReads | None = None  # on a modelled device or a GPU
    merger: Merger | None = None  # of a graph on disk
    notes: list[str] = field(default_factory=list)

    def serve(self, programs: list[Any], wishes: Wishes) -> None:
        """Make the session and the programs, and split the memory; BudgetError if there is not enough."""
        graph, threads, policy = self.graph, wishes.threads, wishes.policy
        if isinstance(graph, ChangingGraph) and wishes.modelled:
            self.session = DeviceSession(graph, wishes.device, stream_recipe(policy), threads)
        else:
            self.session = Session(graph, threads=threads, policy=policy or "auto")
        self.asked = [(maintained(wanted, self.session), wanted) for wanted in programs]
        self._split([program for program, _ in self.asked], wishes)

    def _split(self, programs: list[Maintained], wishes: Wishes) -> None:
        if isinstance(self.session, DeviceSession):
            self.far = self.session.begin(programs, wishes.near)
            return
        if isinstance(self.graph, OverlayGraph):
            room = room_on_disk(self.graph, programs, wishes.memory, self.budget, self.session)
            self.budget, runs = room.budget, room.runs
            self.merger = Merger(self.graph, room.changes)
        else:
            runs = room_for_runs(self.graph, self.graph.near_bytes, programs, self.budget, self.session.team.size)
        self.session.settings = replace(self.session.settings, memory=runs)

    def close(self) -> None:
        with self.graph.lock, ExitStack() as rest:  # a batch or a run of another thread reads the files
            rest.callback(self.graph.close)
            if "session" in vars(self):
                rest.callback(self.session.close)
            if self.merger is not None:
                self.merger.close()  # Ctrl-C while it waits: the others are closed all the same


def open_ground(graph: Graph | None, programs: Any, log: Unlogged, wishes: Wishes) -> Ground:
    """Open the graph where it fits, with everything that needs memory. `graph`: None if the log has it."""
    programs = [programs] if isinstance(programs, str | Program | Wanted) else list(programs)
    budget = Budget(None if is_share(wishes.memory) else wishes.memory).limit

    def attempt(home: Home) -> Ground:
        if wishes.policy is not None and not wishes.modelled and not home.on_disk:
            raise OptionError(
                f"policy: recipes are for streams on disk, on a modelled device or on a GPU: give "
                f"{option('on_disk', True)} or "
                f"{option('device', 'model:rtx2080ti')}"
            )
        ground = Ground(log.changing(graph, home), budget)
        try:
            ground.serve(programs, wishes)
            return ground
        except BaseException:
            ground.close()
            raise

    home = home_of(wishes.on_disk, wishes.memory, budget, wishes.threads, wishes.align)
    ground = home.tried(attempt, graph is None or graph.path is not None)
    ground.notes += home.notes
    return ground
