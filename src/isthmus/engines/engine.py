"""What every engine does: turn partitions into deliveries, buffers of edges that a kernel can work on.

`Side` is what engines know of the graph: where one direction's lists begin and end (near) and where its edges lie
(far).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from isthmus.frontier import Activity, Frontier
from isthmus.graph.lists import Lists
from isthmus.graph.partition import Partitions
from isthmus.link.link import Array, Extents, Link, Moved, Profile


@dataclass
class Side:
    """One direction of the edges: `width` bytes a target, `weight_width` a weight (0: not read)."""

    name: str
    lists: Lists
    partitions: Partitions
    width: int
    weight_width: int
    target_dtype: Any
    weight_dtype: Any
    first_section: int = 0  # index of the targets among the link's sections; weights follow
    block: int = 4096  # bytes of the link's blocks
    shares: bool = True  # lists that lie in the same block are read together
    all_active: Activity | None = None  # the activity when all vertices are active, computed once
    last_edges: Array | None = None  # active edges of each partition one iteration ago
    entry_bytes: int = field(init=False)  # of a target and its weight

    def __post_init__(self) -> None:
        self.entry_bytes = self.width + self.weight_width


@dataclass
class Task:
    """Partitions of one side that one engine reads together."""

    engine: Engine
    side: Side
    partitions: Array
    all_active: bool = False  # its partitions are all that have active edges on this side


class Buffer:
    """Near memory for one delivery: a zone for targets, a zone for weights, both of whole blocks."""

    def __init__(self, memory: Array, entry: tuple[int, int], block: int) -> None:
        width, weight_width = entry
        blocks = memory.size // block
        self.room = blocks * width // (width + weight_width) * block
        self.weight_room = blocks * block - self.room if weight_width else 0
        self.bytes = memory

    def targets(self, dtype: Any) -> Array:
        return self.bytes[: self.room].view(dtype)

    def weights(self, dtype: Any) -> Array:
        return self.bytes[self.room : self.room + self.weight_room].view(dtype)


@dataclass
class Ranges:
    """Ranges of vertices whose edges are contiguous: edges begin:end of vertices first:last. Edge e lies at e -
    base.
    """

    first: Array
    last: Array
    begin: Array
    end: Array
    base: Array
    weight_base: Array


@dataclass
class Rows:
    """Vertices and where their edges lie in the buffer's two zones."""

    vertices: Array
    begins: Array
    weight_begins: Array
    lengths: Array


@dataclass
class Delivery:
    """Edges that are near: ranges of vertices, of which the marked ones are active, or rows, all active."""

    task: Task
    targets: Array
    weights: Array | None
    edges: Ranges | Rows
    buffer: Buffer | None = None  # to return after use
    bytes: int = 0  # moved over the link for it
    requests: int = 0
    seconds: float = 0.0
    moved: Moved | None = None  # what a modelled link counted
    number: int = -1  # its position among the deliveries of this iteration
    whole: Ranges | None = None  # where partitions lie that came whole
    far_begins: Array | None = None  # of rows: their first entries in far memory
    arrival: Any = None  # on a GPU: the event to wait for before its buffer is read
    places: Any = None  # of rows on a GPU: where lists begin, by vertex, in near memory; `begins` is not used
    pieces_left: int = 0  # of its work, while kernels run on it
    further_runs: int = 0  # how often it was run again
    again_edges: int = 0  # followed in these runs


GetBuffer = Callable[[], Buffer]


@dataclass(frozen=True)
class Resources:
    """What a run provides to make its engines with."""

    link: Link
    sides: list[Side]
    threads: int
    memory: Array  # spare near memory, after the buffers
    load: Callable[[Side], tuple[Array, Array | None]]  # all targets and weights of a side, brought near
    merges: bool = False  # the recipe reads across gaps that cost less than another request
    evicts: bool = True  # pages are evicted when memory is full


BUFFERS = 4  # staging buffers of a run: two being filled, two being run


@dataclass(frozen=True)
class PageCost:
    """What pages of managed memory cost: their size, and the share of the bulk bandwidth that faults reach at best."""

    page_bytes: int
    peak_share: float


@dataclass(frozen=True)
class Pass:
    """A pass over all edges, to estimate its cost: bytes of the far arrays, and of the longest read that a buffer
    holds.
    """

    sections: list[int]
    read_bytes: int
    profile: Profile
    pages: PageCost | None = None  # of managed memory; None: a page is a block of the link

    @property
    def edge_bytes(self) -> int:
        return sum(self.sections)

    @property
    def blocks(self) -> int:
        return sum(-(-size // self.profile.block) for size in self.sections)

    @property
    def block_bytes(self) -> int:
        return self.blocks * self.profile.block

    @property
    def reads(self) -> int:
        """The number of requests when each is as long as possible."""
        return sum(-(-size // self.read_bytes) for size in self.sections)


@dataclass(frozen=True)
class Cost:
    """The cost of one pass over all edges."""

    bytes: int
    requests: int
    seconds: float


class Engine(ABC):
    """A way to bring edges near. Engines hold no state of a run beyond what they are given.

    A class declares itself by plain attributes. Built-in engines have fixed codes; others get one when they are first
    used (`engines/registry.py`).
    """

    name: ClassVar[str] = "engine"
    code: ClassVar[int] = -1  # policies choose it by this number
    colour: ClassVar[str] = "#888899"  # in drawings; a contrast of 3 to white and to black suits both themes
    stage: ClassVar[int] = 0  # tasks ordered by contribution run by stage first
    streams: ClassVar[bool] = False  # the kernel itself fetches the bytes; the model counts one launch for a whole task
    # Its deliveries hold whole lists of many vertices, worth another run.
    rereads_when_link_bound: ClassVar[bool] = False
    observes: ClassVar[str] = ""  # the rate of the link that its reads measure: bandwidth or request_rate

    @classmethod
    def make(cls, resources: Resources) -> Self:
        """The engine for a run."""
        return cls()

    @classmethod
    def pass_cost(cls, scan: Pass) -> Cost | None:
        """What one pass over all edges costs; None: that is not known, or there is nothing to move."""
        return None

    @abstractmethod
    def tasks(self, side: Side, chosen: Array, room: int) -> list[Task]:
        """Cut the chosen partitions (ascending) into tasks; a buffer holds `room` bytes."""

    @abstractmethod
    def deliver(
        self, task: Task, frontier: Frontier, link: Link, get_buffer: GetBuffer, channel: int
    ) -> Iterator[Delivery]:
        """Bring the task's active edges near, one buffer at a time."""

    def close(self) -> None:  # noqa: B027  # most hold nothing
        """Stop threads of its own."""


def zones(side: Side, at: Array, sizes: Array, weight_at: Array, weight_sizes: Array, buffer: Buffer) -> Extents:
    """Extents of targets, then of weights, packed one after another in their zones."""
    count, weight_count = at.size, weight_at.size
    sections = np.concatenate([np.full(count, side.first_section), np.full(weight_count, side.first_section + 1)])
    places = np.concatenate([packed(sizes), packed(weight_sizes) + buffer.room])
    return Extents(sections, np.concatenate([at, weight_at]), np.concatenate([sizes, weight_sizes]), places)


def packed(sizes: Array) -> Array:
    """The start of each item when items of these sizes are packed one after another."""
    starts = np.zeros(sizes.size, np.int64)
    np.cumsum(sizes[:-1], out=starts[1:])
    return starts
