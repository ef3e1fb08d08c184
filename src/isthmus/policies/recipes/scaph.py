"""Scaph (Zheng et al., ATC 2020): high-value partitions move whole and run again; of others active lists are packed.

`policies/scaph.py` describes the variants that its evaluation compares (`scaph:hvsp`, ...).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from isthmus.policies import scaph
from isthmus.policies.recipe import Recipe


def compared(variant: str) -> Recipe:
    """Scaph, or one of the variants it is compared with."""
    if variant == "scaph":
        return RECIPE
    chosen, name = scaph.VARIANTS[variant], f"scaph:{variant}"
    return replace(
        RECIPE, name=name, policy=scaph.ByValue(name, chosen), cache="none" if variant in scaph.PACKED else "partitions",
        further_runs=dict.fromkeys(("filter", "compaction", "cache"), chosen.runs - 1) if chosen.runs > 1 else {},
        queue=chosen.queue and variant not in scaph.ONCE,
    )  # fmt: skip


RECIPE = Recipe(
    "scaph", scaph.ByValue("scaph", scaph.VARIANTS["scaph"]), "partitions", combine="whole apart", queue=True, bottom_up=False, deltas=True,
    words="by the value of partitions", colour="resident", dash="-.", place=6,
    variants={variant: partial(compared, variant) for variant in scaph.VARIANTS},
)  # fmt: skip
