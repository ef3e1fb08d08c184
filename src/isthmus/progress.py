"""How long work tells the outside how far it is. The library speaks; the command line draws."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives the stages of a job. `total` is None where it cannot be known."""

    def stage(self, name: str, total: int | None, unit: str) -> None: ...
    def advance(self, amount: int) -> None: ...


class Silent:
    """Shows nothing."""

    def stage(self, name: str, total: int | None, unit: str) -> None:
        pass

    def advance(self, amount: int) -> None:
        pass


SILENT = Silent()
