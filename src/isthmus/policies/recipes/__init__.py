"""Recipes: a file each. It declares the recipe's selection, cache and schedule, its help text and how it is drawn.

| recipe | selects | cache | schedule |
|---|---|---|---|
| `filter` | whole partitions with any active edge | – | sync |
| `subway` | compaction for all | – | multi-round async |
| `emogi` | zero-copy for all | – | sync |
| `unified` | pages for all | pages, the oldest evicted | sync |
| `grus` | pages for all; those not prefetched are read where they are | a prefetched region | sync |
| `scaph` | high-value partitions whole, of others packed active lists | high-value partitions | k-level queue |
| `hytgraph` | cheapest of three by formulas (1)-(3) | vertices by hotness | by contribution, filter twice, k = 4 |
| `auto` | per partition the cheaper of whole or merged extents, by measured rates | partitions | see its file |

Some have variants, named after a colon: `unified:read-mostly`, `scaph:hvsp`. Other packages add recipes by the entry
points `isthmus.recipes`; a script adds one by `RECIPES["mine"] = Recipe("mine", ...)`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from isthmus.errors import OptionError
from isthmus.plugins import Catalogue
from isthmus.policies.recipe import SWITCHES, UNTIL_SETTLED, Recipe

__all__ = ["RECIPES", "SWITCHES", "UNTIL_SETTLED", "Recipe", "named", "recipe"]

RECIPES: Catalogue[Recipe] = Catalogue("recipe", __name__, "Recipe", lambda part: isinstance(part, Recipe))


def recipe(name: str, without: tuple[str, ...] = (), model_sides: int = 0, levels: bool = False) -> Recipe:
    """The recipe of that name, some parts switched off. `model_sides`: on a modelled device, the sides a program
    follows; else 0.
    """
    found = named(name)
    return (found.on_model(model_sides, levels) if model_sides else found).without(without)


def named(name: str) -> Recipe:
    """A recipe, or a variant of one: `unified:read-mostly`."""
    base, colon, variant = name.partition(":")
    whole = RECIPES.get(base)
    if whole is None or (colon and not whole.variants):
        raise OptionError(f"policy: expected one of {RECIPES.unknown(name)}")
    if not colon:
        return whole
    if variant not in whole.variants:
        raise OptionError(
            f"policy: expected one of {', '.join(f'{base}:{each}' for each in whole.variants)}, got {name!r}"
        )
    return made(whole.variants[variant])


@cache
def made(variant: Callable[[], Recipe]) -> Recipe:
    """A variant, made once: a session compares recipes to find out whether what is near can stay."""
    return variant()
