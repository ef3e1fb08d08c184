"""A recipe: everything by `two_at_once`, with a cache of partitions."""

from __future__ import annotations

from isthmus.engines.registry import code_of
from isthmus.policies.policy import Fixed
from isthmus.policies.recipe import Recipe

PAIRS = Recipe(
    "pairs",
    Fixed("pairs", code_of("two_at_once")),
    "partitions",
    words="whole partitions, two at a time",
    colour="two_at_once",
    dash="--",
)
