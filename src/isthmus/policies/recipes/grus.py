"""Grus (Wang et al., TACO 2021): pages, of which a region is prefetched; the others are mapped, and nothing is evicted.

`policies/grus_policy.py` decides what is prefetched. Of Grus's two wings this is the first, its placement of data; the
second, its frontier, is the same for all recipes (`frontier.py`).
"""

from __future__ import annotations

from isthmus.link.hints import Hint
from isthmus.policies.policy import UNIFIED, Fixed
from isthmus.policies.recipe import Recipe

RECIPE = Recipe(
    "grus",
    Fixed("grus", UNIFIED),
    "pages",
    pages=True,
    hint=Hint.ACCESSED_BY,
    prefetch=True,
    host_decides=False,
    words="pages, some prefetched",
    colour="cache",
    dash="--",
    place=5,
)
