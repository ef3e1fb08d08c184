"""Which of several recipes to take, and why, in one sentence. Pure: it reads summaries."""

from __future__ import annotations

from typing import Any

from isthmus.memory import format_size
from isthmus.runtime.plan.comparison import seconds_of

ALIKE = 1.05  # times in this ratio count as equal: runs on a busy machine differ by more
LESS = 0.9  # a figure explains a difference if it is smaller by so much

Summaries = dict[str, dict[str, Any]]


def advice(summaries: Summaries) -> str:
    """The sentence. With a single recipe there is no choice."""
    if len(summaries) < 2:
        return ""
    order = sorted(summaries, key=lambda name: seconds_of(summaries[name]))
    best, second = order[0], order[1]
    if all(summary["policy"] == "resident" for summary in summaries.values()):
        return (
            f"Take {'auto' if 'auto' in summaries else best}: all edges fit in near memory, so no recipe moves "
            f"any, and all do the same."
        )
    alike = [name for name in order if seconds_of(summaries[name]) <= ALIKE * seconds_of(summaries[best])]
    if "auto" in alike and best != "auto":
        return f"Take auto: it is as fast as {best}, the fastest here, and it adapts to other graphs and budgets."
    if len(alike) > 1:
        return f"Take {best}: it is the fastest, though hardly faster than {listed(alike[1:])}."
    ratio = seconds_of(summaries[second]) / max(seconds_of(summaries[best]), 1e-12)
    return (
        f"Take {best}: it is {ratio:.2g} times as fast as {second}, the "
        f"next{because(summaries[best], summaries[second])}."
    )


def because(best: dict[str, Any], other: dict[str, Any]) -> str:
    """Reasons why one run is faster than another; empty if its figures show none."""
    one, two = best["transfer"], other["transfer"]
    if one["bytes"] < LESS * two["bytes"]:
        return f", since it moved {format_size(one['bytes'])} instead of {format_size(two['bytes'])}"
    if one["requests"] < LESS * two["requests"]:
        return f", since it made {one['requests']:,} requests instead of {two['requests']:,}"
    if best["iterations"] < LESS * other["iterations"]:
        return f", since it took {best['iterations']:,} iterations instead of {other['iterations']:,}"
    waits = best["seconds"]["wait"], other["seconds"]["wait"]
    if "modelled" not in best["seconds"] and waits[0] < LESS * waits[1]:
        return f", since it waited {waits[0]:.3f} s for the disk instead of {waits[1]:.3f} s"
    return ", with about the same transfers"


def listed(names: list[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
