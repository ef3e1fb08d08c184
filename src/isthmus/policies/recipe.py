"""A recipe: a published system, or our own, as a composition of policy, cache, schedule and switches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from isthmus.errors import OptionError
from isthmus.link.hints import Hint
from isthmus.plugins import LAST
from isthmus.policies.policy import Policy

UNTIL_SETTLED = 1 << 30  # runs: no limit
SWITCHES: dict[str, dict[str, Any]] = {  # parts that can be switched off, and the fields that change
    "settle": {"settle": False},
    "cache": {"cache": "none"},
    "merge": {"merge": False},
    "correct": {"correct": False},
    "ahead": {"ahead": False},
    "recompute": {"recompute": False, "further_runs": {}},
    "best_first": {"best_first": False},
    "bottom_up": {"bottom_up": False},
    "sweeps": {"sweeps": False},
    "combine": {"combine": "apart"},
    "order": {"order": "plain"},
    "queue": {"queue": False},
    "prefetch": {"prefetch": False},
    "overlap": {"overlap": False},
}


@dataclass(frozen=True)
class Recipe:
    """A composition. Each field after `policy` switches one part on or off; the last fields describe the recipe.

    Give `words`, `colour` and `dash` by keyword and as literals, so that help reads them without importing the recipe.
    """

    name: str
    policy: Policy
    cache: str = "none"  # or partitions, vertices, hot_subgraph, pages
    # by engine: further runs of a delivery, for order-free programs.
    further_runs: Mapping[str, int] = field(default_factory=dict)
    weighs_launches: bool = False  # on a modelled device: weigh the costs of launches, copies and further runs
    settle: bool = False  # on graphs with long paths: run each partition until nothing in it changes
    merge: bool = False  # read across gaps that cost less than another request
    correct: bool = False  # correct the link's rates by the measured times of reads
    ahead: bool = False  # start reading for the next iteration before this one ends, where its reads are known
    recompute: bool = False  # one more run while the link is the bottleneck
    best_first: bool = False  # weighted searches defer vertices whose values will probably still improve
    bottom_up: bool = False  # a breadth-first search may switch to bottom-up search
    # PageRank sweeps over in-edges; otherwise by deltas, with fewer and fewer active vertices, as published.
    sweeps: bool = False
    combine: str = "buffers"  # which partitions make a task: a way of policies/combine.py
    order: str = "plain"  # of tasks: plain, or contribution, for which the store should be in hub order
    queue: bool = False  # whole partitions stay near, and run again while others are on their way
    pages: bool = False  # lists are read through pages; without a cache only a few pages stay
    hint: Hint = Hint.NONE  # for pages
    prefetch: bool = False  # fill a part of the pages before the start
    overlap: bool = True  # on a modelled device: packing, transfers and kernels of different tasks overlap
    modelled: Mapping[str, Any] = field(default_factory=dict)  # overrides for modelled devices
    host_decides: bool = True  # the host needs the frontier; otherwise a kernel finds active vertices itself
    words: str = ""  # for help
    colour: str = "resident"  # of its line in drawings: an engine's name, "ink" or "#rrggbb"
    dash: str = ":"  # of its line: "-", "--", "-." or ":"
    place: int = LAST  # position in lists
    variants: Mapping[str, Callable[[], Recipe]] = field(default_factory=dict)  # by the name after a colon

    @property
    def keeps(self) -> bool:
        """Whether spare memory may keep edges near."""
        return self.cache != "none" or self.settle or self.queue

    @property
    def keeps_lists(self) -> bool:
        """Whether lists of single vertices are kept near, those used most often."""
        return self.cache in ("vertices", "hot_subgraph")

    def without(self, switched_off: tuple[str, ...]) -> Recipe:
        """The recipe with some parts switched off."""
        unknown = [name for name in switched_off if name not in SWITCHES]
        if unknown:
            raise OptionError(
                f"without: expected some of {', '.join(SWITCHES)}, got {', '.join(unknown) or 'an empty name'}"
            )
        off: dict[str, Any] = {}
        for name in switched_off:
            off |= SWITCHES[name]
        return replace(self, **off)

    def on_model(self, sides: int, levels: bool) -> Recipe:
        """The recipe for a modelled device: without parts that use measured times, with its overrides if a program
        follows one side.

        PageRank goes by deltas there, whatever the recipe. `levels`: the program is a breadth-first search, for which
        switching to bottom-up saves more than further runs.
        """
        timeless = replace(self, settle=False, merge=False, correct=False, ahead=False, recompute=False, sweeps=False)
        if not self.modelled or sides > 1:
            return timeless
        return replace(timeless, **{**self.modelled, **({"further_runs": {}} if levels else {})})
