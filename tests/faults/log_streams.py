"""Streams with a log for the campaign of `log.py`: scenarios, and what folders, graphs and answers must be after a
fault.
"""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import isthmus as ist
from isthmus.graph.locks.holder import Holder
from isthmus.stream.log import log_writer as logs
from isthmus.stream.log.logged import LOCK

BATCHES = 8
OPENED = 20  # times, at most, in one process
ENDED = ("a batch was stopped while it was applied", "an interrupt")  # a stream that Ctrl-C has ended
OURS = re.compile(r"stream\.json|(log|checkpoint)-\d{12}")


@dataclass
class Scenario:
    """A stream that applies its batches up to the last one. `begun`: how many a folder has at first; -1: there is none.

    `after`: what is done to the stream after every batch.
    """

    name: str
    begun: int = -1
    log_size: int | None = None
    segment: int = 64 << 20
    prepare: Callable[[Path], None] = lambda folder: None
    after: Callable[[Any], None] = lambda live: None
    on_disk: bool = False  # the edges stay in the checkpoint
    calls: int = 0
    by_name: dict[str, int] = field(default_factory=dict)  # system calls


def torn(folder: Path) -> None:
    """What a killed writer leaves: the beginning of a frame, and of a checkpoint, and its lock file."""
    last = sorted(folder.glob("log-*"))[-1]
    with last.open("ab") as file:
        file.write(last.read_bytes()[-60:-10])
    (folder / "writing-1-ab-cd" / "graph.isthmus").mkdir(parents=True)
    (folder / ".stream.json.1.tmp").write_text("{")
    killed = subprocess.Popen(["true"])
    killed.wait()
    (folder / LOCK).write_bytes(replace(Holder.this(folder.stat().st_dev), process=killed.pid).encode())


def merge_soon(live: Any) -> None:
    """The next batch begins a merge, in a thread of its own."""
    live.context.merger.due = 0


SCENARIOS = [
    Scenario("beginning"),
    Scenario("batches", 2),
    Scenario("checkpoints", 3, log_size=150),
    Scenario("a checkpoint after each batch", 4, after=lambda live: live.checkpoint()),
    Scenario("segments", 1, segment=300),
    Scenario("on disk", 3, log_size=150, on_disk=True),
    Scenario("a merge after each batch", 4, on_disk=True, after=lambda live: live.merge()),
    Scenario("merges beside batches", 2, log_size=400, on_disk=True, after=merge_soon),
    Scenario("recovery", 5, log_size=500, prepare=torn),
]


class Streams:
    """The graph, its batches, and what it must be after each of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.graph = ist.generate("rmat", scale=6, edge_factor=3, weights="1:9", seed=3, threads=1)
        draw = random.Random(5)
        self.batches = [
            {
                "inserts": [(draw.randrange(64), draw.randrange(80), draw.randrange(1, 9)) for _ in range(4)],
                "deletes": [(draw.randrange(64), draw.randrange(64)) for _ in range(4)],
                **({"remove_vertices": [60 + number]} if number % 3 == 2 else {}),
            }
            for number in range(BATCHES)
        ]
        for number, batch in enumerate(self.batches):  # a removed vertex is not used
            batch["inserts"] = [(u, v, w) for u, v, w in batch["inserts"] if 60 + number not in (u, v)]
            batch["deletes"] = [(u, v) for u, v in batch["deletes"] if 60 + number not in (u, v)]
        self.states, self.answers = [], []
        with self.opened(folder / "sound") as live:
            for number in range(BATCHES + 1):
                if number:
                    self.apply(live, number - 1)
                self.states.append(edges(live))
                self.answers.append(answer(live["sssp"]))

    def opened(self, folder: Path, **options: Any) -> Any:
        return ist.stream(self.graph, [ist.SSSP(source=0)], log=folder, threads=1, **options)

    def apply(self, live: Any, number: int) -> Any:
        return live.apply(**self.batches[number], id=f"batch {number}")

    def template(self, scenario: Scenario) -> Path:
        """A folder as the scenario finds it."""
        path = self.folder / f"template-{scenario.name}"
        if not path.exists():
            with self.opened(path, log_size=scenario.log_size) as live, sized(scenario):
                for number in range(scenario.begun):
                    self.apply(live, number)
            scenario.prepare(path)
        return path

    def work(self, folder: Path, scenario: Scenario, tell: Callable[[int], None]) -> None:
        """Apply all batches that are left; one that was refused is tried again, as a client would."""
        refused, held = 0, list[Any]()
        with sized(scenario), self.opened(folder, log_size=scenario.log_size, on_disk=scenario.on_disk) as live:
            tell(live.number)
            while live.number < BATCHES:
                held.append(live["sssp"])
                try:
                    tell(self.apply(live, live.number).number)
                    scenario.after(live)
                except KeyboardInterrupt:
                    self.check(held, live)
                except ist.StoreError as error:
                    refused += 1
                    if refused > 2 or "the batch was not applied" not in str(error):
                        raise
            self.check(held, live)

    def check(self, held: list[Any], live: Any) -> None:
        """Whatever happened, results are those of their batches."""
        for result in [*held, live["sssp"]]:
            if answer(result) != self.answers[result.number]:
                raise AssertionError(f"the result of batch {result.number} has changed: {answer(result)}")

    def persevere(self, folder: Path, scenario: Scenario, tell: Callable[[int], None]) -> None:
        """The same, in a process that goes on after Ctrl-C: with another stream if the first takes no more batches.

        strace sends Ctrl-C to every thread that makes so many calls, so it may come again and again.
        """
        for _ in range(OPENED):
            try:
                self.work(folder, scenario, tell)
                return
            except KeyboardInterrupt:  # while it was opened, or closed
                pass
            except ist.IsthmusError as error:
                if not any(words in str(error) for words in ENDED):
                    raise

    def problems(self, folder: Path, acknowledged: int) -> Iterator[str]:
        """What is wrong with a folder after a fault."""
        with self.opened(folder) as live:
            if not acknowledged <= live.number <= BATCHES:
                yield f"batch {acknowledged} was acknowledged, and the stream is at batch {live.number}"
            elif edges(live) != self.states[live.number]:
                yield f"another graph than that of batch {live.number}"
            elif live.check():
                yield f"wrong answers: {live.check()}"
            for number in range(BATCHES):
                self.apply(live, number)  # those that were applied are repeated, which must do nothing
            if live.number != BATCHES or edges(live) != self.states[-1] or live.check():
                yield "the end is not that of a stream without faults"
        left = [entry.name for entry in folder.iterdir() if not OURS.fullmatch(entry.name)]
        if left or len(list(folder.glob("checkpoint-*"))) > 2:
            yield f"left in the folder: {left}"


class sized:  # noqa: N801  # used as a function
    """Segments of the scenario's size, for the time of a block."""

    def __init__(self, scenario: Scenario) -> None:
        self._size = scenario.segment

    def __enter__(self) -> None:
        self._before, logs.SEGMENT = logs.SEGMENT, self._size

    def __exit__(self, *details: object) -> None:
        logs.SEGMENT = self._before


def edges(live: Any) -> set[tuple[Any, ...]]:
    graph, users = live.graph, live.graph.ids.users(range(live.graph.vertices)).tolist()
    return {(u, v, int(graph.edge_weights(u, v)[0])) for u in users for v in graph.neighbors(u).tolist()} | {
        (u,) for u in users
    }


def answer(result: Any) -> list[tuple[Any, Any]]:
    return list(zip(result.vertices.tolist(), result.filled().tolist(), strict=True))
