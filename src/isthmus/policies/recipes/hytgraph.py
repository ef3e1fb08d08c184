"""HyTGraph (Wang et al., ICDE 2023): the cheapest of three engines by formulas (1)-(3), hot vertices kept, hubs
first.
"""

from __future__ import annotations

from isthmus.policies.hytgraph_policy import HyTGraph
from isthmus.policies.recipe import Recipe

RECIPE = Recipe(
    "hytgraph",
    HyTGraph(round_up=False),
    "vertices",
    {"filter": 1},
    combine="neighbours",
    order="contribution",
    words="by its cost formulas, with a cache of hot vertices",
    colour="ink",
    dash="--",
    place=7,
)
