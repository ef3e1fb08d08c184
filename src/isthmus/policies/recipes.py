"""Recipes: published systems, and our own, as compositions of the parts.

| recipe | selects | from |
|---|---|---|
| `filter` | whole partitions with any active edge | GraphReduce, Graphie; HyTGraph's ExpTM-filter |
| `emogi` | zero-copy for all | EMOGI (Min et al., VLDB 2020) |
| `auto` | per partition the cheaper of the two, by measured rates | ours |
"""

from __future__ import annotations

from isthmus.errors import OptionError
from isthmus.policies.policy import FILTER, ZERO_COPY, Cheapest, Fixed, Policy

RECIPES: dict[str, Policy] = {
    "filter": Fixed("filter", FILTER),
    "emogi": Fixed("emogi", ZERO_COPY),
    "auto": Cheapest(),
}


def recipe(name: str) -> Policy:
    """The recipe of that name."""
    if name not in RECIPES:
        raise OptionError(f"policy: expected one of {', '.join(RECIPES)}, got {name!r}")
    return RECIPES[name]
