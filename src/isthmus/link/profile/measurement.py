"""Measuring a disk: bulk reads, single blocks with few and with many in flight, and packing lists in memory.

Reads go through the link that runs use, so a fallback that a run would take is measured too. Disks of virtual machines
are noisy: every round measures each kind of work once, and the median of the rounds counts. Portions double until one
takes long enough to be timed, so a slow disk reads little.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from isthmus import sizes
from isthmus.errors import StoreError
from isthmus.graph.far import ANYTHING, FarArray
from isthmus.graph.store.extent_reader import DEPTH
from isthmus.graph.store.files import BLOCK, OpenFile, Scratch, aligned_empty
from isthmus.kernels.loops.gather import pack
from isthmus.link.link import Array, Extents, Profile
from isthmus.link.ssd import GUESS, SsdLink
from isthmus.memory import format_size
from isthmus.progress import SILENT, Progress
from isthmus.threads import Team

DEPTHS = (1, 8, 32, DEPTH)  # single blocks in flight
ROUNDS = 5
LONGEST = 63  # entries of a list to pack: 32 on average, as in a graph with 16 undirected edges per vertex
PART = 4096  # lists that a core takes at a time, half a megabyte
WRITING = 2.0  # seconds after which a test file is large enough
UNSTEADY = 3  # a disk is unsteady if its best round reached this many times the median
Say = Callable[[str], None]


def ignore(text: str) -> None:
    pass


@dataclass
class Samples:
    """Measured rates per second, one of each kind per round."""

    source: str  # what was read
    bytes: int
    bulk: list[float]
    singles: dict[int, list[float]]  # by requests in flight
    packed: list[float]

    def profile(self, name: str) -> Profile:
        """The profile made of the medians."""
        rates = tuple((depth, statistics.median(rates)) for depth, rates in self.singles.items())
        return Profile(
            name,
            statistics.median(self.bulk),
            dict(rates)[DEPTH],
            BLOCK,
            DEPTH,
            True,
            rates,
            statistics.median(self.packed),
        )

    @property
    def steady(self) -> bool:
        """Whether the best rounds are near the medians. They are not if the disk was busy, or most blocks were not in
        its cache.
        """
        return all(max(rates) < UNSTEADY * statistics.median(rates) for rates in (self.bulk, self.singles[DEPTH]))


class TrialFile:
    """A nameless file on the disk of a folder, filled with incompressible bytes; a link reads it like a file of a
    store.
    """

    def __init__(self, folder: Path, progress: Progress = SILENT) -> None:
        free = shutil.disk_usage(folder).free
        if free < (least := 2 * sizes.now.least_trial):
            raise StoreError(
                f"{folder}: measuring needs {format_size(least)} of free space for a test file; {format_size(free)} "
                f"are free"
            )
        self.path = folder
        self.size = 0
        self._scratch = Scratch(folder)
        try:
            self._fill(min(sizes.now.most_trial, free // 2), progress)
        except BaseException:
            self.close()
            raise

    def _fill(self, most: int, progress: Progress) -> None:
        data = aligned_empty(sizes.now.least_trial // 8, np.uint64)
        data[:] = np.random.default_rng(1).integers(0, 2**64, data.size, np.uint64)
        progress.stage("writing", most, "B")
        start = time.perf_counter()
        while self.size + data.nbytes <= most and (self.size == 0 or time.perf_counter() - start < WRITING):
            data[:: BLOCK // 8] += np.uint64(1)  # no block twice
            self._scratch.append(data)
            self.size += data.nbytes
            progress.advance(data.nbytes)
        os.fsync(self._scratch.descriptor)

    @property
    def array(self) -> FarArray:
        """The file as a link reads it."""
        return FarArray(
            "test file", np.uint8, self.size, file=OpenFile(os.dup(self._scratch.descriptor), self.path / "test file")
        )

    def close(self) -> None:
        self._scratch.close()


class Meter:
    """Times portions of one kind of work. `work(n)` does n units of it, each worth `unit` bytes or requests."""

    def __init__(self, work: Callable[[int], None], unit: int) -> None:
        self.rates: list[float] = []
        self._work, self._unit = work, unit
        work(0)  # compiles what it needs

    def turn(self) -> None:
        """Measure one rate. Every turn starts small again: the next blocks may be slow, such as those a virtual disk
        has not loaded yet.
        """
        portion, seconds = 1, 0.0
        while seconds < sizes.now.trial_seconds:
            portion *= 2
            start = time.perf_counter()
            self._work(portion)
            seconds = time.perf_counter() - start
        self.rates.append(portion * self._unit / seconds)


def measure_folder(folder: Path, rounds: int = ROUNDS, progress: Progress = SILENT, say: Say = ignore) -> Samples:
    """Write a nameless test file in a folder and read it repeatedly. It is gone afterwards."""
    with contextlib.closing(TrialFile(folder, progress)) as trial:
        return measure(trial.array, f"a test file in {folder}", rounds, progress, say)


def measure_stored(array: FarArray, rounds: int = ROUNDS, progress: Progress = SILENT, say: Say = ignore) -> Samples:
    """Read an array of a store repeatedly."""
    return measure(array, f"section {array.name} of {array.open_file().path.parent}", rounds, progress, say)


def measure(array: FarArray, source: str, rounds: int, progress: Progress, say: Say) -> Samples:
    """Measure rates by reading an array's file; `say` gets the link's notes."""
    size = array.blocks * BLOCK
    # in case reads have to go through the page cache.
    os.posix_fadvise(array.open_file().descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    buffer = aligned_empty(sizes.now.trial_buffer, np.uint8)
    with contextlib.ExitStack() as stack:
        team = Team()
        stack.callback(team.close)
        links: dict[int, SsdLink] = {}
        for depth in DEPTHS:
            links[depth] = SsdLink([replace(array, bounds=ANYTHING)], replace(GUESS, depth=depth), verify=False)
            stack.callback(links[depth].close)
        for note in links[DEPTH].notes:
            say(note)
        bulk = Meter(read_bulk(links[DEPTH], buffer, size), sizes.now.largest_read)
        singles = {
            depth: Meter(read_singles(link, buffer, size, max(depth, 8)), max(depth, 8))
            for depth, link in links.items()
        }
        packed = pack_lists(team, buffer)
        meters = [bulk, *singles.values(), packed]
        progress.stage("measuring", rounds * len(meters), "measures")
        for _ in range(rounds):
            for meter in meters:
                meter.turn()
                progress.advance(1)
    return Samples(source, size, bulk.rates, {depth: meter.rates for depth, meter in singles.items()}, packed.rates)


def read_bulk(link: SsdLink, buffer: Array, size: int) -> Callable[[int], None]:
    """A function that reads a number of pieces, in extents as long as the buffer."""
    random = np.random.default_rng(1)

    def work(pieces: int) -> None:
        left = pieces * sizes.now.largest_read
        while left:
            length = min(left, buffer.size, size)
            offset = int(random.integers(0, (size - length) // BLOCK + 1)) * BLOCK
            link.move(
                Extents(np.zeros(1, np.int64), np.array([offset]), np.array([length]), np.zeros(1, np.int64)), buffer
            )
            left -= length

    return work


def read_singles(link: SsdLink, buffer: Array, size: int, unit: int) -> Callable[[int], None]:
    """A function that reads a number of units, each of `unit` random blocks."""
    random = np.random.default_rng(1)

    def work(units: int) -> None:
        count = units * unit
        offsets = random.integers(0, size // BLOCK, count) * BLOCK
        places = np.arange(count) * BLOCK % buffer.size
        link.move(Extents(np.zeros(count, np.int64), offsets, np.full(count, BLOCK), places), buffer)

    return work


def pack_lists(team: Team, buffer: Array) -> Meter:
    """A meter of packing: all cores pack every other one of the short lists in half a buffer."""
    source = buffer.view(np.uint32)
    lengths = np.random.default_rng(1).integers(1, LONGEST + 1, source.size // LONGEST)
    begins = (np.cumsum(lengths) - lengths)[::2].copy()
    lengths = lengths[::2].copy()
    places = np.cumsum(lengths) - lengths
    out = np.zeros(int(lengths.sum()), source.dtype)
    cuts = [*range(0, lengths.size, PART), lengths.size]
    pack(source, begins, lengths, places, out, 0, 0)

    def part(index: int) -> None:
        pack(source, begins, lengths, places, out, cuts[index], cuts[index + 1])

    def work(times: int) -> None:
        for _ in range(times):
            team.each(part, len(cuts) - 1)

    return Meter(work, out.nbytes)
