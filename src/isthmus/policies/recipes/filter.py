"""Whole partitions with any active edge, as in GraphReduce and Graphie; HyTGraph calls it ExpTM-filter."""

from __future__ import annotations

from isthmus.policies.policy import FILTER, Fixed
from isthmus.policies.recipe import Recipe

RECIPE = Recipe(
    "filter", Fixed("filter", FILTER), ahead=True, words="whole partitions", colour="filter", dash="-", place=1
)
