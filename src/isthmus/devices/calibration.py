"""A measurement of a disk or a device, as `isthmus calibrate` runs and shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

Row = tuple[str, str, Any]  # kind of work, its unit, and a figure or those of all rounds
StoredCosts = Any  # figures, and `when` they were measured, in seconds since 1970; None if that was not recorded


class Calibration(Protocol):
    """The measurement of a disk or a device. `before` has the figures that are remembered so far."""

    key: dict[str, str]  # names it in JSON
    words: str  # and in sentences
    file: Path  # where it is remembered
    before: StoredCosts
    found: Any  # the figures that were measured

    def survey(self, progress: Any, say: Any) -> bool:
        """Measure it; returns whether the figures are remembered now."""

    def forget(self) -> bool: ...

    def name(self, known: StoredCosts) -> str:
        """Its name; None: as it was measured."""

    def rounds(self) -> list[Row]:
        """The figures of each round."""

    def rows(self, known: StoredCosts) -> list[Row]:
        """The remembered figures, as far as they are known."""

    def facts(self) -> list[tuple[str, str]]:
        """More that is shown about the measurement."""

    def as_json(self, known: StoredCosts) -> dict[str, Any]:
        """The figures; None: as they were measured."""
