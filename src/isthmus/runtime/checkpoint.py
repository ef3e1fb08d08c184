"""Checkpoints: every few minutes a run's state goes to disk, so that a killed run goes on where it was.

A folder belongs to one run, and each of its passes (a tree of predecessors is a second one) has a place in it: the newest
checkpoint `pass-1.iteration-42`, written under another name, synced and renamed, and only then is the one before it
removed. All of them go when the whole run is over. A pass that had ended goes on from its last checkpoint like any other,
so what is done twice is at most what the interval allows.

State is what the program remembers (`Program.remember`) and the frontier. Recipe, threads and mostly the budget
may change in between: none of them changes an answer. Neither may the graph, the algorithm, its arguments or its text.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from isthmus import __version__
from isthmus.errors import BudgetError, OptionError, StoreError
from isthmus.frontier import Frontier
from isthmus.graph.files import fsync_folder
from isthmus.graph.manifest import digest
from isthmus.graph.snapshot import Snapshot
from isthmus.graph.store import is_store
from isthmus.memory import available, format_size
from isthmus.programs.algorithm import Algorithm
from isthmus.programs.program import Facts, Program, State
from isthmus.runtime.budget import Split
from isthmus.runtime.identity import described, one_pass
from isthmus.runtime.saved import ANEW, Saved, encode, write
from isthmus.runtime.trace import Trace

EVERY = 5.0  # minutes
WRITING = "writing"  # what a checkpoint is called before it is complete, and when it is no more
NAMES = re.compile(r"pass-(\d+)\.iteration-(\d+)")
ELSEWHERE = f"name another folder, or {ANEW}"


def checkpoints_of(
    algorithm: Algorithm, graph: Snapshot, args: tuple[Any, ...], named: dict[str, Any], checkpoint: Any = None,
    checkpoint_every: float = EVERY, restart: bool = False, keep_checkpoint: bool = False,
) -> RunCheckpoints:  # fmt: skip
    """The checkpoints of a call in the folder `checkpoint`, every so many minutes; none without a folder.

    All passes of the call share the folder. With `keep_checkpoint` it stays when the call is over, for a caller who has yet
    to save the result, and calls `clear` then.
    """
    if checkpoint is None:
        if restart:
            raise OptionError("restart: expected a checkpoint to begin anew from, give --checkpoint (checkpoint=)")
        return RunCheckpoints()
    return Checkpoints(Path(checkpoint), checkpoint_every, restart, graph, described(algorithm, args, named), keep_checkpoint)


class RunCheckpoints:
    """The checkpoints of a call. This one keeps none."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        """There is nothing to give back."""

    def next_pass(self, program: Program) -> Checkpoint | None:
        """Those of the next program that the call runs."""
        return None

    def over(self, notes: list[str]) -> None:
        """The call has its answer."""


class Checkpoints(RunCheckpoints):
    """The folder of a run. Use as a context manager: it is locked meanwhile, and does not stay when it is empty."""

    def __init__(self, path: Path, every: float, restart: bool, graph: Snapshot, run: str, keep: bool) -> None:
        if isinstance(every, bool) or not (every >= 0 and math.isfinite(every)):
            raise OptionError(f"checkpoint_every: expected minutes, a number of at least 0, got {every}")
        if not graph.on_disk:
            raise OptionError(f"checkpoint: {graph} is in memory only, so nothing could go on with it later; ingest it into a store")
        self.path, self.every, self.written, self.seconds = path, every, 0, 0.0
        self.same = {"isthmus": __version__, "graph": graph.identity(), "run": run}
        self._keep = keep
        self._passes = 0
        self._restart = restart

    def __enter__(self) -> Self:
        if is_store(self.path):
            raise OptionError(f"checkpoint: {self.path} is a store; name a folder of its own")
        self._lock = locked(self.path)
        try:
            shutil.rmtree(self.path / WRITING, ignore_errors=True)
            if self._restart:
                remove(self.path)
            for folder in found(self.path):
                self._check(Saved(folder))
        except BaseException:
            self.__exit__()
            raise
        return self

    def _check(self, saved: Saved) -> None:
        """Raise StoreError if it is another run's."""
        theirs = saved.facts
        if theirs["run"] != self.same["run"]:
            raise StoreError(f"{saved.folder}: is a checkpoint of {theirs['run']}, and this run is {self.same['run']}; {ELSEWHERE}")
        if theirs["graph"] != self.same["graph"]:
            raise StoreError(f"{saved.folder}: is a checkpoint of a run on another graph; {ELSEWHERE}")
        if theirs["isthmus"] != __version__:
            raise StoreError(f"{saved.folder}: was written by Isthmus {theirs['isthmus']}, this is {__version__}; {ANEW}")

    def __exit__(self, *details: object) -> None:
        with contextlib.suppress(OSError):  # not empty, or not ours to remove
            self.path.rmdir()
        os.close(self._lock)

    def next_pass(self, program: Program) -> Checkpoint:
        if type(program).max_iter == 1 and self.same["run"].startswith(f"{program.name}("):  # it is all that the call runs
            raise one_pass(program)
        self._passes += 1
        newest = found(self.path, self._passes)[-1:]
        return Checkpoint(self, self._passes, program, Saved(newest[0]) if newest else None)

    def over(self, notes: list[str]) -> None:
        """The run has its answer: remove all checkpoints, or leave them and say so."""
        over = "removed, as the run is over"
        try:
            if not self._keep:
                remove(self.path)
        except OSError as error:  # the answer matters more
            over = f"still in {self.path}: {error.strerror}"
        if self.written:
            noun = "checkpoint" if self.written == 1 else "checkpoints"
            notes.append(f"{self.written} {noun} took {self.seconds:.2f} s; {over}")


