"""The GAP Benchmark Suite as a contestant: its binaries, on its own file format, by its own clock.

`GAPBS` names the folder with bfs, sssp, cc and pr. They print times and counts, not answers: each is verified by its
own -v, and by its counts against ours. What its PageRank reaches after so many sweeps is found by replaying its sweeps
here, and the changes it logs must be those of the replay.
"""

from __future__ import annotations

import os
import re
import statistics
from pathlib import Path
from typing import Any

import numpy as np
from check import AT_ONCE, Array, pagerank_error
from contest import ERROR, Left, Truth
from harness import Child, child
from libraries import THREADS

import isthmus as ist
from isthmus.kernels.compile.kernel import kernel

BINARIES = {"bfs": "bfs", "sssp": "sssp", "wcc": "cc", "pagerank": "pr"}
COUNTS = {
    "bfs": r"BFS Tree has (\d+) nodes",
    "sssp": r"SSSP Tree reaches (\d+) nodes",
    "wcc": r"There are (\d+) components",
}
DELTAS = (1, 4, 16, 64, 256)  # widths of its buckets for shortest paths: the best on each graph counts
TRIALS = 3  # per process
MOST_SWEEPS = 200
ALIKE = 0.5  # how far a logged change may be from the replayed one: threads that see less of each other converge later


def folder() -> Path | None:
    """Where the binaries are, if anywhere."""
    where = os.environ.get("GAPBS")
    return Path(where) if where and all((Path(where) / name).is_file() for name in BINARIES.values()) else None


def export(graph: ist.Graph, weighted: bool) -> Path:
    """The graph as a serialized graph of the suite: directed or not, arcs, vertices, then each side's offsets and
    arcs.
    """
    assert graph.path
    path = graph.path.with_suffix(".wsg" if weighted else ".sg")
    if path.exists():
        return path
    with path.open("wb") as file:
        file.write(
            np.array([graph.directed], np.uint8).tobytes() + np.array([graph.arcs, graph.vertices], np.int64).tobytes()
        )
        for side in ("out", "in") if graph.directed else ("out",):
            graph.store.read(f"{side}.offsets").astype(np.int64).tofile(file)
            for first in range(0, graph.arcs, AT_ONCE):
                last = min(first + AT_ONCE, graph.arcs)
                sections = [f"{side}.{what}" for what in ("targets", "weights")[: 1 + weighted]]
                columns = [graph.store.read(section, first, last).astype(np.int32) for section in sections]
                np.stack(columns, axis=1).tofile(file)
    return path


class Gapbs:
    name = "GAPBS"

    def __init__(self, binaries: Path, truth: Truth, limit: float) -> None:
        self._truth, self._limit, self.note = truth, limit, ""
        file = export(truth.graph, truth.algorithm == "sssp")
        self._command = [str(binaries / BINARIES[truth.algorithm]), "-f", str(file)]
        self._options: list[str] = []

    def _run(self, *options: str) -> Child:
        try:
            done = child([*self._command, *self._options, *options], OMP_NUM_THREADS=str(THREADS))
        except SystemExit as reason:
            raise Left(f"failed: {reason}") from None
        if max(times(done.output)) > self._limit:
            raise Left(f"over {self._limit:.0f} s")
        return done

    def _from(self, source: int) -> list[str]:
        return ["-r", str(source)] if self._truth.algorithm in ("bfs", "sssp") else []

    def settle(self, source: int) -> None:
        if self._truth.algorithm == "pagerank":
            return self._settle_pagerank()
        if self._truth.algorithm == "sssp":
            taken = {
                delta: min(times(self._run("-d", str(delta), "-n", "2", *self._from(source)).output))
                for delta in DELTAS
            }
            delta = min(taken, key=lambda delta: taken[delta])
            self._options, self.note = ["-d", str(delta)], f"delta {delta}"
        output = self._run("-n", "1", "-v", "-a", *self._from(source)).output
        count = re.search(COUNTS[self._truth.algorithm], output)
        if not re.search(r"Verification:\s+PASS", output) or not count or int(count[1]) != self._truth.count[source]:
            raise Left("WRONG answer")
        return None

    def _settle_pagerank(self) -> None:
        changes, error = replay(self._truth.graph, np.load(self._truth.reference))
        self._options = ["-i", str(len(changes)), "-t", "0"]
        self.note = f"{error:.1e} ({len(changes)} sweeps)"
        output = self._run("-n", "1", "-l").output
        if error > ERROR:
            raise Left(f"off by {error:.1e} after {len(changes)} sweeps")
        logged = [float(change) for change in re.findall(r"^\s+\d+\s+([0-9.]+)$", output, re.MULTILINE)]
        if len(logged) != len(changes) or not np.allclose(logged, changes, rtol=ALIKE, atol=1e-5):
            raise Left("WRONG answer: its changes are not those of the replay")

    def trial(self, source: int) -> float:
        return statistics.median(times(self._run("-n", str(TRIALS), *self._from(source)).output))

    def peak(self, source: int) -> int:
        """Peak memory of a process that does it once."""
        return self._run("-n", "1", *self._from(source)).peak_rss

    def close(self) -> None: ...


def times(output: str) -> list[float]:
    return [float(seconds) for seconds in re.findall(r"Trial Time:\s+([0-9.]+)", output)]


def replay(graph: ist.Graph, reference: Array) -> tuple[list[float], float]:
    """The changes of as many sweeps as the suite's PageRank needs, on one thread, and the error it then has."""
    side, n = "in" if graph.directed else "out", graph.vertices
    offsets, sources = graph.store.read(f"{side}.offsets").astype(np.int64), graph.store.read(f"{side}.targets")
    degrees = np.diff(graph.store.read("out.offsets")).astype(np.float32)
    scores = np.full(n, 1 / n, np.float32)
    shares = np.divide(scores, degrees, out=np.zeros(n, np.float32), where=degrees > 0)
    changes: list[float] = []
    while len(changes) < MOST_SWEEPS:
        changes.append(sweep(offsets, sources, degrees, scores, shares))
        error = pagerank_error(scores.astype(np.float64), reference)
        if error <= ERROR:
            break
    return changes, error


@kernel
def sweep(offsets: Any, sources: Any, degrees: Any, scores: Any, shares: Any) -> float:
    """One sweep in single precision; new shares are seen at once. Returns the change."""
    damping = np.float32(0.85)
    base = (np.float32(1) - damping) / np.float32(scores.size)
    change = 0.0
    for v in range(scores.size):
        total = np.float32(0)
        for e in range(offsets[v], offsets[v + 1]):
            total += shares[sources[e]]
        fresh = base + damping * total
        change += abs(fresh - scores[v])
        scores[v] = fresh
        if degrees[v] > 0:
            shares[v] = fresh / degrees[v]
    return change
