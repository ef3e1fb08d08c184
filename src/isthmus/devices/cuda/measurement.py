"""Measuring a GPU: copies, requests of kernels to host memory, launches, edges pushed; and what the host does
meanwhile.

Everything goes through the card that runs use, so what the host spends on a call is measured with it. Each round
measures every kind of work once, and the median of the rounds counts. Before the first round every kind runs once,
which compiles its kernel; how long the first two kernels take is measured as well. Managed memory is written by the
host before a kernel reads it, so that its pages migrate.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.devices.cuda.card import Array, Card, Shared
from isthmus.devices.cuda.gpu_costs import CardCosts
from isthmus.devices.cuda.kernels import measuring, rows
from isthmus.devices.cuda.kernels.skeleton import LINE, WARP, WIDTHS
from isthmus.graph.store.files import aligned_empty
from isthmus.link.profile.measurement import ROUNDS, Meter, pack_lists
from isthmus.progress import SILENT, Progress
from isthmus.threads import Team

SECTOR = 32  # bytes of the smallest request
STEP = 104729  # lines from one that a kernel reads to the next; odd, and far more than a page
PIECE = 1 << 10  # vertices that a core follows at a time
SHORT = 128  # bytes of a copy whose latency is measured
APART = (
    2 << 20
)  # bytes between pages that a kernel waits for: the most that one fault can bring (`devices/model/managed_memory.py`)


@dataclass(frozen=True)
class Trial:
    """How much work is timed."""

    copied: int = 64 << 20  # bytes of a copy in bulk
    lines: int = 1 << 19  # of LINE bytes of host memory; a power of two
    vertices: int = 1 << 23  # whose values are updated at random: more than fits in the cache of a GPU
    rows: int = 1 << 19  # vertices that push
    degree: int = 32  # edges of each
    often: int = 64  # short copies and launches that are timed together
    faults: int = 64  # pages that a kernel waits for, one after the other


TRIAL = Trial()
Work = Callable[[], None]


@dataclass(frozen=True)
class Timed:
    """Work that is timed, and how many units it is; `prepare` comes before it, and is not timed."""

    work: Work
    units: int
    prepare: Work | None = None


@dataclass
class CardSamples:
    """What each round measured, by kind: rates per second, and seconds of what has a latency."""

    gpu: str
    kinds: dict[str, list[float]]
    cores: int
    start_seconds: float
    kernel_seconds: float

    def costs(self) -> CardCosts:
        """The costs made of the medians."""
        found = {name: statistics.median(values) for name, values in self.kinds.items()}
        direct = tuple(found.pop(f"direct {sectors}") for sectors in range(1, LINE // SECTOR + 1))
        starts = {"start_seconds": self.start_seconds, "kernel_seconds": self.kernel_seconds}
        return CardCosts(gpu=self.gpu, direct=direct, cores=self.cores, **starts, **found)


class Bench:
    """Memory and kernels for measuring a card. `clock` tells seconds. Use it as a context manager: all memory is freed
    at its end.
    """

    def __init__(self, card: Card, trial: Trial, clock: Callable[[], float]) -> None:
        self.card, self.trial, self._clock = card, trial, clock
        self._memory = contextlib.ExitStack()
        self.stream = card.stream()

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *details: object) -> None:
        self.finish()
        self._memory.close()

    def take(self, make: Callable[..., Any], *arguments: Any) -> Any:
        memory = make(*arguments)
        self._memory.callback(self.card.free, memory)
        return memory

    def upload(self, array: Array) -> Array:
        near = self.take(self.card.near, array.size, array.dtype)
        self.card.copy(near, array, self.stream)
        self.finish()
        return near

    def launch(self, kernel: Any, *arguments: Any) -> None:
        self.card.launch(kernel, self.stream, *arguments)

    def finish(self) -> None:
        self.card.finish(self.card.record(self.stream))

    def seconds(self, work: Work, prepare: Work | None = None) -> float:
        """The time of some work, until the card has done it; never 0."""
        if prepare is not None:
            prepare()
        start = self._clock()
        work()
        self.finish()
        return max(self._clock() - start, 1e-9)


def measure_card(
    card: Card,
    gpu: str,
    threads: int | None = None,
    rounds: int = ROUNDS,
    trial: Trial = TRIAL,
    clock: Callable[[], float] = time.perf_counter,
    progress: Progress = SILENT,
) -> CardSamples:
    """Measure a card and its host."""
    with contextlib.closing(Team(threads)) as team, Bench(card, trial, clock) as bench:
        push = pushes(bench)
        start_seconds = bench.seconds(push)  # builds the kernel, and runs it once
        reading = reads(bench)
        kernel_seconds = bench.seconds(reading["direct 1"].work)  # compiles another one
        works = {**copies(bench), **reading, **launches(bench), "edge_rate": Timed(push, trial.rows * trial.degree)}
        meters = {
            "packing": pack_lists(team, aligned_empty(sizes.now.trial_buffer, np.uint8)),
            "host_edge_rate": host_pushes(team, trial),
        }
        kinds: dict[str, list[float]] = {name: [] for name in works}
        for timed in works.values():
            bench.seconds(timed.work, timed.prepare)
        progress.stage("measuring", rounds * (len(works) + len(meters)), "measures")
        for _ in range(rounds):
            for name, timed in works.items():
                seconds = bench.seconds(timed.work, timed.prepare)
                kinds[name].append(seconds / timed.units if name.endswith("seconds") else timed.units / seconds)
                progress.advance(1)
            for meter in meters.values():
                meter.turn()
                progress.advance(1)
        found = {**kinds, **{name: meter.rates for name, meter in meters.items()}}
        return CardSamples(gpu, found, team.size, start_seconds, kernel_seconds)


def copies(bench: Bench) -> dict[str, Timed]:
    """Copies in bulk either way, by bytes; and short ones, by number."""
    card, often = bench.card, bench.trial.often
    near = bench.take(card.near, bench.trial.copied, np.uint8)
    pinned = bench.take(card.pinned, bench.trial.copied, np.uint8)
    pinned[:] = 1

    def short() -> None:
        for _ in range(often):
            card.copy(near[:SHORT], pinned[:SHORT], bench.stream)

    def waited() -> None:
        for _ in range(often):
            card.copy_back(pinned[:SHORT], near[:SHORT], bench.stream)
            bench.finish()

    return {
        "bandwidth": Timed(lambda: card.copy(near, pinned, bench.stream), near.size),
        "back_bandwidth": Timed(lambda: card.copy_back(pinned, near, bench.stream), near.size),
        "transfer_seconds": Timed(short, often),
        "copy_seconds": Timed(waited, often),
    }


def reads(bench: Bench) -> dict[str, Timed]:
    """Kernels that read mapped memory by requests of 1 to 4 sectors, by bytes; managed memory, by bytes; and single
    pages, by number.
    """
    card, lines, faults = bench.card, bench.trial.lines, bench.trial.faults
    far: Shared = bench.take(card.mapped, np.ones(lines * WARP, np.uint32))
    managed: Shared = bench.take(card.managed, np.ones(lines * WARP, np.uint32))
    links: Shared = bench.take(card.managed_room, faults * APART // 4, np.uint32)
    sums = bench.take(card.near, card.threads, np.int64)
    kernels = measuring.build_reading(card.gpu)

    def of(sectors: int) -> Work:
        return lambda: bench.launch(
            kernels.read_lines, far.device, lines, sectors * SECTOR // far.host.itemsize, STEP, sums
        )

    def link_pages() -> None:
        """The first entry of each page says where the next one begins."""
        links.host[:: APART // 4] = (np.arange(faults) + 1) % faults * (APART // 4)

    return {
        **{
            f"direct {sectors}": Timed(of(sectors), lines * sectors * SECTOR)
            for sectors in range(1, LINE // SECTOR + 1)
        },
        "managed_bandwidth": Timed(
            lambda: bench.launch(kernels.read_lines, managed.device, lines, WARP, 1, sums),
            lines * LINE,
            lambda: managed.host.fill(1),
        ),
        "fault_seconds": Timed(lambda: bench.launch(kernels.chase, links.device, faults, sums), faults, link_pages),
    }


def launches(bench: Bench) -> dict[str, Timed]:
    """Launches with nothing to do, by number; and a kernel that fills memory, by bytes."""
    card, often, fill = bench.card, bench.trial.often, rows.build(bench.card.gpu).fill
    memory = bench.take(card.near, bench.trial.copied // 8, np.int64)

    def little() -> None:
        for _ in range(often):
            bench.launch(fill, memory[:1], 0)

    return {
        "launch_seconds": Timed(little, often),
        "fill_bandwidth": Timed(lambda: bench.launch(fill, memory, 0), memory.nbytes),
    }


def pushes(bench: Bench) -> Work:
    """A push along all edges, whose kernel is built when it is first run."""
    card, trial = bench.card, bench.trial
    targets = bench.upload(random_targets(trial))
    values, marks = bench.upload(np.zeros(trial.vertices, np.int64)), bench.upload(np.zeros(trial.vertices, np.uint8))
    offsets = bench.upload(np.arange(trial.rows + 1) * trial.degree)
    vertices, lengths = (
        bench.upload(np.arange(trial.rows, dtype=np.uint32)),
        bench.upload(np.full(trial.rows, trial.degree)),
    )
    counts, weights = bench.upload(np.full(len(WIDTHS), trial.rows)), bench.upload(np.zeros(1, np.int32))

    build, runs = functools.cache(lambda: measuring.build_pushing(card.gpu).push), itertools.count(1)

    def push() -> None:
        begins, ends = offsets[:-1], offsets[1:]
        bench.launch(
            build(),
            1,
            0,
            vertices,
            begins,
            begins,
            lengths,
            counts,
            min(WARP, card.threads),
            LINE // 4,
            begins,
            ends,
            targets,
            weights,
            (values,),
            (values,),
            (-next(runs),),
            marks,
        )

    return push


def host_pushes(team: Team, trial: Trial) -> Meter:
    """A meter of the same push on the processor, by all cores."""
    loop, targets = measuring.processor_loops().push_range, random_targets(trial)
    values, marks = np.zeros(trial.vertices, np.int64), np.zeros(trial.vertices, np.uint8)
    begins, ends = np.arange(trial.rows) * trial.degree, (np.arange(trial.rows) + 1) * trial.degree
    nothing, weights, queue = np.zeros(1, np.uint8), np.empty(0, np.int32), np.empty(0, np.uint32)

    def part(index: int, sent: int) -> None:
        first, last = index * PIECE, min((index + 1) * PIECE, trial.rows)
        loop(
            first,
            last,
            first * trial.degree,
            last * trial.degree,
            0,
            0,
            nothing,
            True,
            begins,
            ends,
            targets,
            weights,
            (values,),
            (values,),
            (sent,),
            marks,
            queue,
            0,
        )

    part(0, 0)  # compiles it
    runs = itertools.count(1)

    def work(times: int) -> None:
        for _ in range(times):
            marks.fill(0)
            team.each(functools.partial(part, sent=-next(runs)), -(-trial.rows // PIECE))

    return Meter(work, trial.rows * trial.degree)


def random_targets(trial: Trial) -> Array:
    return np.random.default_rng(1).integers(0, trial.vertices, trial.rows * trial.degree, np.uint32)
