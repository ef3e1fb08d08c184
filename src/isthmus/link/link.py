"""The link between far and near memory: a profile of its costs, and the ways to move extents.

An engine says which bytes go where and how they are accessed; a link moves them. Most links move whole blocks of
`block` bytes for every kind of access. A modelled link (`devices/model/link.py`) counts each kind differently.
"""

from __future__ import annotations

import contextlib
import queue
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from isthmus.graph.store.extent_reader import Extents as Extents
from isthmus.graph.store.files import aligned_empty
from isthmus.memory import format_size

if TYPE_CHECKING:
    from isthmus.link.requests import ListSpans

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Profile:
    """The costs of a link. Rates are per second."""

    name: str
    bandwidth: float  # bytes in bulk
    request_rate: float  # single blocks at full depth
    block: int  # bytes of the smallest request
    depth: int  # requests in flight
    measured: bool
    rates: tuple[tuple[int, float], ...] = ()  # (requests in flight, single blocks), as measured
    compaction: float = 4e9  # bytes of lists packed by all cores; an assumed value unless measured
    packs_ahead: ClassVar[bool] = True  # lists are packed while others are transferred

    @property
    def break_even_gap(self) -> int:
        """Bytes that cost as much in bulk as one more request: reading through a smaller gap is cheaper than a new
        request.
        """
        return int(self.bandwidth / self.request_rate)

    def seconds(self, bulk_bytes: Any, requests: Any) -> Any:
        """Time for bytes read in bulk and single-block requests."""
        return bulk_bytes / self.bandwidth + requests / self.request_rate

    def __str__(self) -> str:
        return (
            f"{self.name}: {format_size(self.bandwidth)}/s in bulk, {self.request_rate:,.0f} requests/s of "
            f"{self.block} B"
        )


class SingleCopy(Profile):
    """A profile for when all active edges go in one copy: packing and transfer do not overlap."""

    packs_ahead = False


@dataclass
class Moved:
    """What crossed the link, and how long the link and the host were busy. A request carries at most a line."""

    bytes: int = 0
    back_bytes: int = 0  # to the host
    requests: int = 0
    copies: int = 0  # explicit ones, and migrations
    faults: int = 0
    batches: int = 0  # of faults
    link_seconds: float = 0.0
    host_seconds: float = 0.0  # of the cores that packed

    def add(self, other: Moved) -> None:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


CHANNELS = 3  # two for the reader threads, one for the main thread


class Link(ABC):
    """Moves extents of the arrays it was opened for. One thread uses a channel at a time: get one by `lend`."""

    profile: Profile
    notes: list[str]  # notes for the trace, such as a fallback
    readers: int = 2  # threads that bring tasks near: one's last reads overlap with the other's first
    shares: bool = True  # lists that lie in the same block are read together
    packs: bool = False  # the host packs lists of any length before they cross
    has_pages: bool = False  # lists can be read through pages of the link's own, see `page`
    _channels: queue.SimpleQueue[int]

    def __new__(cls, *given: Any, **named: Any) -> Self:
        link = super().__new__(cls)
        link._channels = queue.SimpleQueue()
        for channel in range(CHANNELS):
            link._channels.put(channel)
        return link

    @contextlib.contextmanager
    def lend(self) -> Iterator[int]:
        """A channel for the caller alone; waits until one is free."""
        channel = self._channels.get()
        try:
            yield channel
        finally:
            self._channels.put(channel)

    def begin_thread(self) -> None:  # noqa: B027
        """A thread calls this before it uses the link, or parts of its near memory, for the first time."""

    def near(self, size: int) -> Array:
        """Near memory for buffers and caches, freed at the latest when the link closes. It is not touched before it is
        used.
        """
        return aligned_empty(size, np.uint8)

    @abstractmethod
    def move(self, extents: Extents, buffer: Array, channel: int = 0) -> int:
        """Fill `buffer`; returns the number of requests it took. Raises StoreError naming file and offset."""

    def gather(self, extents: Extents, buffer: Array, lists: ListSpans, channel: int = 0) -> int:
        """As `move`, for a kernel that reads only these lists of the extents."""
        return self.move(extents, buffer, channel)

    def page(self, extents: Extents, buffer: Array, lists: ListSpans, channel: int = 0) -> int:
        """As `gather`, through pages that stay near."""
        return self.move(extents, buffer, channel)

    def pack(
        self, extents: Extents, buffer: Array, index_bytes: int, channel: int = 0, cores: int | None = None
    ) -> int:
        """Fill `buffer` with extents of any length; only for a link that `packs`."""
        raise NotImplementedError

    def prefetch(self, section: int, begin: int, end: int, channel: int = 0) -> int:
        """Load the pages of bytes begin:end of a section; only for links with pages."""
        raise NotImplementedError

    def take(self, channel: int = 0) -> Moved | None:
        """What a channel has moved since the last call; None: the engines count it."""
        return None

    def arrival(self, channel: int = 0) -> Any:
        """The event behind a channel's copies that are still under way; the caller waits for it. None: all bytes have
        arrived.
        """
        return None

    @abstractmethod
    def close(self) -> None: ...
