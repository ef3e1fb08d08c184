"""A link's rates, corrected by the measured times of reads.

A calibration takes a minute on an idle disk. A run has its own mix of read sizes, and other programs may use the disk.
If an iteration waited for the link and (almost) one engine did all the moving, the amount moved / the time is an
observation of that engine's rate. The corrected rate follows observations slowly, and stays within a factor of the
calibrated one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from isthmus.link.link import Profile

PACE = 0.3  # weight of an observation, in logarithms
LIMIT = 4.0  # largest factor between the corrected and the calibrated rate
LINK_BOUND = 0.5  # least share of an iteration spent on I/O wait for it to be an observation
ALMOST = 0.9  # least share of the link's work by one engine for it to be an observation of that engine
LEAST_SECONDS = 0.005


@dataclass(frozen=True)
class Observation:
    """What an iteration moved, and how long the link was busy with it."""

    bulk_bytes: int
    blocks: int
    seconds: float
    waited: float


def corrected(calibrated: Profile, now: Profile, seen: Observation) -> Profile:
    """The profile after an observation; unchanged if the observation tells nothing about a rate."""
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
