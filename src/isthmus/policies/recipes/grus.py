"""Grus (Wang et al., TACO 2021): pages, of which a region is prefetched; once near memory is full, nothing is evicted.

`policies/grus.py` decides what is prefetched.
"""

from __future__ import annotations

from isthmus.link.hints import Hint
from isthmus.policies.policy import UNIFIED, Fixed
from isthmus.policies.recipe import Recipe

RECIPE = Recipe(
    "grus", Fixed("grus", UNIFIED), "pages", pages=True, hint=Hint.ACCESSED_BY, prefetch=True, deltas=True, host_decides=False,
    words="pages, some prefetched", colour="cache", dash="--", place=5,
)  # fmt: skip
