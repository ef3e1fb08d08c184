"""Faults of streams with a log: kills and errors at every call that touches files, in the beginning, batches, checkpoints and recovery.

    python -m tests.faults.log --points 2000
    python -m tests.faults.log --system                  # every system call in turn, by strace: reads, and writes of libraries, among them
    python -m tests.faults.log --system --points 400

A point is a scenario, the number of one of its calls, and a fault: the call fails, it and all later ones fail, the process is killed
before it, or in the middle of it, or gets Ctrl-C there. Or the process is killed, or gets Ctrl-C, after some time. Afterwards the folder
is opened again, without faults. Every batch that was acknowledged must be there, the graph must be that after the last batch, and answers
must be those of a run from scratch; the rest of the batches must lead to the graph of a stream without faults; and nothing must be left
that does not belong there.

After Ctrl-C the same process goes on: with the same stream while it takes batches, and else with one that it opens again. Results of all
batches must be what they were.

Every stream runs in a fork of this process, which has loaded and compiled everything already. It reports through shared memory.
"""

from __future__ import annotations

import argparse
import collections
import errno
import mmap
import os
import random
import re
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.tracing import Strike, Tracer, counted, strikes

import isthmus as ist
from isthmus.stream import log as logs

BATCHES = 8
CALLS = ("open", "pwrite", "preadv", "fsync", "fdatasync", "rename", "replace", "mkdir", "unlink", "rmdir", "ftruncate", "listdir")
KINDS = ("once", "persistent", "killed", "torn", "later", "interrupted", "moment")
INTERRUPTS = ("interrupted", "moment", "SIGINT")
ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT)
PATIENCE = 90.0  # seconds until a stream counts as hanging
ENDED = ("a batch was stopped while it was applied", "was interrupted")  # a stream that Ctrl-C has ended
OURS = re.compile(r"stream\.json|(log|checkpoint)-\d{12}")
FACTS = struct.Struct("<qqq")  # the last acknowledged batch, how the stream ended, its calls
DONE, REFUSED, BROKEN = 1, 2, 3


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
    """What a killed writer leaves: the beginning of a frame, and of a checkpoint."""
    last = sorted(folder.glob("log-*"))[-1]
    with last.open("ab") as file:
        file.write(last.read_bytes()[-60:-10])
    (folder / "writing" / "graph.isthmus").mkdir(parents=True)
    (folder / ".stream.json.1.tmp").write_text("{")


SCENARIOS = [
    Scenario("beginning"),
    Scenario("batches", 2),
    Scenario("checkpoints", 3, log_size=150),
    Scenario("a checkpoint after each batch", 4, after=lambda live: live.checkpoint()),
    Scenario("segments", 1, segment=300),
    Scenario("on disk", 3, log_size=150, on_disk=True),
    Scenario("a merge after each batch", 4, on_disk=True, after=lambda live: live.merge()),
    Scenario("recovery", 5, log_size=500, prepare=torn),
]


@dataclass
class Fault:
    """What happens at the call of this number; none at a negative one. `later`, `moment`: killed, or Ctrl-C, after so many milliseconds."""

    at: int
    kind: str = "once"
    error: int = errno.EIO


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
        ]  # fmt: skip
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
        """The same, in a process that goes on after Ctrl-C: with another stream if the first takes no more batches."""
        while True:
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
    return {(u, v, int(graph.edge_weights(u, v)[0])) for u in users for v in graph.neighbors(u).tolist()} | {(u,) for u in users}


def answer(result: Any) -> list[tuple[Any, Any]]:
    return list(zip(result.vertices.tolist(), result.filled().tolist(), strict=True))


