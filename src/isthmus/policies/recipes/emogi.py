"""EMOGI (Min et al., VLDB 2020): a kernel reads the blocks of active lists directly from far memory."""

from __future__ import annotations

from isthmus.policies.policy import ZERO_COPY, Fixed
from isthmus.policies.recipe import Recipe

RECIPE = Recipe(
    "emogi", Fixed("emogi", ZERO_COPY), host_decides=False, words="single blocks", colour="zero_copy", dash="-", place=3
)
