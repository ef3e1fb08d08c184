"""Every unit runs once, in a given order, and again, while its edges are in a buffer, as often as a recipe allows.

Running again at once is Subway's and HyTGraph's idea: near edges are used as much as possible before others are read.
`again` limits the further runs of each unit. A unit runs again only if vertices of it were marked meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

from isthmus.schedule.schedule import NONE, Schedule, UnitStates


class Plain(Schedule):
    """Units in the given order. `again`: the most further runs of each; without it there are none. `alone`: one at a
    time.
    """

    def __init__(self, order: Sequence[int], again: Sequence[int] | None = None, alone: bool = False) -> None:
        self._order, self._again, self.alone = order, again, alone

    def fetch(self, units: UnitStates) -> int:
        asked = len(units.sent)
        return self._order[asked] if asked < len(self._order) else NONE

    def run(self, units: UnitStates) -> int:
        return units.ready[0] if units.ready else NONE

    def done(self, units: UnitStates) -> bool:
        return len(units.sent) == len(self._order) and not units.coming and not units.ready

    def again(self, unit: int, runs: int) -> bool:
        return self._again is not None and runs <= self._again[unit]
