"""Opening a link to a snapshot's edges: to the disk if they are in files, else to memory."""

from __future__ import annotations

from isthmus.graph.far import FarArray
from isthmus.graph.snapshot import Snapshot
from isthmus.link.link import Link, Profile
from isthmus.link.patched import PatchedLink
from isthmus.link.profile.calibration import profile_of
from isthmus.link.profile.measurement import Say, ignore
from isthmus.link.ram import PROFILE, RamLink
from isthmus.link.ssd import SsdLink


def open_link(
    snapshot: Snapshot,
    arrays: list[FarArray],
    far: str = "auto",
    verify: bool = True,
    may_measure: bool = True,
    say: Say = ignore,
) -> Link:
    """A link to some arrays of a snapshot. A disk without a profile is measured first if needed.

    `far`: "ram" first reads arrays that are in files into memory, and then uses a link to that memory.
    """
    if far != "ram" and in_files(arrays):
        kind = PatchedLink if any(array.patch is not None for array in arrays) else SsdLink
        return kind(arrays, profile_of(arrays, may_measure, say), verify)
    return RamLink([snapshot.whole(array, verify) for array in arrays])


def known_profile(arrays: list[FarArray]) -> Profile:
    """The known profile of the link to some arrays; measures nothing."""
    return profile_of(arrays, may_measure=False) if in_files(arrays) else PROFILE


def in_files(arrays: list[FarArray]) -> bool:
    return bool(arrays) and all(array.file is not None for array in arrays)
