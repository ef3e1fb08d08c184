"""Auto, our own: whole partitions or merged extents, whichever this link was measured to bring sooner; partitions stay near.

On a modelled device it packs lists as well, keeps vertices by hotness (HyTGraph) and works on what came until it is settled
(Subway), in whole buffers.
"""

from __future__ import annotations

from isthmus.policies.policy import Cheapest
from isthmus.policies.recipe import UNTIL_SETTLED, Recipe

PACKING = {  # where lists can be packed while others cross
    "policy": Cheapest(packs=True), "cache": "vertices", "recompute": False, "weighs_launches": True,
    "further_runs": dict.fromkeys(("filter", "zero_copy", "compaction", "cache"), UNTIL_SETTLED),  # use what came before more is asked for
}  # fmt: skip
RECIPE = Recipe(
    "auto", Cheapest(), "partitions", settle=True, merge=True, correct=True, ahead=True, recompute=True, modelled=PACKING,
    words="by what this link was measured to cost", colour="ink", dash="-", place=8,
)  # fmt: skip
