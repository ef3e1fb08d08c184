"""Faults of streams with a log: kills and errors at every call that touches files, in the beginning, batches, checkpoints and recovery.

    python -m tests.faults.log --points 2000
    python -m tests.faults.log --points 400 --system     # by strace, at real system calls, reads and writes of libraries among them

A point is a scenario, the number of one of its calls, and a fault: the call fails, it and all later ones fail, the process is killed
before it, or in the middle of it, or gets Ctrl-C there. Or the process is killed after some time. Afterwards the folder is opened again,
without faults. Every batch that was acknowledged must be there, the graph must be that after the last batch, and answers must be those of
a run from scratch; the rest of the batches must lead to the graph of a stream without faults; and nothing must be left that does not
belong there.

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
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import isthmus as ist
from isthmus.stream import log as logs

BATCHES = 8
CALLS = ("open", "pwrite", "preadv", "fsync", "fdatasync", "rename", "replace", "mkdir", "unlink", "rmdir", "ftruncate", "listdir")
KINDS = ("once", "persistent", "killed", "torn", "later", "interrupted")
ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT)
SYSTEM = (
    "pwrite64,write,fsync,fdatasync,openat,rename,renameat2,mkdir,unlink,unlinkat,rmdir,ftruncate,preadv,pread64,read,lseek,newfstatat,flock"
)
PATIENCE = 30.0  # seconds until a stream counts as hanging
OURS = re.compile(r"stream\.json|(log|checkpoint)-\d{12}")
FACTS = struct.Struct("<qqq")  # the last acknowledged batch, how the stream ended, its calls
DONE, REFUSED, BROKEN, INTERRUPTED = 1, 2, 3, 4


@dataclass
class Scenario:
    """A stream that applies its batches up to the last one. `begun`: how many a folder has at first; -1: there is none."""

    name: str
    begun: int = -1
    log_size: int | None = None
    segment: int = 64 << 20
    prepare: Callable[[Path], None] = lambda folder: None
    calls: int = 0


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
    Scenario("segments", 1, segment=300),
    Scenario("recovery", 5, log_size=500, prepare=torn),
]


@dataclass
class Fault:
    """What happens at the call of this number; none at a negative one. `later`: killed after so many milliseconds."""

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
        self.states = []
        with self.opened(folder / "sound") as live:
            self.states.append(edges(live))
            for number in range(BATCHES):
                self.apply(live, number)
                self.states.append(edges(live))

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
        refused = 0
        with sized(scenario), self.opened(folder, log_size=scenario.log_size) as live:
            tell(live.number)
            while live.number < BATCHES:
                try:
                    tell(self.apply(live, live.number).number)
                except ist.StoreError as error:
                    refused += 1
                    if refused > 2 or "the batch was not applied" not in str(error):
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
            if calls == fault.at or (0 <= fault.at < calls and fault.kind == "persistent"):
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


def forked(streams: Streams, scenario: Scenario, folder: Path, fault: Fault, system: bool) -> tuple[Shared, str, bool]:
    """Run a scenario in a fork: what it told, what it said, and whether it hung."""
    shared, ready = Shared(), os.pipe()
    child = os.fork()
    if child == 0:
        os.read(ready[0], 1)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
        try:
            if not system:
                inject(fault, lambda calls: shared.tell(calls=calls))
            streams.work(folder, scenario, lambda number: shared.tell(acknowledged=number))
            shared.tell(end=DONE)
        except ist.IsthmusError as error:
            shared.say(str(error))
            shared.tell(end=REFUSED)
        except KeyboardInterrupt:
            shared.tell(end=INTERRUPTED if fault.kind == "interrupted" else BROKEN)
        except BaseException:
            shared.say(traceback.format_exc())
            shared.tell(end=BROKEN)
        finally:
            os.kill(os.getpid(), signal.SIGKILL)  # as nothing else ends a process whose calls all fail
    tracer = traced(child, fault) if system else None
    os.write(ready[1], b"x")
    os.close(ready[0])
    os.close(ready[1])
    hung = not ended(child, fault.at / 1000 if fault.kind == "later" else PATIENCE) and fault.kind != "later"
    if tracer is not None:
        tracer.wait()
    return shared, shared.read(), hung


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


def traced(child: int, fault: Fault) -> subprocess.Popen[bytes]:
    """Attach strace, which makes a system call fail or kills the process there."""
    what = {"killed": "signal=KILL", "interrupted": "signal=INT"}.get(fault.kind, f"error={errno.errorcode[fault.error]}")
    when = f"{fault.at}+" if fault.kind == "persistent" else str(fault.at)
    command = ["strace", "-f", "-o", "/dev/null", "-e", f"trace={SYSTEM}", "-e", f"inject={SYSTEM}:{what}:when={when}", "-p", str(child)]
    tracer = subprocess.Popen(command, stderr=subprocess.PIPE)
    assert tracer.stderr is not None and b"attached" in tracer.stderr.readline()
    return tracer


def examined(streams: Streams, scenario: Scenario, fault: Fault, folder: Path, system: bool = False) -> tuple[str, list[str]]:
    """How a stream ended at a point, and what was wrong."""
    if scenario.begun >= 0:
        shutil.copytree(streams.template(scenario), folder)
    shared, said, hung = forked(streams, scenario, folder, fault, system)
    found = [f"a traceback: {said}"] if shared.end == BROKEN else ["it hung"] if hung else []
    try:
        found += streams.problems(folder, shared.acknowledged)
    except Exception:
        found.append(f"it cannot be opened again: {traceback.format_exc()}")
    shutil.rmtree(folder, ignore_errors=True)
    return {DONE: "done", REFUSED: "refused", BROKEN: "broken", INTERRUPTED: "interrupted"}.get(shared.end, "killed"), found


def points(known: list[Scenario], count: int, seed: int, system: bool) -> Iterator[tuple[Scenario, Fault]]:
    """Every call in turn, and every fault at it, in equal numbers for every scenario; when all are done, again with other errors."""
    draw = random.Random(seed)
    kinds = [kind for kind in KINDS if not system or kind not in ("torn", "later")]
    orders = {each.name: [(at, kind) for at in range(1, each.calls + 1) for kind in kinds] for each in known}
    for order in orders.values():
        draw.shuffle(order)
    for number in range(count):
        scenario = known[number % len(known)]
        order = orders[scenario.name]
        at, kind = order[number // len(known) % len(order)]
        yield scenario, Fault(at if kind != "later" else draw.randint(1, 150), kind, draw.choice(ERRORS))


def campaign(count: int, seed: int, folder: Path, system: bool = False) -> tuple[list[str], collections.Counter[str]]:
    """All problems that were found at `count` points, and how often streams ended in each way."""
    warnings.simplefilter("ignore", ist.IsthmusWarning)
    streams = Streams(folder)
    for scenario in SCENARIOS:
        if scenario.begun >= 0:
            shutil.copytree(streams.template(scenario), folder / "here")
        streams.work(folder / "here", scenario, lambda number: None)  # in this process: what it compiles, forks need not
        assert not list(streams.problems(folder / "here", BATCHES)), scenario
        shutil.rmtree(folder / "here")
        shared, said, _ = rehearsed(streams, scenario, folder / "point")
        assert shared.end == DONE, (scenario, said)
        scenario.calls = 2 * shared.calls if system else shared.calls
    print(", ".join(f"{each.name} {each.calls} calls" for each in SCENARIOS), file=sys.stderr)
    found, ends = list[str](), collections.Counter[str]()
    for number, (scenario, fault) in enumerate(points(SCENARIOS, count, seed, system), 1):
        end, fresh = examined(streams, scenario, fault, folder / "point", system)
        ends[end] += 1
        for problem in fresh:
            found.append(problem)
            print(f"point {number}: {scenario.name}, {fault}: {problem}", flush=True)
        if number % 100 == 0:
            print(f"{number} points, {len(found)} problems so far", file=sys.stderr, flush=True)
    return found, ends


def rehearsed(streams: Streams, scenario: Scenario, folder: Path) -> tuple[Shared, str, bool]:
    """Run a scenario without a fault."""
    if scenario.begun >= 0:
        shutil.copytree(streams.template(scenario), folder)
    outcome = forked(streams, scenario, folder, Fault(-1), False)
    shutil.rmtree(folder)
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--system", action="store_true", help="faults at system calls, by strace")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found, ends = campaign(given.points, given.seed, Path(folder), given.system)
    print(f"{given.points} points, {len(found)} problems; " + ", ".join(f"{count} {end}" for end, count in ends.most_common()))
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
