"""Recipes of streams on a device: how lists are read that programs need to stay current (Grapin, section 7, and what it
is compared with).

| recipe | lists |
|---|---|
| `auto` | by zero-copy; lists that are read stay in the hot subgraph |
| `grapin` | by zero-copy; the hot subgraph is loaded when the snapshot advances |
| `grapin-zc` | by zero-copy |
| `grapin-page` | through pages of 4 KB, the least recently used evicted |
| `grapin-recompute` | by zero-copy, and every batch is computed from scratch |

All but the first are as published, except that all in-neighbours send to vertices without a value. Grapin's release
lets every reached vertex send again, and only that explains the volumes of its Table 1; NAME:resend, such as
`grapin:resend`, does so. On a device a vertex that has lost its parent does not look for another first, unlike on this
machine: for a hub in far memory that would read a long list once more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from isthmus.errors import OptionError


@dataclass(frozen=True)
class StreamRecipe:
    """A way to keep answers current on a device. Runs from given vertices use the recipe `runs_by`."""

    name: str
    words: str
    hot: bool = False
    on_read: bool = False  # lists that are read stay in the hot subgraph
    pages: bool = False
    recomputes: bool = False
    resends: bool = False  # every vertex that has a value sends again after every batch
    runs_by: str = "emogi"
    colour: str = "ink"  # of its line in drawings: an engine's name, "ink" or "#rrggbb"
    dash: str = "-"


RECIPES = {
    recipe.name: recipe
    for recipe in (
        StreamRecipe("auto", "lists that are read stay near while they are used often", hot=True, on_read=True),
        StreamRecipe(
            "grapin",
            "lists used often are loaded after every batch, others are read directly",
            hot=True,
            colour="cache",
        ),
        StreamRecipe("grapin-zc", "lists are read directly", colour="zero_copy"),
        StreamRecipe(
            "grapin-page", "lists are read through 4 KB pages, of which some stay near", pages=True, colour="unified"
        ),
        StreamRecipe(
            "grapin-recompute",
            "every batch from scratch, lists are read directly",
            recomputes=True,
            colour="resident",
            dash="--",
        ),
    )
}
DEFAULT = "auto"
RESEND = ":resend"


def stream_recipe(name: str | None) -> StreamRecipe:
    """The recipe of that name; None: the default."""
    base = RECIPES.get((name or DEFAULT).removesuffix(RESEND))
    if base is None:
        raise OptionError(f"policy: expected one of {', '.join(RECIPES)} for a stream on a device, got {name!r}")
    if name is None or not name.endswith(RESEND):
        return base
    if base.recomputes:
        raise OptionError(f"policy: {base.name} computes from scratch, so {RESEND} has no meaning there; got {name!r}")
    return replace(
        base,
        name=name,
        words=f"{base.words}; every reached vertex sends again after every batch",
        resends=True,
        dash=":",
    )
