"""A campaign against damaged and forged stores: a run gives the right answer or one clear error; nothing else.

    python tests/faults/damage.py --stores 2000             2,000 damaged stores and 200 forged ones, some minutes
    python tests/faults/damage.py --stores 200              the slice that the tests run
    python tests/faults/damage.py --stores 2000 --seed 8    other damage
    python tests/faults/damage.py --stores 2000 --only 17   one store again, with what happened

Damaged stores have bits, bytes, bursts, blocks, sizes or whole files changed. Forged ones have right checksums, and
contents that cannot be: targets that are not vertices, offsets that descend, orders that are not permutations, weights
below zero that the manifest denies, ids that are not UTF-8, wrong counts. Each store is verified and then run twice, by
drawn algorithms and recipes, and once more without verification, where another answer after damage is allowed and a
crash is not. So are other answers to forgeries that describe another graph, or contradict themselves where only
`isthmus verify` looks. Every SHELL-th store is also run from the shell.

Runs happen in child processes, so that a crash is seen and belongs to one run. Exits with 1 if anything failed.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # where `tests` is, if this file is run by its path

from tests.faults.spoiling import ANOTHER, DAMAGE, LAYERS, SAME, Base, Copy, bases, forgeries

import isthmus as ist
from isthmus import sizes
from isthmus.errors import IsthmusError

LIMIT = 100.0  # seconds for a run; sound ones take well below a second, unless the machine is busy
SHELL = 100
FORGED = 10  # damaged stores for one forged store
SMALL = {
    "piece": 1000,
    "few_edges": 500,
    "smallest_partition": 4 << 10,
    "least_buffer": 64 << 10,
    "alone": 500,
    "smallest_queue": 64,
}
FAULTS = ("wrong", "missed", "crash", "traceback", "hang")
RIGHT, ALLOWED, REFUSED = "right", "allowed", "refused"
Tally = collections.Counter[str]


@dataclass(frozen=True)
class Job:
    """An algorithm with its options, and how to run it."""

    algorithm: str
    options: tuple[tuple[str, Any], ...]
    how: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        return " ".join([self.algorithm, *(f"{name}={value}" for name, value in self.options + self.how)])


SOURCE = "the store's source"
ALGORITHMS: list[tuple[str, dict[str, Any]]] = [
    ("bfs", {"source": SOURCE}),
    ("sssp", {"source": SOURCE}),
    ("pagerank", {"tol": 1e-9}),
    ("weakly_connected_components", {}),
    ("core_number", {}),
    ("triangle_count", {}),
    ("label_propagation", {"max_iter": 3}),
    ("strongly_connected_components", {}),
    ("minimum_spanning_forest", {}),
    ("betweenness_centrality", {"k": 3}),
    ("katz", {"alpha": 0.002, "tol": 1e-9}),
    ("circuit", {"fixed": SOURCE, "tol": 1e-9}),
    ("local_clustering_coefficient", {}),
    ("multi_source_bfs", {"sources": SOURCE}),
    ("personalized_pagerank", {"sources": SOURCE, "tol": 1e-9}),
    ("php", {"source": SOURCE, "tol": 1e-9}),
    ("widest_path", {"source": SOURCE}),
    ("nn_inference", {"inputs": 4}),
]
WEIGHTED = ("sssp", "minimum_spanning_forest", "widest_path")
HOWS: list[dict[str, Any]] = [
    {},
    *(
        {"policy": policy, "memory": "10%"}
        for policy in ("filter", "emogi", "subway", "unified", "hytgraph", "scaph", "grus", "auto")
    ),
    {"device": "model:rtx2080ti", "policy": "hytgraph", "memory": "10%"},
    {"far": "ram", "policy": "filter", "memory": "10%"},
]


def jobs() -> list[Job]:
    """Every algorithm resident and in two more ways, every way with several algorithms."""
    found = []
    for number, (algorithm, options) in enumerate(ALGORITHMS):
        for how in (0, 1 + number % 10, 1 + (number + 5) % 10):
            found.append(Job(algorithm, tuple(options.items()), tuple(HOWS[how].items())))
    return found


JOBS = jobs()
INPUTS = np.random.default_rng(1).random((4, LAYERS[0]))


def answer(path: Path, job: Job, source: Any, **more: Any) -> dict[str, Any]:
    """The columns of a result, with the ids. Every right run has the same."""
    places: dict[str, Any] = {"source": source, "sources": [source], "fixed": {source: 1.0}, "inputs": INPUTS}
    options = {name: places.get(name, value) for name, value in job.options}
    with ist.open(path) as graph:
        table = getattr(ist, job.algorithm)(graph, **options, **dict(job.how), **more).to_arrow()
    return {name: table[name].to_numpy() for name in table.column_names}


def agree(found: dict[str, Any], expected: dict[str, Any]) -> bool:
    """Equal, or nearly for numbers with rounding."""
    if found.keys() != expected.keys():
        return False
    for name, column in found.items():
        other = expected[name]
        if column.shape != other.shape or column.dtype != other.dtype:
            return False
        same = (
            np.allclose(column, other, 1e-5, 1e-9, equal_nan=True)
            if column.dtype.kind == "f"
            else np.array_equal(column, other)
        )
        if not same:
            return False
    return True


class Campaign:
    """The stores of a campaign, by number. Which store is spoiled how follows from the number alone."""

    def __init__(self, folder: Path, stores: int, forged: int, seed: int) -> None:
        self.folder, self.stores, self.total, self.seed = folder, stores, stores + forged, seed
        self.bases = bases(folder)
        for base in self.bases:
            for number, job in enumerate(JOBS):
                self._answer(base, number, job)

    def _answer(self, base: Base, number: int, job: Job) -> None:
        """The answer of the sound store; it also compiles what the job needs."""
        if (job.algorithm in WEIGHTED and not base.weighted) or (job.algorithm == "nn_inference" and not base.layered):
            return
        base.answers[number] = answer(base.path, job, base.source)

    def examine(self, number: int, say: Callable[..., None]) -> None:
        """Make a store and run it; says (what was done, outcome, details) before and after every run."""
        random = np.random.default_rng([self.seed, number])
        base = self.bases[number % len(self.bases)]
        path = self.folder / f"store-{number}.isthmus"
        try:
            say("spoiling", None, base.name)
            text, allowed = spoil(base, path, (number - self.stores) // len(self.bases), random)
            say("verify", None, text)
            say("verify", *verdict(path, allowed))
            for turn, job in enumerate(random.choice(sorted(base.answers), 3, replace=False).tolist()):
                more = {"verify": False} if turn == 2 else {}
                lenient = allowed != SAME or (turn == 2 and number < self.stores)
                words = f"{JOBS[job]}{' verify=False' if more else ''}"
                say(words, None, "")
                say(
                    words,
                    *outcome(
                        lambda job=job, more=more: answer(path, JOBS[job], base.source, **more),
                        base.answers[job],
                        lenient,
                    ),
                )  # type: ignore[misc]
            if number % SHELL == SHELL // 2:
                say("shell", None, "")
                say("shell", *by_shell(path, base, allowed))
        finally:
            shutil.rmtree(path, ignore_errors=True)


def spoil(base: Base, path: Path, forged: int, random: np.random.Generator) -> tuple[str, str]:
    """Make a damaged store, or a forged one if `forged`, its number among those of a base, is not negative; one kind
    after another.

    Returns what was done and what is allowed.
    """
    copy = Copy(base.path, path)
    if forged >= 0:
        kinds = list(forgeries(copy, random))
        forgery = kinds[forged % len(kinds)]
        forgery.change(copy)
        copy.seal()
        return f"{base.name}: forged {forgery.text}", forgery.allowed
    while True:
        kind = DAMAGE[int(random.integers(len(DAMAGE)))]
        text = kind(copy, base, random)
        if text is not None:
            return f"{base.name}: {text}", SAME


def verdict(path: Path, allowed: str) -> tuple[str, str]:
    """Whether `verify` finds what is wrong."""
    try:
        problems = ist.verify(path, threads=1).problems
    except IsthmusError as error:
        problems = [str(error)]
    except Exception:
        return "traceback", traceback.format_exc()
    if not problems and allowed != ANOTHER:
        return "missed", "verify found nothing"
    return REFUSED if problems else RIGHT, "; ".join(problems)


def outcome(run: Callable[[], dict[str, Any]], expected: dict[str, Any], lenient: bool) -> tuple[str, str]:
    try:
        found = run()
    except IsthmusError as error:
        text = str(error)
        return (REFUSED, text) if text and "\n" not in text else ("traceback", f"not one line: {text!r}")
    except Exception:
        return "traceback", traceback.format_exc()
    return judged(agree(found, expected), lenient)


def judged(same: bool, lenient: bool) -> tuple[str, str]:
    if same:
        return RIGHT, ""
    return ALLOWED if lenient else "wrong", "another answer than that of the sound store"


def by_shell(path: Path, base: Base, allowed: str) -> tuple[str, str]:
    output = path.with_suffix(".npy")
    command = [
        sys.executable,
        "-m",
        "isthmus.cli.main",
        "run",
        "bfs",
        path,
        str(base.source),
        "--memory",
        "10%",
        "-o",
        output,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    if done.returncode < 0:
        return "crash", f"signal {-done.returncode}"
    if "Traceback" in done.stderr:
        return "traceback", done.stderr
    if done.returncode:
        return (
            (REFUSED, done.stderr)
            if done.stderr.startswith("error: ")
            else ("traceback", f"no error message: {done.stderr!r}")
        )
    found = np.load(output)
    output.unlink()
    expected = next(found for number, found in base.answers.items() if JOBS[number].algorithm == "bfs")["distance"]
    return judged(np.array_equal(found, expected), allowed != SAME)


class Child:
    """A process that examines stores, one line of JSON before and after every run."""

    def __init__(self, campaign: Any, numbers: list[int]) -> None:
        self.campaign, self.numbers = campaign, numbers
        self._start()

    def _start(self) -> None:
        reader, writer = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reader)
            work(self.campaign, self.numbers, writer)
        os.close(writer)
        self.pipe, self.buffer, self.now, self.since = reader, b"", ("start", ""), time.monotonic()

    def read(self) -> Iterator[tuple[int, str, str, str]]:
        """(store, run, outcome, details) of runs that ended; starts another process after a crash."""
        data = os.read(self.pipe, 1 << 16)
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        for line in lines:
            what, result, details = json.loads(line)
            self.since = time.monotonic()
            if what == "done":
                self.numbers = self.numbers[1:]
            elif result is None:
                self.now = (what, details or self.now[1])
            else:
                yield self.numbers[0], f"{self.now[1]}: {what}", result, details
        if not data:
            os.close(self.pipe)
            _, status = os.waitpid(self.pid, 0)
            self.pid = 0
            if self.numbers:
                yield self._lost("crash", f"ended with status {status}")

    def stop_if_late(self) -> Iterator[tuple[int, str, str, str]]:
        if time.monotonic() - self.since > LIMIT:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            os.close(self.pipe)
            yield self._lost("hang", f"stopped after {LIMIT:.0f} s")

    def _lost(self, result: str, details: str) -> tuple[int, str, str, str]:
        found = (self.numbers[0], f"{self.now[1]}: {self.now[0]}", result, details)
        shutil.rmtree(self.campaign.folder / f"store-{self.numbers[0]}.isthmus", ignore_errors=True)
        self.numbers, self.pid = self.numbers[1:], 0
        if self.numbers:
            self._start()
        return found


def work(campaign: Any, numbers: list[int], pipe: int) -> None:
    """The child's life; never returns."""
    code = 1
    try:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 2)
        for number in numbers:
            campaign.examine(
                number,
                lambda *line: os.write(pipe, json.dumps(line if len(line) == 3 else (*line, "")).encode() + b"\n"),
            )
            os.write(pipe, b'["done", null, null]\n')
        code = 0
    finally:
        os._exit(code)


