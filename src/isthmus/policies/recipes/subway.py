"""Subway (Sabet et al., EuroSys 2020): active lists are packed, and run again until nothing in them changes."""

from __future__ import annotations

from isthmus.policies.policy import COMPACTION, Fixed
from isthmus.policies.recipe import UNTIL_SETTLED, Recipe

RECIPE = Recipe(
    "subway",
    Fixed("subway", COMPACTION),
    further_runs={"compaction": UNTIL_SETTLED},
    overlap=False,
    words="packed lists, run again until nothing changes",
    colour="compaction",
    dash="-",
    place=2,
)
