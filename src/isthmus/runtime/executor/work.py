"""What an executor carries out: the units of a schedule, how each is fetched, and what runs on it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Protocol

from isthmus.devices.worker import Piece
from isthmus.engines.engine import Delivery
from isthmus.frontier import Frontier
from isthmus.schedule.schedule import Schedule, UnitStates


class Runner(Protocol):
    """Runs deliveries: `Worker`, or units that bring a loop of their own."""

    def pieces(self, delivery: Delivery, frontier: Frontier) -> list[Piece]:
        """A run of a delivery, cut into pieces; empty if there is nothing to do."""

    def again(self, delivery: Delivery, frontier: Frontier) -> list[Piece]:
        """The pieces of a further run, for vertices that were marked since the last run."""
        return []


class Work(ABC):
    """The units of a schedule: how one is fetched, and what happens after a run of it."""

    frontier: Frontier
    near: Sequence[tuple[int, Delivery]] = ()  # units that need not be fetched, with their deliveries

    @abstractmethod
    def fetch(self, unit: int, channel: int) -> Iterator[Delivery]:
        """Fetch a unit, in one delivery or in several. Called by readers."""

    @abstractmethod
    def finished(self, unit: int, delivery: Delivery) -> None:
        """Called by any member when a delivery has run and will not run again at once."""

    def dropped(self, delivery: Delivery) -> None:  # noqa: B027  # units that stay near have nothing to do
        """Called when a delivery that was fetched ahead is not needed, or its run failed."""

    def same_as(self, other: Work) -> bool:
        """Whether deliveries fetched for the other work can be used for this one."""
        return False


class StayingWork(Work, Runner):
    """Units that stay near when they have run: each has a place in memory, and they run by a loop of their own."""

    @abstractmethod
    def near_delivery(self, unit: int) -> Delivery:
        """The delivery of a unit that is near."""

    @abstractmethod
    def reserve(self, unit: int) -> None:
        """Reserve a place for a unit that will be fetched."""

    @abstractmethod
    def evict(self, unit: int) -> None:
        """Free the place of a unit."""

    def update_pending(self, schedule: Schedule, units: UnitStates) -> None:
        """Bring `units.pending` up to date, before the schedule is asked what to run."""
