"""What a column of an answer holds, which of its values mean *none*, and how two answers to one question compare.

Programs declare their columns with it. Results (`runtime/results/result.py`) use it to hand out values, `compare` to
look for differences.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
INT_MAX, INT_MIN = np.iinfo(np.int64).max, np.iinfo(np.int64).min
NO_VERTEX = -1


class Holds(Enum):
    """What a column's values are."""

    NUMBERS = "numbers"
    VERTICES = "vertices"  # by their numbers in the graph's own order; -1: none
    PLACES = "places"  # vertices, by their places in natural order


class Within(Enum):
    """What a stated error bound holds for."""

    TOTAL = "the sum of errors"
    EACH = "every error"
    RELATIVE = "every error, relative to its entry"


@dataclass(frozen=True)
class Column:
    """The declaration of a column. A name that ends in * stands for all names that begin like it.

    `none` names the values that mean none: some of "high" (the largest integer, infinity), "low" and "nan". Integers of
    32 bits are shown as int64. `within` and `figure` say what error bound the summary states, and under which name;
    without them integers must be equal, and real numbers equal up to rounding. `unique`: False where any of several
    values is right, so that answers only have to agree on which are none.
    """

    name: str
    holds: Holds = Holds.NUMBERS
    none: tuple[str, ...] = ("high", "low", "nan")
    within: Within | None = None
    figure: str = "error_bound"
    unique: bool = True

    def stands_for(self, name: str) -> bool:
        return name.startswith(self.name[:-1]) if self.name.endswith("*") else name == self.name

    def missing(self, values: Array) -> Array:
        """Marks of the values that mean none."""
        if self.holds is not Holds.NUMBERS:
            return np.asarray(values == NO_VERTEX) if values.dtype.kind == "i" else np.zeros(values.size, np.bool_)
        whole = values.dtype.kind in "iu"
        kind = np.iinfo(values.dtype) if whole else None
        high, low = (kind.max, kind.min) if kind is not None else (np.inf, -np.inf)
        found = np.zeros(values.shape, np.bool_)
        if "high" in self.none:
            found |= values == high
        if "low" in self.none and values.dtype.kind != "u":
            found |= values == low
        if "nan" in self.none and not whole:
            found |= np.isnan(values)
        return found

    def masked(self, values: Array) -> Array:
        """Values as users see them: if some mean none, in a masked array, so that no sum, mean or comparison counts
        them.

        The numbers are not copied for it. Its fill value is what stands for none below the mask.
        """
        missing, shown = self.missing(values), self.shown(values)
        if not missing.any():
            return shown
        return np.ma.MaskedArray(shown, missing, fill_value=shown[np.argmax(missing)])

    def shown(self, values: Array) -> Array:
        """Values as plain numbers for users: narrow integers as int64, with the largest of these for none."""
        if self.holds is not Holds.NUMBERS or values.dtype.kind not in "iu" or values.dtype.itemsize == 8:
            return values
        wide = values.astype(np.int64)
        wide[self.missing(values)] = INT_MAX
        return wide


def column_of(declared: tuple[Column, ...], name: str) -> Column:
    """The declaration of a column; one that was not declared holds plain numbers."""
    return next((column for column in declared if column.stands_for(name)), Column(name))