class Checkpoint:
    """The checkpoints of one pass. `done`: iterations of earlier processes."""

    def __init__(self, folder: Checkpoints, number: int, program: Program, saved: Saved | None) -> None:
        self._folder, self._number, self._program, self._saved = folder, number, program, saved
        self.done = 0 if saved is None else int(saved.facts["iteration"])
        self._last = time.monotonic()
        self._budget: dict[str, int] = {}
        self._warned = False

    def spare(self, near: Split, memory: str | int | None) -> int:
        """Bytes that the program may take beyond its state. One that takes them all has arrays of the size they were made with."""
        spare = max(0, near.budget - near.peak)
        if self._saved is not None and self._program.needs_spare_memory:
            facts = self._saved.facts["memory"]
            if memory is None and facts["budget"] <= available():
                near.budget = max(near.budget, facts["budget"])
            spare = facts["room"] - near.state
            if spare > near.budget - near.peak:
                then, now = format_size(facts["budget"]), format_size(near.budget)
                raise BudgetError(
                    f"{self._saved.folder}: was written with a budget of {then}, and {now} are too little to go on; "
                    f"give --memory {facts['budget']}, or {ANEW}"
                )
        self._budget = {"budget": near.budget, "room": near.state + spare}
        return spare

    def begin(self, state: State, facts: Facts, frontier: Frontier, trace: Trace, say: Callable[[str], None]) -> None:
        """Go on from what is there. Raises OptionError if the program's state cannot be saved."""
        self._state, self._frontier, self._trace, self._say = state, frontier, trace, say
        self._text = digest(self._program.text(facts).encode())
        value = self._value()
        try:
            encode(value, self._program.name, [])
        except OptionError as error:
            raise OptionError(f"{self._program.name} cannot be checkpointed: {error}") from None
        if self._saved is None:
            return
        if self._saved.facts["text"] != self._text:
            why = "its text has changed, or the recipe has it computed in another way"
            raise StoreError(f"{self._saved.folder}: was written by {self._program.name} with another text ({why}); {ANEW}")
        kept = self._saved.load({**value, "frontier": {"marks": frontier.marks}})
        recall(frontier, **kept["frontier"])
        self._program.recall(state, kept["program"])
        trace.notes.append(f"went on after {self.done} iterations, from {self._saved.folder}")

    def _value(self) -> dict[str, Any]:
        return {"frontier": remember(self._frontier), "program": self._program.remember(self._state)}

    def due(self) -> bool:
        """Whether it is time for another one."""
        return time.monotonic() - self._last >= self._folder.every * 60

    def write(self, iteration: int) -> None:
        """Write one, and remove the one before. A full disk is noted, and the run goes on: the answer matters more."""
        start = time.monotonic()
        path, writing = self._folder.path, self._folder.path / WRITING
        try:
            facts = {"pass": self._number, "iteration": iteration, "text": self._text, "memory": self._budget}
            write(writing, {**self._folder.same, **facts}, self._value())
            old = found(path, self._number)
            os.rename(writing, path / f"pass-{self._number}.iteration-{iteration}")
            fsync_folder(path)
            self._folder.written += 1
            for folder in old:
                discard(folder)
        except (OSError, StoreError) as error:
            self._warn(f"a checkpoint could not be written, the run goes on without: {error}")
        finally:
            shutil.rmtree(writing, ignore_errors=True)
            self._last = time.monotonic()
            self._folder.seconds += self._last - start

    def _warn(self, text: str) -> None:
        """Once is enough."""
        if not self._warned:
            self._warned = True
            self._trace.notes.append(text)
            self._say(text)

    def needless(self) -> None:
        """The program solved it all at once."""
        self._trace.notes.append("no checkpoints: all edges are in memory, where this algorithm works in one go")


