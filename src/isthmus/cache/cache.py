"""What a cache is to the loop: it serves active edges that it holds, and only the others go on to the link.

A cache of vertices serves before the activity of the others is known; a cache of partitions after, as it only needs
to know which of its partitions are active.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isthmus.engines.cache import Held
from isthmus.engines.engine import Delivery, Side
from isthmus.frontier import Activity, Frontier

__all__ = ["Cache", "Held"]


class Cache:
    """Near copies of some edges. This one holds nothing."""

    bytes: int = 0  # near memory it takes

    def serve(self, frontier: Frontier, side: Side) -> tuple[Frontier, Iterator[Delivery]]:
        """The frontier of active vertices that are not held, and deliveries of the others, to be taken before `refresh`."""
        return frontier, iter(())

    def everything(self) -> Iterator[Delivery]:
        """All lists that are held, active or not."""
        return iter(())

    def refresh(self, frontier: Frontier) -> None:
        """Called when those deliveries are done, before the others' edges move: decide anew what to hold."""

    def held(self, side: Side, activity: Activity, frontier: Frontier) -> tuple[list[Delivery], Activity]:
        """Deliveries of active partitions that are held, and the activity of the others."""
        return [], activity

    def keep(self, delivery: Delivery) -> None:
        """Look at edges that have just been worked on, to keep some. Called by several threads at once."""

    def forget(self) -> None:
        """The memory it lies in was used for something else: it holds nothing any more."""

    def facts(self) -> dict[str, Any]:
        """For the summary."""
        return {}
