"""Opening a link to a snapshot's edges: to a disk where they lie in files, else to memory."""

from __future__ import annotations

from isthmus.graph.far import FarArray
from isthmus.graph.snapshot import Snapshot
from isthmus.link.calibrate import profile_of
from isthmus.link.link import Link, Profile
from isthmus.link.measure import Say, ignore
from isthmus.link.ram import PROFILE, RamLink
from isthmus.link.ssd import SsdLink


def open_link(
    snapshot: Snapshot, arrays: list[FarArray], far: str = "auto", verify: bool = False, may_measure: bool = True, say: Say = ignore,
) -> Link:  # fmt: skip
    """A link to some arrays of a snapshot. A disk nobody has measured yet is measured now if need be.

    `far`: "ram" reads arrays that lie in files into memory first, and copies them out of it.
    """
    if far == "auto" and in_files(arrays):
        return SsdLink(arrays, profile_of(arrays, may_measure, say), verify)
    return RamLink([snapshot.whole(array, verify) for array in arrays])


def known_profile(arrays: list[FarArray]) -> Profile:
    """What is known of the link to some arrays; nothing is measured for it."""
    return profile_of(arrays, may_measure=False) if in_files(arrays) else PROFILE


def in_files(arrays: list[FarArray]) -> bool:
    return bool(arrays) and all(array.file is not None for array in arrays)
