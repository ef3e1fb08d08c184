"""Measuring a disk: bulk bandwidth and the rate of single-block reads, in about a second, remembered per device."""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from isthmus.graph.files import BLOCK, aligned_empty
from isthmus.graph.store import Store
from isthmus.link.link import Extents, Profile
from isthmus.link.ssd import DEPTH, PIECE, SsdLink

GUESS = Profile("a disk not measured", 1.5e9, 100e3, BLOCK, DEPTH, False)
BULK, SINGLES = 256 << 20, 16384  # at most this much is read
LEAST = 64 << 20  # a smaller file says little about the disk
ROUNDS = 3


def cache_folder() -> Path:
    """Where Isthmus remembers things between runs."""
    base = os.environ.get("ISTHMUS_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "isthmus"
    return Path(base)


def profile_of(store: Store) -> Profile:
    """The remembered profile of the disk a store lies on; measured now if there is none and the store is large enough."""
    device = os.stat(store.path).st_dev
    path = cache_folder() / "links.json"
    known = recall(path)
    with contextlib.suppress(KeyError, TypeError, ValueError):
        return checked(Profile(**known[str(device)]))
    if max(section.bytes for section in store.manifest.sections.values()) < LEAST:
        return GUESS
    profile = measure(store)
    remember(path, {**known, str(device): asdict(profile)})
    return profile


def recall(path: Path) -> dict[str, Any]:
    """What was written last time; nothing where the file is missing or damaged."""
    try:
        known = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return known if isinstance(known, dict) else {}


def checked(profile: Profile) -> Profile:
    """A profile that policies can divide by, or ValueError."""
    if not (0 < profile.bandwidth < float("inf") and 0 < profile.request_rate < float("inf") and profile.block == BLOCK):
        raise ValueError(f"not a disk: {profile}")
    return profile


def remember(path: Path, known: dict[str, Any]) -> None:
    """Write the file in one step; without a writable folder, measure again next time."""
    fresh = path.with_suffix(f".{os.getpid()}")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            fresh.write_text(json.dumps(known, indent=1))
            fresh.replace(path)
        finally:
            fresh.unlink(missing_ok=True)


def measure(store: Store) -> Profile:
    """Read the largest section in bulk, then single blocks of it at random, a few times each; take the medians."""
    name = max(store.manifest.sections, key=lambda n: store.manifest.sections[n].bytes)
    blocks = store.manifest.sections[name].blocks
    link = SsdLink(store, [name], GUESS)
    random = np.random.default_rng(1)
    buffer = aligned_empty(16 * PIECE, np.uint8)
    try:
        bandwidth, rate = [], []
        for turn in range(ROUNDS):
            size = min(buffer.size, blocks * BLOCK)
            start = time.perf_counter()
            moved = 0
            while moved < BULK:
                at = int(random.integers(0, max(1, blocks - size // BLOCK))) * BLOCK
                moved += size
                link.move(one_extent(at, size), buffer, turn % 2)
            bandwidth.append(moved / (time.perf_counter() - start))
            picks = random.integers(0, blocks, SINGLES) * BLOCK
            wanted = Extents(
                np.zeros(SINGLES, np.int64), picks, np.full(SINGLES, BLOCK), np.arange(SINGLES) * BLOCK % buffer.size
            )
            start = time.perf_counter()
            link.move(wanted, buffer)
            rate.append(SINGLES / (time.perf_counter() - start))
    finally:
        link.close()
    return Profile(f"disk of {store.path.parent}", float(np.median(bandwidth)), float(np.median(rate)), BLOCK, DEPTH, True)


def one_extent(offset: int, length: int) -> Extents:
    return Extents(np.zeros(1, np.int64), np.array([offset]), np.array([length]), np.zeros(1, np.int64))
