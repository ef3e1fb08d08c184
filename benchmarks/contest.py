"""A contest: contestants in processes of their own, each verified, then timed in turns with Isthmus.

A contestant leaves the contest, with the reason, when it builds or runs for too long, when it leaves the machine too
little memory, when it fails, and when an answer is wrong. Every answer that is timed is compared with the truth.
"""

from __future__ import annotations

import bisect
import contextlib
import json
import os
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from check import UNREACHED, components, digest, pagerank_bound, prove_distances
from libraries import THREADS

import isthmus as ist
from isthmus.memory import available

OURS = "isthmus"
ERROR = 1e-4  # L1 error that PageRank is asked for
TOLERANCES = [0.1 / 2**k for k in range(24)]
# Our threads race, so no two answers are alike: so many runs must do, with an error of so much of what is asked for.
STEADY = 3, 0.75
REFERENCE_ERROR = 1e-8
LEAST_FREE = 1 << 30  # bytes of memory that a contestant must leave
BUILD_LIMITS = 5  # building may take this many times the limit of a run


class Left(Exception):
    """Why a contestant is out of the contest."""


class TooLarge(Left):
    """It could not even build the graph: larger ones need not be tried."""


class Truth:
    """The right answers to an algorithm on a graph, proved by `check`; `count`: vertices reached, or components."""

    def __init__(self, graph: ist.Graph, algorithm: str, sources: list[int], folder: Path) -> None:
        self.algorithm, self.graph, self.reference = algorithm, graph, folder / "reference.npy"
        self.answers: dict[int, str] = {}
        self.count: dict[int, int] = {}
        if algorithm == "pagerank":
            ranks = ist.pagerank(graph, tol=REFERENCE_ERROR / 10, threads=THREADS).values
            bound = pagerank_bound(graph, ranks)
            assert bound <= REFERENCE_ERROR, f"the reference may be off by {bound}"
            np.save(self.reference, ranks)
        elif algorithm == "wcc":
            labels = components(graph)
            self.answers = dict.fromkeys(sources, digest(labels))
            self.count = dict.fromkeys(sources, np.unique(labels).size)
        else:
            for source in sources:
                distances = self._distances(source)
                self.answers[source], self.count[source] = digest(distances), int((distances != UNREACHED).sum())

    def _distances(self, source: int) -> Any:
        user, weighted = self.graph.ids.users(np.array([source]))[0], self.algorithm == "sssp"
        values = (ist.sssp if weighted else ist.bfs)(self.graph, user, threads=THREADS).filled()
        distances = np.where(values == np.iinfo(np.int64).max, UNREACHED, values)
        prove_distances(self.graph, source, distances, weighted)
        return distances

    def check(self, source: int, answer: Any) -> None:
        right = answer <= ERROR if self.algorithm == "pagerank" else answer == self.answers[source]
        if not right:
            raise Left(f"off by {answer:.1e}" if self.algorithm == "pagerank" else "WRONG answer")


class Contestant(Protocol):
    """`settle` verifies it and sets it up, for PageRank with its loosest setting that is accurate enough."""

    name: str
    note: str

    def settle(self, source: int) -> None: ...
    def trial(self, source: int) -> float: ...
    def close(self) -> None: ...


class Peer:
    """A library of `libraries`, in a process of its own."""

    def __init__(self, name: str, truth: Truth, limit: float) -> None:
        self.name, self.note, self._truth, self._limit, self._tol = name, "", truth, limit, 0.0
        reference = [str(truth.reference)] if truth.algorithm == "pagerank" else []
        command = [
            sys.executable,
            str(Path(__file__).parent / "libraries.py"),
            name,
            str(truth.graph.path),
            truth.algorithm,
            *reference,
        ]
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed with the process
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": str(THREADS)},
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()
        try:
            self._tunable = self._reply(BUILD_LIMITS * limit)["tunable"]
        except Left as reason:
            self.close()
            raise TooLarge(f"building: {reason}") from None

    def _listen(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def _reply(self, limit: float) -> Any:
        deadline = time.monotonic() + limit
        while True:
            with contextlib.suppress(queue.Empty):
                line = self._lines.get(timeout=0.05)
                if not line:
                    raise Left(f"failed: {self._last_words()}")
                return json.loads(line)
            if time.monotonic() > deadline:
                raise Left(f"over {limit:.0f} s")
            if self.name != OURS and available() < LEAST_FREE:
                raise Left("too little memory")

    def _last_words(self) -> str:
        code = self._process.wait()
        self._errors.seek(0)
        return (self._errors.read().strip().splitlines() or [f"ended with {code}"])[-1]

    def _ask(self, source: int) -> tuple[float, Any]:
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):  # who is gone does not reply either
            self._process.stdin.write(json.dumps({"source": source, "tol": self._tol}) + "\n")
            self._process.stdin.flush()
        seconds = self._reply(self._limit)["seconds"]
        return seconds, self._reply(BUILD_LIMITS * self._limit)["answer"]

    def settle(self, source: int) -> None:
        if self._truth.algorithm == "pagerank":
            if self._tunable:
                loosest = bisect.bisect_left(TOLERANCES, True, key=lambda tol: self._error(tol) <= ERROR)
                self._tol = TOLERANCES[min(loosest, len(TOLERANCES) - 1)]
            self.note = f"{self._ask(0)[1]:.1e}" + (f" (tol {self._tol:.1e})" if self._tunable else "")
        self.trial(source)

    def _error(self, tol: float) -> float:
        """The error with a setting; of ours the worst of several, with a margin."""
        self._tol = tol
        runs, margin = STEADY if self.name == OURS else (1, 1.0)
        return max(float(self._ask(0)[1]) for _ in range(runs)) / margin

    def trial(self, source: int) -> float:
        try:
            seconds, answer = self._ask(source)
            self._truth.check(source, answer)
        except Left as reason:
            if self.name == OURS:
                sys.exit(f"{self._truth.graph}, {self._truth.algorithm}: isthmus {reason}")
            raise
        return seconds

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._errors.close()


@dataclass
class Pair:
    """Seconds of Isthmus and of a peer, in turns."""

    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> tuple[float, float]:
        return statistics.median(self.ours), statistics.median(self.theirs)

    @property
    def ratio(self) -> float:
        ours, theirs = self.seconds
        return ours / theirs


def alternate(ours: Contestant, peer: Contestant | None, sources: list[int]) -> Pair:
    """A round per source; who goes first changes from round to round."""
    pair = Pair()
    for turn, source in enumerate(sources):
        both = [(ours, pair.ours)] + ([(peer, pair.theirs)] if peer else [])
        for contestant, seconds in both if turn % 2 == 0 else reversed(both):
            seconds.append(contestant.trial(source))
    return pair
