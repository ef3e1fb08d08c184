"""Subway (Sabet et al., EuroSys 2020): active lists are packed, and worked on until they are settled."""

from __future__ import annotations

from isthmus.policies.policy import COMPACTION, Fixed
from isthmus.policies.recipe import UNTIL_SETTLED, Recipe

RECIPE = Recipe(
    "subway", Fixed("subway", COMPACTION), further_runs={"compaction": UNTIL_SETTLED}, turns=False, overlap=False,
    words="packed lists, worked on again and again", colour="compaction", dash="-", place=2,
)  # fmt: skip
