"""EMOGI (Min et al., VLDB 2020): a kernel reads the blocks of active lists directly from far memory.

`emogi:hot` also keeps the lists used most often near, in Grapin's hot subgraph (`cache/ranking.py`).
"""

from __future__ import annotations

from dataclasses import replace

from isthmus.policies.policy import ZERO_COPY, Fixed
from isthmus.policies.recipe import Recipe


def hot() -> Recipe:
    """EMOGI with a hot subgraph."""
    return replace(RECIPE, name="emogi:hot", policy=Fixed("emogi:hot", ZERO_COPY), cache="hot_subgraph")


RECIPE = Recipe(
    "emogi",
    Fixed("emogi", ZERO_COPY),
    host_decides=False,
    words="single blocks",
    colour="zero_copy",
    dash="-",
    place=3,
    variants={"hot": hot},
)
