"""Faults of streams with a log: kills and errors at every call that touches files, in the beginning, batches,
checkpoints and recovery.

    python -m tests.faults.log --points 2000 python -m tests.faults.log --system                  # every system call in
    turn, by strace: reads, and writes of libraries, among them python -m tests.faults.log --system --once           #
    each of them with one of the faults, drawn at random python -m tests.faults.log --system --points 400

A point is a scenario, the number of one of its calls, and a fault: the call fails, it and all later ones fail, the
process is killed before it, or in the middle of it, or gets Ctrl-C there. Or the process is killed, or gets Ctrl-C,
after some time. Afterwards the folder is opened again, without faults. Every batch that was acknowledged must be there,
the graph must be that after the last batch, and answers must be those of a run from scratch; the rest of the batches
must lead to the graph of a stream without faults; and nothing must be left that does not belong there.

After Ctrl-C the same process goes on: with the same stream while it takes batches, and else with one that it opens
again. Results of all batches must be what they were.

`log_streams.py` has the scenarios, and `forks.py` runs each stream in a fork of this process.
"""

from __future__ import annotations

import argparse
import collections
import errno
import itertools
import random
import shutil
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

from tests.faults.forks import BROKEN, DONE, INTERRUPTS, REFUSED, Fault, Shared, forked
from tests.faults.log_streams import BATCHES, SCENARIOS, Scenario, Streams
from tests.faults.tracing import Strike, Tracer, counted, strikes

import isthmus as ist

KINDS = ("once", "persistent", "killed", "torn", "later", "interrupted", "moment")
ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT)


def examined(streams: Streams, scenario: Scenario, fault: Fault | Strike, folder: Path) -> tuple[str, list[str]]:
    """How a stream ended at a point, and what was wrong."""
    if scenario.begun >= 0:
        shutil.copytree(streams.template(scenario), folder)
    shared, said, hung = forked(
        streams, scenario, folder, Tracer(fault) if isinstance(fault, Strike) else fault, fault.kind
    )
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
    """Every call in turn, and every fault at it, in equal numbers for every scenario; when all are done, again with
    other errors.
    """
    draw = random.Random(seed)
    orders = {each.name: [(at, kind) for at in range(1, each.calls + 1) for kind in KINDS] for each in known}
    for order in orders.values():
        draw.shuffle(order)
    for number in range(count):
        scenario = known[number % len(known)]
        order = orders[scenario.name]
        at, kind = order[number // len(known) % len(order)]
        yield (
            scenario,
            Fault(at if kind not in ("later", "moment") else draw.randint(1, 150), kind, draw.choice(ERRORS)),
        )


def system_points(known: list[Scenario], count: int | None, seed: int, once: bool) -> Iterator[tuple[Scenario, Strike]]:
    """Every fault at every system call, or some of them, drawn at random; `once`: each call with one of its faults."""
    draw, every = random.Random(seed), list[tuple[Scenario, Strike]]()
    for scenario in known:
        found = strikes(scenario.by_name, ("killed", "SIGINT"))
        calls = [list(faults) for _, faults in itertools.groupby(found, key=lambda strike: (strike.call, strike.at))]
        every += [(scenario, strike) for strike in ([draw.choice(faults) for faults in calls] if once else found)]
    yield from every if count is None else draw.sample(every, min(count, len(every)))


def campaign(
    count: int | None, seed: int, folder: Path, system: bool = False, only: list[str] | None = None, once: bool = False
) -> tuple[list[str], collections.Counter[str]]:
    """All problems that were found at `count` points (all system calls without one), and how often streams ended in
    each way.
    """
    warnings.simplefilter("ignore", ist.IsthmusWarning)
    streams, known = Streams(folder), [each for each in SCENARIOS if only is None or each.name in only]
    for scenario in known:
        if scenario.begun >= 0:
            shutil.copytree(streams.template(scenario), folder / "here")
        # in this process: what it compiles, forks need not.
        streams.work(folder / "here", scenario, lambda number: None)
        assert not list(streams.problems(folder / "here", BATCHES)), scenario
        shutil.rmtree(folder / "here")
        scenario.calls = rehearsed(streams, scenario, folder / "point", Fault(-1)).calls
        if system:
            rehearsed(streams, scenario, folder / "point", Tracer(None, folder / "notes"))
            scenario.by_name = counted(folder / "notes")
    print(
        ", ".join(f"{each.name} {sum(each.by_name.values()) or each.calls} calls" for each in known),
        file=sys.stderr,
        flush=True,
    )
    found, ends = list[str](), collections.Counter[str]()
    chosen = system_points(known, count, seed, once) if system else points(known, count or 500, seed)
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
    parser.add_argument(
        "--once", action="store_true", help="with --system: every call with one fault, not with all of them"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found, ends = campaign(given.points, given.seed, Path(folder), given.system, given.only, given.once)
    print(
        f"{ends.total()} points, {len(found)} problems; "
        + ", ".join(f"{count} {end}" for end, count in ends.most_common())
    )
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
