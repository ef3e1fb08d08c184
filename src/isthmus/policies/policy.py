"""A policy picks an engine for every partition with active edges. It sees numbers, never an engine's internals."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from isthmus.engines.registry import NAMES, NOTHING, code_of
from isthmus.frontier import Activity
from isthmus.link.link import Array, Profile

__all__ = [
    "CACHE",
    "COMPACTION",
    "FILTER",
    "INDEX_BYTES",
    "NAMES",
    "NOTHING",
    "UNIFIED",
    "ZERO_COPY",
    "Cheapest",
    "Fixed",
    "Policy",
]

FILTER, ZERO_COPY, COMPACTION, UNIFIED, CACHE = map(code_of, ("filter", "zero_copy", "compaction", "unified", "cache"))
INDEX_BYTES = 8  # one 64-bit offset for each packed list


class Policy(ABC):
    """Picks engines. Pure: the same activity and profile give the same choice."""

    name: str = "policy"
    engines: tuple[str, ...] = ()  # names of all engines it may choose: a run makes these

    @abstractmethod
    def choose(self, activity: Activity, profile: Profile, entry_bytes: int) -> Array:
        """The code of an engine (`engines.registry.code_of`) for every partition; NOTHING where nothing is active."""


class Fixed(Policy):
    """The same engine for every active partition."""

    def __init__(self, name: str, choice: int) -> None:
        self.name, self._choice = name, choice
        self.engines = (NAMES[choice],)

    def choose(self, activity: Activity, profile: Profile, entry_bytes: int) -> Array:
        return np.where(activity.edges > 0, self._choice, NOTHING)


# Zero-copy is chosen only below this share of filter's time. Tasks of filter run first, so a small gain would be lost
# by running hubs last.
SURELY = 0.9
# Factor on the seconds of packed lists; of 1, 0.9, 0.8, 0.67 and 0.5 the fastest, with fewer bytes than 1.
FEWEST_BYTES = 0.8


class Cheapest(Policy):
    """The cheapest by the link's measured rates: whole partitions, single blocks or, if `packs`, packed active lists.

    Lists are packed while earlier ones cross the link, so the slower of packing and crossing counts. Packed lists move
    the fewest bytes, so they are chosen even where they seem a little slower.
    """

    name = "auto"

    def __init__(self, packs: bool = False) -> None:
        self._packs = packs
        self.engines = ("filter", "zero_copy", "compaction") if packs else ("filter", "zero_copy")

    def choose(self, activity: Activity, profile: Profile, entry_bytes: int) -> Array:
        whole = profile.seconds(activity.partition_slots * entry_bytes, 0)
        single = profile.seconds(0, activity.blocks)
        apart = single < (SURELY if self._packs else 1.0) * whole
        cheaper = np.where(apart, ZERO_COPY, FILTER)
        if self._packs:
            packed_bytes = activity.edges * entry_bytes + activity.vertices * INDEX_BYTES
            packed = packed_bytes / min(profile.bandwidth, profile.compaction)
            fewer = packed_bytes < np.where(
                apart, activity.blocks * profile.block, activity.partition_slots * entry_bytes
            )
            packed *= np.where(fewer & profile.packs_ahead, FEWEST_BYTES, 1.0)
            cheaper = np.where(packed < np.where(apart, single, whole), COMPACTION, cheaper)
        return np.where(activity.edges > 0, cheaper, NOTHING)