def inject(fault: Fault, count: Callable[[int], None]) -> None:
    """Replace the calls of this process; tell their number."""
    calls = 0

    def wrapped(name: str, really: Any) -> Any:
        def call(*args: Any, **more: Any) -> Any:
            nonlocal calls
            calls += 1
            count(calls)
            if calls == fault.at and fault.kind in ("killed", "torn"):
                if fault.kind == "torn" and name == "pwrite":
                    really(args[0], bytes(args[1])[: len(args[1]) // 2], args[2])
                elif fault.kind == "torn":
                    really(*args, **more)
                os.kill(os.getpid(), signal.SIGKILL)
            elif calls == fault.at and fault.kind == "interrupted":
                os.kill(os.getpid(), signal.SIGINT)
                return really(*args, **more)
            elif (calls == fault.at and fault.kind == "once") or (0 <= fault.at <= calls and fault.kind == "persistent"):
                raise OSError(fault.error, os.strerror(fault.error))
            return really(*args, **more)

        return call

    for name in CALLS:
        setattr(os, name, wrapped(name, getattr(os, name)))


class Shared:
    """What a fork tells of itself: numbers and a text, in memory that both processes see."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 1 << 16)
        self.acknowledged = self.end = self.calls = 0

    def tell(self, **facts: int) -> None:
        for name, value in facts.items():
            setattr(self, name, value)
        FACTS.pack_into(self._memory, 0, self.acknowledged, self.end, self.calls)

    def say(self, text: str) -> None:
        data = text.encode()[-60_000:]
        self._memory[FACTS.size : FACTS.size + len(data)] = data

    def read(self) -> str:
        self.acknowledged, self.end, self.calls = FACTS.unpack_from(self._memory)
        return bytes(self._memory[FACTS.size :]).rstrip(b"\0").decode(errors="replace")


def forked(streams: Streams, scenario: Scenario, folder: Path, fault: Fault | Tracer, kind: str) -> tuple[Shared, str, bool]:
    """Run a scenario in a fork: what it told, what it said, and whether it hung."""
    shared = Shared()
    child = os.fork()
    if child == 0:
        live_in_fork(streams, scenario, folder, fault, kind, shared)
    if isinstance(fault, Tracer):
        fault.attach(child)
    hung = not ended(child, fault.at / 1000 if isinstance(fault, Fault) and kind == "later" else PATIENCE) and kind != "later"
    if isinstance(fault, Tracer):
        fault.end()
    return shared, shared.read(), hung


def live_in_fork(streams: Streams, scenario: Scenario, folder: Path, fault: Fault | Tracer, kind: str, shared: Shared) -> None:
    """In the fork: run the scenario, and tell how it ended."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    work = streams.persevere if kind in INTERRUPTS else streams.work
    try:
        if isinstance(fault, Tracer):
            fault.begin()
        else:
            inject(fault, lambda calls: shared.tell(calls=calls))
            signal.setitimer(signal.ITIMER_REAL, fault.at / 1000 if kind == "moment" else 0)
        work(folder, scenario, lambda number: shared.tell(acknowledged=number))
        signal.setitimer(signal.ITIMER_REAL, 0)
        shared.tell(end=DONE)
    except ist.IsthmusError as error:
        shared.say(str(error))
        shared.tell(end=REFUSED)
    except BaseException:
        shared.say(traceback.format_exc())
        shared.tell(end=BROKEN)
    finally:
        os.kill(os.getpid(), signal.SIGKILL)  # as nothing else ends a process whose calls all fail


def ended(child: int, patience: float) -> bool:
    """Whether a process ended in time; it is killed otherwise. Time in which this process was stopped does not count."""
    waited, last = 0.0, time.monotonic()
    while waited < patience:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(0.001)
        now = time.monotonic()
        waited, last = waited + min(now - last, 0.1), now
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def examined(streams: Streams, scenario: Scenario, fault: Fault | Strike, folder: Path) -> tuple[str, list[str]]:
    """How a stream ended at a point, and what was wrong."""
    if scenario.begun >= 0:
        shutil.copytree(streams.template(scenario), folder)
    shared, said, hung = forked(streams, scenario, folder, Tracer(fault) if isinstance(fault, Strike) else fault, fault.kind)
    found = [f"a traceback: {said}"] if shared.end == BROKEN else ["it hung"] if hung else []
    if fault.kind in INTERRUPTS and shared.end == REFUSED:
        found.append(f"it did not go on: {said}")
    try:
        found += streams.problems(folder, shared.acknowledged)
    except Exception:
        found.append(f"it cannot be opened again: {traceback.format_exc()}")
    shutil.rmtree(folder, ignore_errors=True)
    return {DONE: "done", REFUSED: "refused", BROKEN: "broken"}.get(shared.end, "killed"), found


def points(known: list[Scenario], count: int, seed: int) -> Iterator[tuple[Scenario, Fault]]:
    """Every call in turn, and every fault at it, in equal numbers for every scenario; when all are done, again with other errors."""
    draw = random.Random(seed)
    orders = {each.name: [(at, kind) for at in range(1, each.calls + 1) for kind in KINDS] for each in known}
    for order in orders.values():
        draw.shuffle(order)
    for number in range(count):
        scenario = known[number % len(known)]
        order = orders[scenario.name]
        at, kind = order[number // len(known) % len(order)]
        yield scenario, Fault(at if kind not in ("later", "moment") else draw.randint(1, 150), kind, draw.choice(ERRORS))


def system_points(known: list[Scenario], count: int | None, seed: int) -> Iterator[tuple[Scenario, Strike]]:
    """Every fault at every system call, or some of them, drawn at random."""
    every = [(scenario, strike) for scenario in known for strike in strikes(scenario.by_name, ("killed", "SIGINT"))]
    yield from every if count is None else random.Random(seed).sample(every, min(count, len(every)))


def campaign(
    count: int | None, seed: int, folder: Path, system: bool = False, only: list[str] | None = None
) -> tuple[list[str], collections.Counter[str]]:
    """All problems that were found at `count` points (all system calls without one), and how often streams ended in each way."""
    warnings.simplefilter("ignore", ist.IsthmusWarning)
    streams, known = Streams(folder), [each for each in SCENARIOS if only is None or each.name in only]
    for scenario in known:
        if scenario.begun >= 0:
            shutil.copytree(streams.template(scenario), folder / "here")
        streams.work(folder / "here", scenario, lambda number: None)  # in this process: what it compiles, forks need not
        assert not list(streams.problems(folder / "here", BATCHES)), scenario
        shutil.rmtree(folder / "here")
        scenario.calls = rehearsed(streams, scenario, folder / "point", Fault(-1)).calls
        if system:
            rehearsed(streams, scenario, folder / "point", Tracer(None, folder / "notes"))
            scenario.by_name = counted(folder / "notes")
    print(", ".join(f"{each.name} {sum(each.by_name.values()) or each.calls} calls" for each in known), file=sys.stderr, flush=True)
    found, ends = list[str](), collections.Counter[str]()
    chosen = system_points(known, count, seed) if system else points(known, count or 500, seed)
    for number, (scenario, fault) in enumerate(chosen, 1):
        end, fresh = examined(streams, scenario, fault, folder / "point")
        ends[f"{end} after Ctrl-C" if fault.kind in INTERRUPTS else end] += 1
        for problem in fresh:
            found.append(problem)
            print(f"point {number}: {scenario.name}, {fault}: {problem}", flush=True)
        if number % 100 == 0:
            print(f"{number} points, {len(found)} problems so far", file=sys.stderr, flush=True)
    return found, ends


def rehearsed(streams: Streams, scenario: Scenario, folder: Path, fault: Fault | Tracer) -> Shared:
    """Run a scenario without a fault."""
    if scenario.begun >= 0:
        shutil.copytree(streams.template(scenario), folder)
    shared, said, _ = forked(streams, scenario, folder, fault, "")
    assert shared.end == DONE, (scenario, said)
    shutil.rmtree(folder)
    return shared


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, help="how many (500; with --system, all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--system", action="store_true", help="faults at system calls, by strace")
    parser.add_argument("--only", action="append", metavar="NAME", help="a scenario")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found, ends = campaign(given.points, given.seed, Path(folder), given.system, given.only)
    print(f"{ends.total()} points, {len(found)} problems; " + ", ".join(f"{count} {end}" for end, count in ends.most_common()))
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
