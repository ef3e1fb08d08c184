"""Recipes: published systems, and our own, as compositions of the parts.

| recipe | selects | cache | schedule | from |
|---|---|---|---|---|
| `filter` | whole partitions with any active edge | – | sync | GraphReduce, Graphie; HyTGraph's ExpTM-filter |
| `subway` | compaction for all | – | multi-round async | Subway (Sabet et al., EuroSys 2020) |
| `emogi` | zero-copy for all | – | sync | EMOGI (Min et al., VLDB 2020) |
| `unified` | pages for all | least recently used pages | sync | HyTGraph's ImpTM-unified-memory |
| `auto` | per partition the cheaper of whole or merged extents, by measured rates | partitions | see `Recipe` | ours |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from isthmus.errors import OptionError
from isthmus.policies.policy import COMPACTION, FILTER, UNIFIED, ZERO_COPY, Cheapest, Fixed, Policy

UNTIL_SETTLED = 1 << 30  # rounds
SWITCHES = ("settle", "cache", "merge", "correct", "ahead", "recompute")  # what `auto` can do without


@dataclass(frozen=True)
class Recipe:
    """A composition. The fields behind `policy` switch its parts on and off, each alone."""

    name: str
    policy: Policy
    cache: str = "none"  # or partitions, vertices, pages
    rounds: Mapping[str, int] = field(default_factory=dict)  # by engine, how often a delivery is worked on again, where any order will do
    settle: bool = False  # work partitions to a standstill on graphs with long paths
    merge: bool = False  # read over gaps that cost less than another request
    correct: bool = False  # correct the link's rates by what reads really took
    ahead: bool = False  # read for the next iteration before this one ends, where it is known
    recompute: bool = False  # one more round while the link is the bottleneck
    overlap: bool = True  # on a modelled device: packing, transfers and kernels of different tasks go on at once
    deltas: bool = False  # PageRank by deltas, whose active set shrinks
    host_decides: bool = True  # the host needs the frontier; otherwise a kernel finds its own way

    @property
    def keeps(self) -> bool:
        """Whether memory that is left may keep edges near."""
        return self.cache != "none" or self.settle

    def without(self, switched_off: tuple[str, ...]) -> Recipe:
        """The recipe with some parts switched off."""
        unknown = [name for name in switched_off if name not in SWITCHES]
        if unknown:
            raise OptionError(f"without: expected some of {', '.join(SWITCHES)}, got {', '.join(unknown)}")
        off: dict[str, Any] = {name: "none" if name == "cache" else False for name in switched_off}
        if "recompute" in off:
            off["rounds"] = {}
        return replace(self, **off)

    def on_model(self) -> Recipe:
        """Without what goes by the seconds that things really take."""
        return replace(self, settle=False, merge=False, correct=False, ahead=False)


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe("filter", Fixed("filter", FILTER)),
        Recipe("subway", Fixed("subway", COMPACTION), rounds={"compaction": UNTIL_SETTLED}, overlap=False),
        Recipe("emogi", Fixed("emogi", ZERO_COPY), host_decides=False),
        Recipe("unified", Fixed("unified", UNIFIED), cache="pages", host_decides=False),
        Recipe("auto", Cheapest(), "partitions", settle=True, merge=True, correct=True, ahead=True, recompute=True),
    )
}


def recipe(name: str, without: tuple[str, ...] = ()) -> Recipe:
    """The recipe of that name, with some of its parts switched off."""
    if name not in RECIPES:
        raise OptionError(f"policy: expected one of {', '.join(RECIPES)}, got {name!r}")
    return RECIPES[name].without(without)
