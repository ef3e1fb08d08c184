"""Edge attributes as weights. What Isthmus cannot compute with exactly is refused, so that NetworkX may take over."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
EXACT = 1 << 53  # whole numbers from here on are rounded by float64
LONGEST = float(1 << 62)  # sums of whole weights from here on might not fit int64


def all_ones(values: list[Any]) -> bool:
    """Whether all weights are the number 1, as they are where no edge has the attribute."""
    return values.count(1) == len(values)


def as_weights(name: str, values: list[Any]) -> Array:
    """Weights as int64 if all are whole, else float64. NotImplementedError: one is negative or not finite."""
    try:
        weights = np.array(values)
    except ValueError:  # lists of several lengths
        weights = np.array(None)
    if weights.ndim != 1 or weights.dtype.kind not in "biuf":
        raise NotImplementedError(f"expected numbers as edge attribute {name!r}, got {odd_one(values)!r}")
    if weights.dtype.kind == "f":
        rounded = (np.abs(weights) >= EXACT).any() and any(isinstance(value, int) for value in values)
        usable = np.isfinite(weights).all() and not rounded
        weights = weights.astype(np.float64)
    else:
        usable = (np.abs(weights.astype(np.float64)) < EXACT).all() and weights.sum(dtype=np.float64) < LONGEST
        weights = weights.astype(np.int64)
    if not usable or (weights < 0).any():
        raise NotImplementedError(
            f"edge attribute {name!r}: weights that are negative, not finite or beyond 2**53 are not supported"
        )
    return weights


def odd_one(values: list[Any]) -> Any:
    """The first value that is no number, for messages."""
    return next((value for value in values if not isinstance(value, int | float)), values[0])
