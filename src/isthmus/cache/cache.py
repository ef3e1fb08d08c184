"""What a cache is to the loop: it serves the active vertices it holds, and only the others go on to the link."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from isthmus.engines.engine import Delivery
from isthmus.frontier import Frontier


class Cache(ABC):
    """Near copies of some edges."""

    bytes: int = 0  # near memory it takes

    @abstractmethod
    def serve(self, frontier: Frontier) -> Iterator[Delivery]:
        """Deliver what is held of the active edges, and take it out of the frontier's misses."""

    @abstractmethod
    def keep(self, delivery: Delivery) -> None:
        """Look at edges that just arrived, to keep some."""


class NoCache(Cache):
    """Holds nothing."""

    def serve(self, frontier: Frontier) -> Iterator[Delivery]:
        yield from ()

    def keep(self, delivery: Delivery) -> None:
        pass
