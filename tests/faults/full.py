"""A disk that is full, really: commands and streams on a small tmpfs, which has one page more every time, until they
have enough.

    python -m tests.faults.full                 # as root: it mounts
    python -m tests.faults.full --step 10       # every 10th size

A command must write all or nothing, as its exit code says, without a traceback; with more room the next one must
succeed, and leave nothing else. A stream must keep what it has acknowledged, and go on when there is room.
"""

from __future__ import annotations

import argparse
import collections
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.faults import forks, log_streams, writing

import isthmus as ist

PAGE = os.sysconf("SC_PAGE_SIZE")
ROOM = 64 << 20  # enough for all of them
MOST = 400  # pages that a scenario may need


class Disk:
    """A tmpfs. `shrink` leaves so many pages free, `grow` makes room again."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def shrink(self, pages: int) -> None:
        facts = os.statvfs(self.path)
        self._resize((facts.f_blocks - facts.f_bfree) * facts.f_frsize + pages * PAGE)

    def grow(self) -> None:
        self._resize(ROOM)

    def _resize(self, size: int) -> None:
        subprocess.run(
            ["mount", "-o", f"remount,size={max(size, PAGE)}", str(self.path)], check=True, capture_output=True
        )


@contextmanager
def mounted(folder: Path) -> Iterator[Disk]:
    """A disk, for the time of a block."""
    path = folder / "disk"
    path.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", str(path)], check=True, capture_output=True)
    try:
        yield Disk(path)
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True, capture_output=True)


def trouble() -> str | None:
    """Why nothing can be mounted here; None: it can."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with mounted(Path(folder)) as disk:
                disk.shrink(1)
        except (OSError, subprocess.CalledProcessError) as error:
            return str(getattr(error, "stderr", b"").decode() or error)
    return None


def commands(folder: Path, step: int, ends: collections.Counter[str]) -> Iterator[str]:
    """The problems of commands that write stores and results."""
    for scenario in writing.scenarios():
        with writing.EmptyFolder(folder) as inside:
            writing.rehearse(scenario, inside)
        for pages in range(0, MOST, step):
            with mounted(folder) as disk:
                shrink = partial(disk.shrink, pages)
                code, found = writing.examined(scenario, writing.Fault(-1), disk.path, shrink, disk.grow)
            yield from (f"{scenario.name}, {pages} pages: {problem}" for problem in found)
            ends["done" if code == 0 else "refused"] += 1
            if code == 0:
                break
        else:
            yield f"{scenario.name}: {MOST} pages are not enough"


def streams(folder: Path, step: int, ends: collections.Counter[str]) -> Iterator[str]:
    """The problems of streams with a log."""
    known = log_streams.Streams(folder / "streams")
    for scenario in log_streams.SCENARIOS:
        for pages in range(0, MOST, step):
            with mounted(folder) as disk:
                here = disk.path / "here"
                if scenario.begun >= 0:
                    shutil.copytree(known.template(scenario), here)
                disk.shrink(pages)
                shared, said, hung = forks.forked(known, scenario, here, forks.Fault(-1), "")
                disk.grow()
                found = [f"a traceback: {said}"] if shared.end == forks.BROKEN else ["it hung"] if hung else []
                found += known.problems(here, shared.acknowledged)
            yield from (f"{scenario.name}, {pages} pages: {problem}" for problem in found)
            ends["done" if shared.end == forks.DONE else "refused"] += 1
            if shared.end == forks.DONE:
                break
        else:
            yield f"{scenario.name}: {MOST} pages are not enough"


def campaign(folder: Path, step: int = 1) -> tuple[collections.Counter[str], list[str]]:
    """How commands and streams ended, and all problems."""
    warnings.simplefilter("ignore", ist.IsthmusWarning)
    (folder / "streams").mkdir()
    ends, found = collections.Counter[str](), list[str]()
    for part in (commands, streams):
        for problem in part(folder, step, ends):
            found.append(problem)
            print(problem, flush=True)
    return ends, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--step", type=int, default=1, help="pages more every time")
    given = parser.parse_args()
    if (why := trouble()) is not None:
        sys.exit(f"no tmpfs can be mounted here: {why}")
    with tempfile.TemporaryDirectory() as folder:
        ends, found = campaign(Path(folder), given.step)
    print(
        f"{ends.total()} sizes, {len(found)} problems; "
        + ", ".join(f"{count} {end}" for end, count in ends.most_common())
    )
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
