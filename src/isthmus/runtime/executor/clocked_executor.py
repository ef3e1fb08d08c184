"""An executor for modelled devices: units arrive when a modelled clock says so."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from isthmus.runtime.executor.executor import Executor
from isthmus.schedule.schedule import COMING


class Transfers(ABC):
    """Units that cross a modelled link. Their bytes are copied at once, but they arrive when the modelled clock says
    so.
    """

    @abstractmethod
    def send(self, unit: int) -> None: ...

    @abstractmethod
    def arrived(self, waiting: bool) -> int | None:
        """A unit that has arrived, or None. `waiting`: advance the clock until one arrives, if any is under way."""


class ClockedExecutor(Executor):
    """Units arrive when a modelled clock says so."""

    def __init__(self, transfers: Transfers, *given: Any) -> None:
        super().__init__(*given)
        self._transfers = transfers
        self._runs = False  # whether a unit was running when the schedule was last asked

    def _send(self, unit: int) -> None:
        self._transfers.send(unit)

    def _choose(self) -> int:
        with self._lock:  # asking the clock and choosing are one step
            self._runs = self.units.running > 0
            if not self._runs:
                self._advance(False)
            return super()._choose()

    def _wait(self) -> None:
        """Let time pass only if nothing ran when the schedule was asked, and nothing has changed since."""
        if self._runs or not self._arrivals.empty():
            return super()._wait()
        with self._lock:
            return self._advance(True)

    def _advance(self, waiting: bool) -> None:
        unit = self._transfers.arrived(waiting)
        if unit is not None and self.units.places[unit] == COMING:
            self.units.arrived(unit)
            self.order()