def remember(frontier: Frontier) -> dict[str, Any]:
    """Who is active, between two iterations."""
    sparse = frontier.all_active or frontier.list is not None
    return {"count": frontier.count, "all_active": frontier.all_active, "list": frontier.list, "marks": None if sparse else frontier.marks}


def recall(frontier: Frontier, count: int, all_active: bool, list: Any, marks: Any) -> None:
    frontier.count, frontier.all_active, frontier.list = count, all_active, list
    if marks is None:
        frontier.marks[:] = 0
    if list is not None:
        frontier.marks[list] = 1


def found(path: Path, number: int | None = None) -> list[Path]:
    """The checkpoints in a folder, or those of one pass, the newest last; none where the folder is gone."""
    try:
        names = os.listdir(path)
    except FileNotFoundError:
        return []
    matches = [match for match in map(NAMES.fullmatch, names) if match and number in (None, int(match[1]))]
    return [path / match[0] for match in sorted(matches, key=lambda match: (int(match[1]), int(match[2])))]


def remove(path: Path) -> None:
    """Remove the checkpoints in a folder, and nothing else."""
    for folder in found(path):
        discard(folder)


def discard(folder: Path) -> None:
    """Remove a checkpoint, which at no moment is there in part."""
    doomed = folder.with_name(WRITING)
    os.rename(folder, doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def clear(path: Path) -> None:
    """Remove a folder's checkpoints, and the folder when it is empty then; not while another process uses it."""
    with contextlib.suppress(OSError, StoreError):
        if not path.is_dir():
            return
        lock = locked(path)
        try:
            remove(path)
            path.rmdir()
        finally:
            os.close(lock)


def locked(path: Path) -> int:
    """A lock on a folder, which is made if need be; it goes with the process."""
    while True:
        try:
            path.mkdir(exist_ok=True)
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise StoreError(f"{path}: no folder for checkpoints: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise StoreError(f"{path}: another process is using these checkpoints") from None
        except OSError:
            return lock  # a file system that does not lock folders
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.stat(path), os.fstat(lock)):
                return lock
        os.close(lock)  # whoever had it removed the folder between our open and our lock
