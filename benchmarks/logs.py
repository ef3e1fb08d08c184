"""What the log of a stream costs: latency of batches with and without it, group commit, checkpoints and recovery. Part
of streaming.py.

Clients that apply single changes are also timed with a sync that takes 5 ms longer, as on a disk that takes long to
confirm.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from harness import table, verdict
from windows import Window

import isthmus as ist

SHARE = 0.10  # of the latency of a batch, at most, from JUDGED changes on
JUDGED = 10_000
CLIENTS = (1, 4, 16)
SECONDS = 1.5  # that clients apply single changes
SLOWER = 0.005  # seconds


def report(cut: Window, source: int, sizes: list[int], batches: int, threads: int, folder: Path) -> str:
    """Tables of one graph, SSSP maintained."""
    folder.mkdir()
    trial = Trial(cut, cut.graph(), [ist.SSSP(source=source)], threads, folder)
    rows = [
        [
            "changes",
            "without a log",
            "with a log",
            "writing, and waiting for the sync",
            "share of latency",
            f"at most {SHARE:.0%}",
        ]
    ]
    for size in sizes:
        found = trial.latencies(size, batches)
        judged = verdict(found["share"], SHARE) if size >= JUDGED else "-"
        shown = [f"{1e3 * found[name]:.2f} ms" for name in ("without", "with", "log")]
        rows.append([f"{size:,}", *shown, f"{found['share']:.1%}", judged])
    clients = [
        [
            "threads that apply single changes",
            "batches a second, without a log",
            "with a log",
            "per sync",
            "slow disk",
            "per sync",
        ]
    ]
    for count in CLIENTS:
        shown = [f"{trial.single_changes(count, None)[0]:,.0f}"]
        for slower in (0.0, SLOWER):
            rate, together = trial.single_changes(count, slower)
            shown += [f"{rate:,.0f}", f"{together:.1f}"]
        clients.append([str(count), *shown])
    kept = [["beginning a log takes", "checkpoint", "recovery", "of which answers", "batches of the log", "log"]]
    kept.append(trial.recovery(max(sizes), batches))
    return "\n\n".join(map(table, (rows, clients, kept)))


@dataclass
class Trial:
    """A graph with its batches, and programs."""

    cut: Window
    graph: ist.Graph
    programs: list[Any]
    threads: int
    folder: Path
    logs: int = 0

    def opened(self, logged: bool, programs: list[Any] | None = None) -> Any:
        self.logs += logged
        log = self.folder / str(self.logs) if logged else None
        return ist.stream(self.graph, self.programs if programs is None else programs, threads=self.threads, log=log)

    def latencies(self, size: int, batches: int) -> dict[str, float]:
        """Median seconds of a batch. Streams with and without a log take turns at the same batches."""
        taken: dict[str, list[float]] = {"without": [], "with": [], "log": [], "share": []}
        with self.opened(False) as plain, self.opened(True) as logged:
            for number in range(batches):
                inserts, deletes = self.cut.batch(number, size)
                for name, live in (("without", plain), ("with", logged)):
                    start = time.perf_counter()
                    done = live.apply(inserts=inserts, deletes=deletes)
                    taken[name].append(time.perf_counter() - start)
                taken["log"].append(done.seconds["log"])
                taken["share"].append(done.seconds["log"] / taken["with"][-1])
            assert np.array_equal(plain["sssp"].filled(), logged["sssp"].filled())
        return {name: statistics.median(values[1:]) for name, values in taken.items()}

    def single_changes(self, clients: int, slower: float | None) -> tuple[float, float]:
        """(batches a second, batches per sync) of clients that each insert one edge after another. `slower`: None:
        without a log.
        """
        with self.opened(slower is not None) as live, syncs_taking(slower or 0.0):
            live.apply(inserts=self.cut.batch(0, 20)[0])
            end, first = time.perf_counter() + SECONDS, live.number

            def apply(own: int) -> None:
                number = own
                while time.perf_counter() < end:
                    live.apply(inserts=self.cut.batch(100 + number, 2)[0])
                    number += clients

            workers = [threading.Thread(target=apply, args=(own,)) for own in range(clients)]
            start = time.perf_counter()
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            done, facts = live.number - first, live.log.facts()
            return done / (time.perf_counter() - start), done / max(facts["syncs"] - first, 1) if facts else 0.0

    def recovery(self, size: int, batches: int) -> list[str]:
        seconds = {}
        for logged in (False, True):
            start = time.perf_counter()
            with self.opened(logged, []) as live:
                seconds[logged] = time.perf_counter() - start
                for number in range(batches if logged else 0):
                    inserts, deletes = self.cut.batch(number, size)
                    live.apply(inserts=inserts, deletes=deletes)
        folder = self.folder / str(self.logs)
        size_of_log = sum(path.stat().st_size for path in folder.glob("log-*"))
        start = time.perf_counter()
        with ist.stream(log=folder, threads=self.threads):
            replayed = time.perf_counter() - start
        start = time.perf_counter()
        with ist.stream(log=folder, programs=self.programs, threads=self.threads) as live:
            whole = time.perf_counter() - start
            start = time.perf_counter()
            live.checkpoint()
            written = time.perf_counter() - start
        shown = [seconds[True] - seconds[False], written, whole, max(whole - replayed, 0.0)]
        return [*(f"{each:.2f} s" for each in shown), f"{batches} of {size:,} changes", f"{size_of_log / 1e6:.1f} MB"]


@contextmanager
def syncs_taking(longer: float) -> Iterator[None]:
    really = os.fdatasync

    def sync(file: int) -> None:
        time.sleep(longer)
        really(file)

    os.fdatasync = sync if longer else really
    try:
        yield
    finally:
        os.fdatasync = really
