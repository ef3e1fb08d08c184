"""Recipes: published systems, and our own, as compositions of the parts.

| recipe | selects | cache | schedule |
|---|---|---|---|
| `filter` | whole partitions with any active edge | – | sync |
| `subway` | compaction for all | – | multi-round async |
| `emogi` | zero-copy for all | – | sync |
| `unified` | pages for all | least recently used pages | sync |
| `grus` | pages for all; once near memory is full, what is far is read there | a region prefetched, then what comes first | sync |
| `scaph` | partitions of high value whole, of others active lists, packed | high-value partitions | k-level queue |
| `hytgraph` | per partition the cheapest of three, by formulas (1)-(3) | vertices by hotness | by contribution, filter twice, k = 4 |
| `auto` | per partition the cheaper of whole or merged extents, by measured rates | partitions | see `Recipe` |

From: GraphReduce, Graphie and HyTGraph's ExpTM-filter; Subway (Sabet et al., EuroSys 2020); EMOGI (Min et al., VLDB 2020);
HyTGraph's ImpTM-unified-memory; Grus (Wang et al., TACO 2021); Scaph (Zheng et al., ATC 2020); HyTGraph (Wang et al., ICDE
2023). `auto` is ours. On a modelled device it packs lists as well, keeps vertices by hotness (HyTGraph) and works on what
came until it is settled (Subway), in whole buffers.

Behind a colon some have variants: `unified:read-mostly` and the other hints of `link.hints`, `scaph:hvsp` and the others of
`policies.scaph`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from isthmus.errors import OptionError
from isthmus.link.hints import Hint
from isthmus.policies import hytgraph, scaph
from isthmus.policies.policy import COMPACTION, FILTER, UNIFIED, ZERO_COPY, Cheapest, Fixed, Policy

UNTIL_SETTLED = 1 << 30  # rounds
PACKING = {  # where lists can be packed while others cross
    "policy": Cheapest(packs=True), "cache": "vertices", "recompute": False, "worthwhile": True,
}  # fmt: skip
USED_UP = dict.fromkeys(("filter", "zero_copy", "compaction", "cache"), UNTIL_SETTLED)  # what came, before more is asked for
SWITCHES: dict[str, dict[str, Any]] = {  # parts that a recipe can do without, and what that changes
    "settle": {"settle": False},
    "cache": {"cache": "none"},
    "merge": {"merge": False},
    "correct": {"correct": False},
    "ahead": {"ahead": False},
    "recompute": {"recompute": False, "rounds": {}},
    "combine": {"combine": "apart"},
    "order": {"order": "plain"},
    "queue": {"queue": False},
    "prefetch": {"prefetch": False},
    "overlap": {"overlap": False},
}


@dataclass(frozen=True)
class Recipe:
    """A composition. The fields behind `policy` switch its parts on and off, each alone."""

    name: str
    policy: Policy
    cache: str = "none"  # or partitions, vertices, pages
    rounds: Mapping[str, int] = field(default_factory=dict)  # by engine, how often a delivery is worked on again, where any order will do
    worthwhile: bool = False  # on a modelled device: mind what launches, copies and further rounds cost
    settle: bool = False  # work partitions to a standstill on graphs with long paths
    merge: bool = False  # read over gaps that cost less than another request
    correct: bool = False  # correct the link's rates by what reads really took
    ahead: bool = False  # read for the next iteration before this one ends, where it is known
    recompute: bool = False  # one more round while the link is the bottleneck
    combine: str = "buffers"  # partitions in a task: as many as a buffer holds; or neighbours, at most k; or whole ones apart; or all
    order: str = "plain"  # of tasks; or by contribution
    queue: bool = False  # whole partitions stay, and run again while others are on their way
    pages: bool = False  # lists are read through pages; without a cache only a few of them stay
    hint: Hint = Hint.NONE  # for pages
    prefetch: bool = False  # fill a part of the pages before the start
    overlap: bool = True  # on a modelled device: packing, transfers and kernels of different tasks go on at once
    deltas: bool = False  # PageRank by deltas, whose active set shrinks
    modelled: Mapping[str, Any] = field(default_factory=dict)  # what is another on modelled devices
    turns: bool = True  # a search that goes level by level may turn round and seek from the unreached
    host_decides: bool = True  # the host needs the frontier; otherwise a kernel finds its own way

    @property
    def keeps(self) -> bool:
        """Whether memory that is left may keep edges near."""
        return self.cache != "none" or self.settle or self.queue

    def without(self, switched_off: tuple[str, ...]) -> Recipe:
        """The recipe with some parts switched off."""
        unknown = [name for name in switched_off if name not in SWITCHES]
        if unknown:
            raise OptionError(f"without: expected some of {', '.join(SWITCHES)}, got {', '.join(unknown) or 'an empty name'}")
        off: dict[str, Any] = {}
        for name in switched_off:
            off |= SWITCHES[name]
        return replace(self, **off)

    def on_model(self, sides: int, levels: bool) -> Recipe:
        """Without what goes by the seconds that things really take, and what no published system does; with what it has for such
        devices and one side of a graph.

        `levels`: a search that goes level by level can turn round, which saves more than further rounds.
        """
        timeless = replace(self, settle=False, merge=False, correct=False, ahead=False, turns=bool(self.modelled))
        if not self.modelled or sides > 1:
            return timeless
        return replace(timeless, **self.modelled, rounds={} if levels else USED_UP)


def paged(hint: str) -> Recipe:
    """Unified memory with a hint."""
    chosen = Hint(hint)
    name = "unified" if chosen is Hint.NONE else f"unified:{hint}"
    return Recipe(name, Fixed(name, UNIFIED), "pages", pages=True, hint=chosen, prefetch=chosen.prefetches, host_decides=False)


def by_value(variant: str) -> Recipe:
    """Scaph, or one of the variants it is compared with."""
    chosen = scaph.VARIANTS[variant]
    name = "scaph" if variant == "scaph" else f"scaph:{variant}"
    rounds = dict.fromkeys(("filter", "compaction", "cache"), chosen.runs - 1) if chosen.runs > 1 else {}
    cache = "none" if variant in scaph.PACKED else "partitions"
    queue = chosen.queue and variant not in scaph.ONCE
    return Recipe(name, scaph.ByValue(name, chosen), cache, rounds, combine="whole apart", queue=queue, turns=False, deltas=True)


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe("filter", Fixed("filter", FILTER), ahead=True),
        Recipe("subway", Fixed("subway", COMPACTION), rounds={"compaction": UNTIL_SETTLED}, turns=False, overlap=False),
        Recipe("emogi", Fixed("emogi", ZERO_COPY), host_decides=False),
        paged("none"),
        Recipe(
            "grus", Fixed("grus", UNIFIED), "pages", pages=True, hint=Hint.ACCESSED_BY, prefetch=True, deltas=True, host_decides=False
        ),
        by_value("scaph"),
        Recipe(
            "hytgraph", hytgraph.HyTGraph(round_up=False), "vertices", {"filter": 1, "cache": 1}, combine="neighbours",
            order="contribution", turns=False, deltas=True,
        ),
        Recipe("auto", Cheapest(), "partitions", settle=True, merge=True, correct=True, ahead=True, recompute=True, modelled=PACKING),
    )
}  # fmt: skip
VARIANTS: dict[str, Callable[[], Recipe]] = {
    **{f"unified:{hint.value}": lambda hint=hint: paged(hint.value) for hint in Hint},  # type: ignore[misc]
    **{f"scaph:{variant}": lambda variant=variant: by_value(variant) for variant in scaph.VARIANTS},  # type: ignore[misc]
}


def recipe(name: str, without: tuple[str, ...] = (), model_sides: int = 0, levels: bool = False) -> Recipe:
    """The recipe of that name, with some of its parts switched off; for a modelled device, if told how many sides a program follows."""
    found = named(name)
    return (found.on_model(model_sides, levels) if model_sides else found).without(without)


def named(name: str) -> Recipe:
    if name in VARIANTS:
        return VARIANTS[name]()
    if name not in RECIPES:
        base = name.partition(":")[0] + ":"
        known = [variant for variant in VARIANTS if variant.startswith(base)] or list(RECIPES)
        raise OptionError(f"policy: expected one of {', '.join(known)}, got {name!r}")
    return RECIPES[name]