def run(
    stores: int,
    forged: int,
    children: int = 2,
    only: int | None = None,
    say: Callable[[str], None] = print,
    seed: int = 7,
) -> Tally:
    """Run a campaign; returns how often each outcome was seen. Every fault is told by `say`."""
    tally: Tally = collections.Counter()
    with tempfile.TemporaryDirectory(prefix="damage-") as folder, sizes.using(**SMALL):
        start = time.monotonic()
        campaign = Campaign(Path(folder), stores, forged, seed)
        answers = sum(len(base.answers) for base in campaign.bases)
        say(f"{len(campaign.bases)} sound stores and {answers} answers in {time.monotonic() - start:.1f} s")
        numbers = list(range(campaign.total)) if only is None else [only]
        for number, what, result, details in examined(campaign, numbers, children):
            tally[result] += 1
            if result in FAULTS or only is not None:
                say(f"store {number}: {what}: {result}: {details}")
        seconds = time.monotonic() - start
    say(
        f"{len(numbers)} stores in {seconds:.0f} s: "
        + ", ".join(f"{count} {name}" for name, count in tally.most_common())
    )
    return tally


def examined(campaign: Any, numbers: list[int], children: int) -> Iterator[tuple[int, str, str, str]]:
    """(store, run, outcome, details) of all runs, which happen in child processes."""
    working = [Child(campaign, numbers[k::children]) for k in range(min(children, len(numbers)))]
    while working := [child for child in working if child.pid]:
        ready, _, _ = select.select([child.pipe for child in working], [], [], 1.0)
        for child in working:
            yield from child.read() if child.pipe in ready else child.stop_if_late()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--stores", type=int, default=2000, help="damaged stores")
    parser.add_argument("--forged", type=int, help="forged stores; a tenth as many as damaged ones by default")
    parser.add_argument("--children", type=int, default=2, help="processes that run them")
    parser.add_argument("--only", type=int, help="the number of one store to look at")
    parser.add_argument("--seed", type=int, default=7, help="what to draw the damage by")
    given = parser.parse_args()
    forged = given.stores // FORGED if given.forged is None else given.forged
    tally = run(given.stores, forged, given.children, given.only, seed=given.seed)
    return int(any(tally[fault] for fault in FAULTS))


if __name__ == "__main__":
    sys.exit(main())
