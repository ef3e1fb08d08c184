"""What an executor carries out: the units of a schedule, how each is fetched and what is run on it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from isthmus.devices.worker import Piece
from isthmus.engines.engine import Delivery
from isthmus.schedule.schedule import Schedule, UnitStates


class Work(ABC):
    """The units of a schedule: how one is fetched, how a run of it is cut into pieces, and what happens afterwards."""

    @abstractmethod
    def fetch(self, unit: int, channel: int) -> Iterator[Delivery]:
        """Fetch a unit, in one delivery or in several. Called by readers."""

    @abstractmethod
    def pieces(self, unit: int, delivery: Delivery) -> list[Piece]:
        """A run of a delivery, cut into pieces; empty if there is nothing to do."""

    def near(self) -> list[tuple[int, Delivery]]:
        """Units that need not be fetched, with their deliveries."""
        return []

    def again(self, unit: int, delivery: Delivery) -> list[Piece]:
        """The pieces of a further run, for vertices that were marked since the last run."""
        return []

    def finished(self, unit: int, delivery: Delivery) -> None:  # noqa: B027  # most have nothing to do
        """Called by any member when a delivery has run and will not run again at once."""

    def dropped(self, delivery: Delivery) -> None:  # noqa: B027
        """Called when a delivery that was fetched ahead is not needed, or its run failed."""

    def kept(self, unit: int) -> Delivery:
        """The delivery of a unit that stays near."""
        raise NotImplementedError

    def reserve(self, unit: int) -> None:  # noqa: B027
        """Reserve a place for a unit that will stay near."""

    def evict(self, unit: int) -> None:  # noqa: B027
        """Free the place of a unit."""

    def update_pending(self, schedule: Schedule, unit_states: UnitStates) -> None:  # noqa: B027
        """Bring `unit_states.pending` up to date, before the schedule is asked what to run."""

    def same_as(self, other: Work) -> bool:
        """Whether deliveries fetched for the other work can be used for this one."""
        return False
