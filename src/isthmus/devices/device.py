"""A device: where programs run. It alone knows where lists, edges and state lie.

Sessions, the loop and streams ask a device, and never test which one they have. There are two objects:

- A `Device` is what a user names: `cpu`, `model:rtx2080ti`, `cuda:0`. It holds nothing. It says how a budget is split,
  which costs policies use, how recipes change, and how it is described and measured.
- A `DeviceMemory` (`cpu.py`) is what a device holds for one session: links, edges that stay near, positions of lists,
  caches, frontier and state. `Device.memory` makes it.

A new kind of device is one folder, also in another package: a subclass of `Device`, named by an entry point of
the group `isthmus.devices` (docs/plugins.md). `choose.py` finds it by the word before the colon.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from isthmus.devices.calibration import Calibration
from isthmus.engines.engine import PageCost
from isthmus.errors import OptionError
from isthmus.graph.snapshot import Snapshot
from isthmus.link.link import Profile
from isthmus.messages import option
from isthmus.policies.recipe import Recipe
from isthmus.policies.recipes import recipe
from isthmus.programs.program import Program
from isthmus.threads import Team

if TYPE_CHECKING:
    from isthmus.devices.cpu import DeviceMemory


@dataclass(frozen=True)
class DeviceInfo:
    """A device for people: its name, what it is if that is known, and why it cannot be used, or an empty text."""

    device: str
    what: str
    trouble: str = ""

    def __str__(self) -> str:
        return "; ".join(filter(None, (self.what, self.trouble and f"not usable: {self.trouble}")))

    @property
    def usable(self) -> bool:
        return not self.trouble

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "usable": self.usable}


class Device(ABC):
    """Where programs run. Subclasses say how a device of their kind is opened, split, described and measured."""

    kind: ClassVar[str]  # the word before the colon in `device=`
    name: str  # in summaries
    sweeps = True  # PageRank may sweep over in-edges in place
    solves = True  # programs may use kernels of their own when all edges are near
    reads_disks = True  # edges may come from a disk that the caller asks for (`far="disk"`)
    same_partitions = False  # all recipes get partitions of the same size
    counts_reads = False  # a stream leaves its edges in the host's memory, and every read of a list is counted

    @classmethod
    @abstractmethod
    def open(cls, argument: str | None) -> Device:
        """The device that `kind:argument` names, or `kind` alone; raises OptionError if it cannot be used."""

    @classmethod
    @abstractmethod
    def listed(cls) -> list[DeviceInfo]:
        """All devices of this kind, for people."""

    @abstractmethod
    def memory(self, snapshot: Snapshot, team: Team, verify: bool, far: str) -> DeviceMemory:
        """What the device holds for a session, empty at first. `verify` and `far` are the session's options."""

    def recipe(self, policy: str, without: tuple[str, ...], program: Program) -> Recipe:
        """The recipe of that name as it runs here, some parts switched off."""
        return recipe(policy, without)

    # How a budget is split

    @abstractmethod
    def default_budget(self) -> int:
        """Near memory in bytes, if the caller gives no budget."""

    @abstractmethod
    def buffer_bytes(self) -> tuple[int, int]:
        """Bytes of a staging buffer: the least that works well, and how many are enough."""

    @abstractmethod
    def page_bytes(self, program: Program, graph: Snapshot) -> int:
        """The least memory for pages, where lists are read through them."""

    def queues(self, threads: int) -> int:
        """Queues of a frontier."""
        return threads

    def table_bytes(self, program: Program, graph: Snapshot) -> int:
        """Near memory that a link takes beside its buffers."""
        return 0

    def rounds_up_pages(self) -> bool:
        """Whether the last page of every array takes the memory of a whole page."""
        return False

    def more_memory(self, least: int) -> str:
        """What to do if a budget is smaller than `least` bytes."""
        return f"Give {option('memory', f'{least // 10**6 + 1}MB')} or more"

    def budget_notes(self, budget: int, keeps_nothing: bool) -> list[str]:
        """Notes for the trace about a budget. `keeps_nothing`: it leaves no memory to keep edges near."""
        return []

    # For plans

    @abstractmethod
    def profile(self, snapshot: Snapshot) -> Profile:
        """The costs of the link to a snapshot's edges, as far as they are known; measures nothing."""

    def profile_text(self, profile: Profile) -> str:
        """Its link in words."""
        return str(profile)

    def page_cost(self) -> PageCost | None:
        """What pages of managed memory cost; None: a page is a block of the link."""
        return None

    def plan_note(self, snapshot: Snapshot, profile: Profile) -> str:
        """A note about the seconds of a plan; empty: they need none."""
        return ""

    @classmethod
    def calibration(cls, given: str) -> Calibration:
        """How the device of that name is measured; raises OptionError if it has no link of its own."""
        why = f"{given} has no link to measure; a disk is measured by its path"
        raise OptionError(f"device: expected cuda:NUMBER, such as cuda:0; {why}")
