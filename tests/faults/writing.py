"""Faults while writing: errors and signals injected into the system calls of commands, one point after another.

    python -m tests.faults.writing --points 500 python -m tests.faults.writing --system              # every system call
    in turn, by strace: reads, and writes of libraries, among them python -m tests.faults.writing --system --points 200

A point is a command, the number of one of its system calls that change files, and a fault: that call fails, it and all
later ones fail, or a signal arrives at it; with strace, the command may also be killed there. After each point the
store or result must be the old one or the new one, whole, as the exit code says; the command must have ended in time,
without a traceback; and after the next command nothing else is left.

Every command runs in a fork of this process, which has loaded and compiled everything already.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.tracing import Strike, Tracer, counted, strikes

CALLS = ("open", "pwrite", "fsync", "rename", "replace", "mkdir", "unlink", "rmdir", "ftruncate")
FAULTS = ("once", "persistent", "SIGINT", "SIGTERM")
ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT)
IN_PLACE = "the new contents are there"  # said if a rename can neither be synced nor undone, as all calls fail
MAY_BE_DONE = (0, 130, 143, -signal.SIGKILL)  # exit codes: a signal may come after the end of the work
READS = ("read", "pread64", "preadv", "newfstatat", "fstat", "statx", "getdents64", "lseek", "openat")
PATIENCE = 60.0  # seconds until a command counts as hanging
SOON = 1.5  # seconds for a command to end after a signal; 1 s of its own, the rest for a busy machine


@dataclass
class Scenario:
    """A command that writes `target` in a folder that `prepare` made. `stays`: names in the folder after the next
    command.
    """

    name: str
    command: list[str]
    target: str
    stays: set[str]
    prepare: Callable[[Path], None] = lambda folder: None
    calls: int = 0
    by_name: dict[str, int] = field(default_factory=dict)  # system calls
    new: dict[str, bytes] = field(default_factory=dict, repr=False)


def scenarios() -> list[Scenario]:
    import isthmus as ist

    def store(folder: Path) -> None:
        ist.generate("path", folder / "g.isthmus", vertices=50, threads=1).close()

    def numbers(folder: Path) -> None:
        (folder / "e.txt").write_text("".join(f"{i} {i * 7 % 300} {i % 9}\n" for i in range(300)))

    def names(folder: Path) -> None:
        (folder / "e.txt").write_text("".join(f"v{i} v{i * 7 % 300}\n" for i in range(300)))

    tail = ["--threads", "1"]
    make = ["generate", "rmat", "--scale", "6", "-o", "g.isthmus", *tail]
    run = ["run", "weakly_connected_components", "g.isthmus", *tail]
    kept = ["--checkpoint", "c", "--checkpoint-every", "0", "--memory", "10%", "--policy", "filter"]
    return [
        Scenario("a new store", make, "g.isthmus", {"g.isthmus"}),
        Scenario("a store replaced", [*make, "--overwrite"], "g.isthmus", {"g.isthmus"}, store),
        Scenario("hub order", [*make, "--overwrite", "--order", "hub"], "g.isthmus", {"g.isthmus"}, store),
        Scenario("little memory", [*make, "--overwrite", "--memory", "100kB"], "g.isthmus", {"g.isthmus"}, store),
        Scenario(
            "integers",
            ["ingest", "e.txt", "--weight", "3", "-o", "g.isthmus", *tail],
            "g.isthmus",
            {"g.isthmus", "e.txt"},
            numbers,
        ),
        Scenario(
            "string ids", ["ingest", "e.txt", "-o", "g.isthmus", *tail], "g.isthmus", {"g.isthmus", "e.txt"}, names
        ),
        *(
            Scenario(f"a result as {kind}", [*run, "-o", f"r.{kind}"], f"r.{kind}", {"g.isthmus", f"r.{kind}"}, store)
            for kind in ("parquet", "csv", "npy")
        ),
        Scenario(
            "checkpoints",
            ["run", "bfs", "g.isthmus", "--source", "0", *tail, *kept, "-o", "r.npy"],
            "r.npy",
            {"g.isthmus", "r.npy"},
            store,
        ),
    ]


@dataclass
class Fault:
    """What happens at the system call of this number; none at a negative one."""

    at: int
    kind: str = "once"
    error: int = errno.ENOSPC


def inject(fault: Fault, counter: Path) -> None:
    """Replace the calls; at the end of the process their number is in the file `counter`."""
    count = 0
    really = {name: getattr(os, name) for name in CALLS}

    def wrapped(name: str) -> Any:
        def call(*args: Any, **more: Any) -> Any:
            nonlocal count
            if name == "open" and not args[1] & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
                return really[name](*args, **more)
            count += 1
            if count == fault.at and fault.kind.startswith("SIG"):
                counter.with_name("sent").write_text(str(time.monotonic()))
                os.kill(os.getpid(), getattr(signal, fault.kind))
            elif count == fault.at or (0 <= fault.at < count and fault.kind == "persistent"):
                raise OSError(fault.error, os.strerror(fault.error))
            return really[name](*args, **more)

        return call

    for name in CALLS:
        setattr(os, name, wrapped(name))
    leave = os._exit

    def noting(code: int) -> None:
        for name in CALLS:
            setattr(os, name, really[name])
        counter.write_text(str(count))
        leave(code)

    os._exit = noting  # type: ignore[assignment]


def execute(
    scenario: Scenario, folder: Path, fault: Fault | Tracer, patience: float = PATIENCE
) -> tuple[int, str, int, float]:
    """Run the command in a fork: its exit code (-1: it hung), what it printed, its number of calls, its seconds after a
    signal.
    """
    printed, counter, sent = (folder.parent / name for name in ("printed", "count", "sent"))
    counter.unlink(missing_ok=True)
    sent.unlink(missing_ok=True)
    # Here: the tracer may strike as soon as there is a child.
    out = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        become(scenario, folder, fault, out, counter)
    os.close(out)
    if isinstance(fault, Tracer):
        fault.attach(child)
    code = ended(child, start + patience)
    if isinstance(fault, Tracer):
        fault.end()
    calls = int(counter.read_text()) if counter.exists() else 0
    late = time.monotonic() - float(sent.read_text()) if sent.exists() else 0.0
    return code, printed.read_text(errors="replace"), calls, late


def ended(child: int, until: float) -> int:
    """The exit code of a process; -1: it did not end in time, and was killed."""
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


def become(scenario: Scenario, folder: Path, fault: Fault | Tracer, out: int, counter: Path) -> None:
    """In a fork: become the command, as a fresh process would run it. It never returns."""
    code = 1
    try:
        from isthmus.cli.main import main

        os.dup2(out, 1)
        os.dup2(out, 2)
        os.chdir(folder)
        sys.argv = ["isthmus", *scenario.command]
        if isinstance(fault, Tracer):
            fault.begin()
        else:
            inject(fault, counter)
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
            if isinstance(fault, Fault) and fault.at < 0:
                (folder.parent / "modules").write_text("\n".join(sys.modules))
        os._exit(code)


def contents(path: Path) -> dict[str, bytes]:
    """The files of a store, or a result; nothing if there is none."""
    if path.is_dir():
        return {file.name: file.read_bytes() for file in path.iterdir()}
    return {"": path.read_bytes()} if path.exists() else {}


def rehearse(scenario: Scenario, folder: Path) -> None:
    """Run the command without a fault: how many calls it makes, and what it writes."""
    scenario.prepare(folder)
    code, printed, scenario.calls, _ = execute(scenario, folder, Fault(-1), 10 * PATIENCE)  # it may have to compile
    assert code == 0, (scenario, printed)
    for name in (folder.parent / "modules").read_text().split():  # what it imported, later ones find loaded
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    scenario.new = contents(folder / scenario.target)
    assert scenario.new and scenario.calls, scenario


def count_system_calls(scenario: Scenario, folder: Path) -> None:
    """Run the command once more, and let strace count."""
    scenario.prepare(folder)
    notes = folder.parent / "notes"
    code, printed, _, _ = execute(scenario, folder, Tracer(None, notes))
    assert code == 0, (scenario, printed)
    scenario.by_name = counted(notes)


def examined(
    scenario: Scenario,
    fault: Fault | Strike,
    folder: Path,
    before: Callable[[], None] = lambda: None,
    after: Callable[[], None] = lambda: None,
) -> tuple[int, list[str]]:
    """The exit code of a command, and what was wrong. `before` and `after` are called just before it, and just before
    the next command.
    """
    scenario.prepare(folder)
    before()
    target = folder / scenario.target
    old = contents(target)
    code, printed, _, seconds = execute(scenario, folder, Tracer(fault) if isinstance(fault, Strike) else fault)
    after()
    found, ended_with = [], code
    if code == -1:
        return code, ["it hung"]
    if "Traceback" in printed:
        found.append(f"a traceback: {printed[-300:]}")
    if seconds > SOON:
        found.append(f"it took {seconds:.2f} s to end")
    now = contents(target)
    if now not in (old, scenario.new):
        found.append("neither the old contents nor the new ones")
    elif now == old and code == 0:
        found.append("success, and nothing was written")
    elif now == scenario.new and code not in MAY_BE_DONE and not told(fault, printed):
        found.append(f"exit code {code}, and the new contents are in place: {printed}")
    code, printed, _, _ = execute(again(scenario), folder, Fault(-1))
    if code:
        found.append(f"the next command failed: {printed}")
    left = {entry.name for entry in folder.iterdir()} - scenario.stays
    if left:
        found.append(f"left after the next command: {sorted(left)}")
    if contents(target) != scenario.new:
        found.append("the next command wrote something else")
    return ended_with, found


def told(fault: Fault | Strike, printed: str) -> bool:
    """Whether the command said that it cannot take away the new contents again, which it can after a single fault.

    Or that all was done, and its summary could not be printed, or the new store not be read for it.
    """
    if isinstance(fault, Strike):
        return fault.call in READS or "error: input or output: " in printed
    return fault.kind == "persistent" and IN_PLACE in printed


def again(scenario: Scenario) -> Scenario:
    """The same command, which may also find its work done."""
    more = ["--overwrite"] if scenario.target.endswith(".isthmus") and "--overwrite" not in scenario.command else []
    return Scenario(scenario.name, [*scenario.command, *more], scenario.target, scenario.stays)


def points(known: list[Scenario], count: int, seed: int) -> list[tuple[Scenario, Fault | Strike]]:
    """Points drawn at random, in equal numbers for every scenario and fault."""
    chance = random.Random(seed)
    drawn: list[tuple[Scenario, Fault | Strike]] = []
    for k in range(count):
        scenario = known[k % len(known)]
        kind = FAULTS[k // len(known) % len(FAULTS)]
        drawn.append((scenario, Fault(chance.randint(1, scenario.calls), kind, chance.choice(ERRORS))))
    return drawn


def system_points(known: list[Scenario], count: int | None, seed: int) -> list[tuple[Scenario, Fault | Strike]]:
    """Every fault at every system call, or some of them, drawn at random."""
    every: list[tuple[Scenario, Fault | Strike]] = [
        (scenario, strike) for scenario in known for strike in strikes(scenario.by_name)
    ]
    return every if count is None else random.Random(seed).sample(every, min(count, len(every)))


def campaign(
    count: int | None, seed: int, folder: Path, system: bool = False, only: list[str] | None = None
) -> tuple[int, list[str]]:
    """How many points were tried, and all problems that were found."""
    known = [scenario for scenario in scenarios() if only is None or scenario.name in only]
    for scenario in known:  # the first command compiles, which another fork does not know of
        for _ in range(2):
            with EmptyFolder(folder) as inside:
                rehearse(scenario, inside)
        if system:
            with EmptyFolder(folder) as inside:
                count_system_calls(scenario, inside)
    chosen = system_points(known, count, seed) if system else points(known, count or 500, seed)
    print(
        ", ".join(f"{each.name} {sum(each.by_name.values()) or each.calls} calls" for each in known),
        file=sys.stderr,
        flush=True,
    )
    found = []
    for number, (scenario, fault) in enumerate(chosen, 1):
        with EmptyFolder(folder) as inside:
            fresh = [f"{scenario.name}, {fault}: {problem}" for problem in examined(scenario, fault, inside)[1]]
        found += fresh
        for problem in fresh:
            print(f"point {number}: {problem}", flush=True)
        if number % 100 == 0:
            print(f"{number} points, {len(found)} problems so far", file=sys.stderr, flush=True)
    return len(chosen), found


class EmptyFolder:
    """An empty folder inside another one, for the time of a block."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "point"

    def __enter__(self) -> Path:
        self.path.mkdir()
        return self.path

    def __exit__(self, *details: object) -> None:
        shutil.rmtree(self.path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, help="how many (500; with --system, all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--system", action="store_true", help="faults at system calls, by strace")
    parser.add_argument("--only", action="append", metavar="NAME", help="a scenario")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tried, found = campaign(given.points, given.seed, Path(folder), given.system, given.only)
    print(f"{tried} points, {len(found)} problems")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
