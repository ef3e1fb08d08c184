"""Progress of long work: the library reports it, the command line displays it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives the stages of the work, and how far each is. `total` is None if it is unknown."""

    def stage(self, name: str, total: int | None, unit: str) -> None: ...
    def advance(self, amount: int) -> None: ...


class Silent:
    """Shows nothing."""

    def stage(self, name: str, total: int | None, unit: str) -> None:
        pass

    def advance(self, amount: int) -> None:
        pass


SILENT = Silent()
