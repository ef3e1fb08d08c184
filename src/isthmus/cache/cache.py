"""The Cache interface of the loop: a cache serves the active edges that it holds, and only misses go to the link.

A cache of lists serves before the activity of the misses is computed. A cache of partitions serves after, because it
needs to know which of its partitions are active.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from isthmus.cache.mover import Mover
from isthmus.engines.cache import Held
from isthmus.engines.engine import Delivery, Side
from isthmus.frontier import Activity, Frontier
from isthmus.graph.lists import Lists
from isthmus.link.link import Array

__all__ = ["Cache", "Held"]


class Cache:
    """Near copies of some edges. This one holds nothing."""

    bytes: int = 0  # near memory it takes

    def attach(self, mover: Mover, lists: Callable[[Lists], tuple[Array, Array]]) -> None:
        """A run on a GPU begins: it has `lists` in near memory, and a mover for lists there."""

    def detach(self) -> None:
        """The run ends: release its memory, which the cache may outlive."""

    def serve(self, frontier: Frontier, side: Side) -> tuple[Frontier, Iterator[Delivery]]:
        """The frontier of the misses, and deliveries of the hits, which must be taken before `refresh`."""
        return frontier, iter(())

    def everything(self) -> Iterator[Delivery]:
        """All lists that are held, active or not."""
        return iter(())

    def refresh(self, frontier: Frontier) -> None:
        """Decide again what to hold; called when the hits' deliveries are done, before the misses' edges move."""

    def held(self, side: Side, activity: Activity, frontier: Frontier) -> tuple[list[Delivery], Activity]:
        """Deliveries of the active partitions that are held, and the activity of the misses."""
        return [], activity

    def keep(self, delivery: Delivery) -> None:
        """Keep some of the edges that have just been worked on. Called by several threads at once."""

    def forget(self) -> None:
        """Drop everything: the cache's memory was used for something else."""

    def facts(self) -> dict[str, Any]:
        """Figures for the summary."""
        return {}
