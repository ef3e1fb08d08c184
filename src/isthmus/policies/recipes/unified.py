"""Unified memory: pages on demand. On a modelled device the block filled longest ago is evicted, on a disk the page
used longest ago.

Its variants are the hints of `link.hints`. `unified:read-mostly` is HyTGraph's ImpTM-unified-memory.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from isthmus.link.hints import Hint
from isthmus.policies.policy import UNIFIED, Fixed
from isthmus.policies.recipe import Recipe


def hinted(hint: Hint) -> Recipe:
    """Unified memory with a hint."""
    if hint is Hint.NONE:
        return RECIPE
    name = f"unified:{hint.value}"
    return replace(RECIPE, name=name, policy=Fixed(name, UNIFIED), hint=hint, prefetch=hint.prefetches)


RECIPE = Recipe(
    "unified",
    Fixed("unified", UNIFIED),
    "pages",
    pages=True,
    host_decides=False,
    words="pages that stay near",
    colour="unified",
    dash="-",
    place=4,
    variants={hint.value: partial(hinted, hint) for hint in Hint},
)
