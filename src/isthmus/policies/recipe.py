"""What a recipe is: a published system, or our own, as a composition of the parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from isthmus.errors import OptionError
from isthmus.link.hints import Hint
from isthmus.plugins import LAST
from isthmus.policies.policy import Policy

UNTIL_SETTLED = 1 << 30  # rounds
SWITCHES: dict[str, dict[str, Any]] = {  # parts that a recipe can do without, and what that changes
    "settle": {"settle": False},
    "cache": {"cache": "none"},
    "merge": {"merge": False},
    "correct": {"correct": False},
    "ahead": {"ahead": False},
    "recompute": {"recompute": False, "further_runs": {}},
    "combine": {"combine": "apart"},
    "order": {"order": "plain"},
    "queue": {"queue": False},
    "prefetch": {"prefetch": False},
    "overlap": {"overlap": False},
}


@dataclass(frozen=True)
class Recipe:
    """A composition. The fields behind `policy` switch its parts on and off, each alone; the last ones describe it.

    What is given by keyword and as a literal can be read without importing the recipe: give `words`, `colour`, `dash` so.
    """

    name: str
    policy: Policy
    cache: str = "none"  # or partitions, vertices, pages
    further_runs: Mapping[str, int] = field(default_factory=dict)  # of deliveries, by engine, where any order of propagation will do
    weighs_launches: bool = False  # on a modelled device: mind what launches, copies and further rounds cost
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
    words: str = ""  # for help
    colour: str = "resident"  # of its line in drawings: of that engine, or "ink", or "#rrggbb"
    dash: str = ":"  # of its line: "-", "--", "-." or ":"
    place: int = LAST  # in lists
    variants: Mapping[str, Callable[[], Recipe]] = field(default_factory=dict)  # by what stands behind a colon

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
        return replace(timeless, **{**self.modelled, **({"further_runs": {}} if levels else {})})
