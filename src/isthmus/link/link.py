"""The link between far and near memory: a profile of its costs, and one way to move extents.

An engine says which bytes it wants where; a link moves them. All links move whole blocks of `block` bytes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from isthmus.memory import format_size

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Profile:
    """What a link costs. Rates are per second."""

    name: str
    bandwidth: float  # bytes in bulk
    request_rate: float  # single blocks at full depth
    block: int  # bytes of the smallest request
    depth: int  # requests in flight
    measured: bool
    rates: tuple[tuple[int, float], ...] = ()  # (requests in flight, single blocks), as measured
    compaction: float = 4e9  # bytes of lists packed together by all cores; a guess unless measured

    @property
    def break_even_gap(self) -> int:
        """Bytes that cost as much in bulk as one more request: smaller gaps are worth reading over."""
        return int(self.bandwidth / self.request_rate)

    def seconds(self, bulk_bytes: Any, requests: Any) -> Any:
        """Time for bytes read in bulk and single-block requests."""
        return bulk_bytes / self.bandwidth + requests / self.request_rate

    def __str__(self) -> str:
        return f"{self.name}: {format_size(self.bandwidth)}/s in bulk, {self.request_rate:,.0f} requests/s of {self.block} B"


@dataclass
class Extents:
    """Byte ranges of far sections and where they go in a near buffer. All multiples of the link's block."""

    sections: Array  # index of the section each extent is in
    offsets: Array  # bytes from the section's start
    lengths: Array
    places: Array  # bytes from the buffer's start

    @property
    def columns(self) -> tuple[Array, Array, Array, Array]:
        return self.sections, self.offsets, self.lengths, self.places

    @property
    def bytes(self) -> int:
        return int(self.lengths.sum())


class Link(ABC):
    """Moves extents of the sections it was opened for. `move` may be called from one thread at a time per channel."""

    profile: Profile
    notes: list[str]  # what the trace should say, such as a fallback that was taken

    @abstractmethod
    def move(self, extents: Extents, buffer: Array, channel: int = 0) -> int:
        """Fill `buffer`; returns the number of requests it took. Raises StoreError naming file and offset."""

    @abstractmethod
    def close(self) -> None: ...
