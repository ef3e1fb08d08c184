"""Scaph (Zheng et al., ATC 2020): high-value partitions move whole and run again; of others active lists are packed.

`policies/scaph_policy.py` describes the variants that its evaluation compares (`scaph:hvsp`, ...).

Re-runs before the end of an iteration need a program whose answer does not depend on the order of propagation. Where it
does, partitions are still chosen by value, low-value ones are packed, and high-value ones stay near, but each runs once
in an iteration:

- Minimum spanning forests: a round chooses by components that only change at its end, so a second run of a partition
  would find what the first found. Vertices without an edge that leaves their component become inactive, which lowers
  the value of partitions.
- Inference of a layered network: a layer must be complete before it sends. Every edge is used in one iteration only, so
  nothing that stayed near is used again.
- Circuits: conjugate gradients need sums over all vertices after every pass. Relaxation, which Scaph ran, needs none,
  and its re-runs help, but it takes many more passes (`programs/algorithms/circuit.py`).

Programs that follow both sides of a directed graph keep partitions in an ordinary cache instead of the queue.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from isthmus.policies import scaph_policy
from isthmus.policies.recipe import Recipe


def compared(variant: str) -> Recipe:
    """Scaph, or one of the variants it is compared with."""
    if variant == "scaph":
        return RECIPE
    chosen, name = scaph_policy.VARIANTS[variant], f"scaph:{variant}"
    return replace(
        RECIPE,
        name=name,
        policy=scaph_policy.ByValue(name, chosen),
        cache="none" if variant in scaph_policy.PACKED else "partitions",
        further_runs=dict.fromkeys(("filter", "compaction", "cache"), chosen.runs - 1) if chosen.runs > 1 else {},
        queue=chosen.queue and variant not in scaph_policy.ONCE,
    )


RECIPE = Recipe(
    "scaph",
    scaph_policy.ByValue("scaph", scaph_policy.VARIANTS["scaph"]),
    "partitions",
    combine="whole apart",
    queue=True,
    words="by the value of partitions",
    colour="resident",
    dash="-.",
    place=6,
    variants={variant: partial(compared, variant) for variant in scaph_policy.VARIANTS},
)
