"""Rates of a link, corrected by what reads really took.

A calibration is a minute's work on an idle disk; a run has its own mix of sizes, and neighbours. What an iteration
that waited for the link moved by (almost) one engine, over the time it took, is an observation of that engine's rate. The
corrected rate follows observations slowly, and stays within a factor of the calibrated one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from isthmus.link.link import Profile

PACE = 0.3  # weight of an observation, in logarithms
LIMIT = 4.0  # how far a rate may move
LINK_BOUND = 0.5  # share of an iteration spent waiting that makes it an observation
ALMOST = 0.9  # share of the link's work that makes it an observation of one engine
LEAST_SECONDS = 0.005


@dataclass(frozen=True)
class Observation:
    """What an iteration moved, and how long the link was busy with it."""

    bulk_bytes: int
    blocks: int
    seconds: float
    waited: float


def corrected(calibrated: Profile, now: Profile, seen: Observation) -> Profile:
    """The profile after an observation; the same where it says nothing."""
    if seen.seconds < LEAST_SECONDS or seen.waited < LINK_BOUND * seen.seconds:
        return now
    bulk, single = seen.bulk_bytes / now.bandwidth, seen.blocks / now.request_rate
    if bulk >= ALMOST * (bulk + single) and bulk > 0:
        return replace(now, bandwidth=moved(calibrated.bandwidth, now.bandwidth, seen.bulk_bytes / seen.seconds))
    if single >= ALMOST * (bulk + single) and single > 0:
        return replace(now, request_rate=moved(calibrated.request_rate, now.request_rate, seen.blocks / seen.seconds))
    return now


def moved(calibrated: float, now: float, seen: float) -> float:
    rate = float(now * (seen / now) ** PACE)
    return min(max(rate, calibrated / LIMIT), calibrated * LIMIT)
