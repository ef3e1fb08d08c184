"""Auto, our own: whole partitions or merged extents, whichever is faster by this link's measured rates; partitions stay
near.

On a modelled device it also packs lists, caches vertices by hotness (HyTGraph) and runs each buffer again until nothing
in it changes (Subway).
"""

from __future__ import annotations

from isthmus.policies.policy import Cheapest
from isthmus.policies.recipe import UNTIL_SETTLED, Recipe

PACKING = {  # where lists can be packed while others cross the link
    "policy": Cheapest(packs=True),
    "cache": "vertices",
    "weighs_launches": True,
    # Use near edges before more are read.
    "further_runs": dict.fromkeys(("filter", "zero_copy", "compaction", "cache"), UNTIL_SETTLED),
}
RECIPE = Recipe(
    "auto",
    Cheapest(),
    "partitions",
    settle=True,
    merge=True,
    correct=True,
    ahead=True,
    recompute=True,
    best_first=True,
    bottom_up=True,
    sweeps=True,
    modelled=PACKING,
    words="the cheapest by this link's measured rates",
    colour="ink",
    dash="-",
    place=8,
)
