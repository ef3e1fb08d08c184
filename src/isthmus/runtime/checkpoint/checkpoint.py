"""Checkpoints: every few minutes a run's state is written to disk, so that a killed run can resume.

A folder belongs to one run. Each of its passes (a tree of predecessors is a second pass) has one checkpoint there, such
as `pass-1.iteration-42`. A new one is written under another name, synced and renamed; then the one before it is
removed. All are removed when the run is over. A pass that had ended also resumes from its last checkpoint, so each pass
repeats at most the work of one interval.

A checkpoint holds what the program remembers (`Program.remember`) and the frontier. The recipe, the threads and mostly
the budget may change before a run resumes, as they do not change the answer. The graph, the algorithm, its arguments
and its code must be the same.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np

from isthmus import __version__
from isthmus.checks import is_real
from isthmus.errors import BudgetError, OptionError, StoreError
from isthmus.frontier import Frontier
from isthmus.graph.locks.folder_lock import FolderLock
from isthmus.graph.snapshot import Snapshot
from isthmus.graph.store.files import fsync_folder, remove_folder
from isthmus.graph.store.sealed_json import digest
from isthmus.graph.store.store import is_store
from isthmus.memory import available, format_size
from isthmus.messages import option
from isthmus.programs.algorithm import Algorithm
from isthmus.programs.checkpoint_checks import LARGEST, alike, integer, truth, within
from isthmus.programs.program import Facts, Program, State
from isthmus.runtime.checkpoint.identity import described, one_pass
from isthmus.runtime.checkpoint.saved_arrays import ANEW, WRONG, Saved, encode, write
from isthmus.runtime.near.budget import Split
from isthmus.runtime.trace.trace import Trace

WRITING = "writing"  # name of a checkpoint that is incomplete, or is being removed
NAMES = re.compile(r"pass-(\d+)\.iteration-(\d+)")
# of a checkpoint.
MEMBERS = {"run": str, "graph": str, "isthmus": str, "pass": int, "iteration": int, "text": str, "memory": dict}
ELSEWHERE = f"name another folder, or {ANEW}"


def checkpoints_of(
    algorithm: Algorithm,
    graph: Snapshot,
    args: tuple[Any, ...],
    named: dict[str, Any],
    checkpoint: Any,
    checkpoint_every: float,
    restart: bool,
    keep_checkpoint: bool,
) -> RunCheckpoints:
    """The checkpoints of a call in the folder `checkpoint`, written every `checkpoint_every` minutes; none without a
    folder.

    All passes of the call share the folder. With `keep_checkpoint` the checkpoints stay when the call is over: the
    caller saves the result first, and then calls `clear`.
    """
    if checkpoint is None:
        if restart:
            raise OptionError(
                f"restart: expected a folder of checkpoints to start over in; give {option('checkpoint')}"
            )
        return RunCheckpoints()
    return Checkpoints(
        Path(checkpoint), checkpoint_every, restart, graph, described(algorithm, args, named), keep_checkpoint
    )


class RunCheckpoints:
    """The checkpoints of a call. This one keeps none."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        """Do nothing: there is no lock to release."""

    def next_pass(self, program: Program) -> Checkpoint | None:
        """The checkpoints of the next program that the call runs."""
        return None

    def over(self, notes: list[str]) -> None:
        """The call has its answer."""


class Checkpoints(RunCheckpoints):
    """The folder of a run. Use as a context manager: the folder is locked inside, and removed at the end if it is
    empty.
    """

    def __init__(self, path: Path, every: float, restart: bool, graph: Snapshot, run: str, keep: bool) -> None:
        if not is_real(every) or not 0 <= every < math.inf:
            raise OptionError(f"checkpoint_every: expected minutes, a number of at least 0, got {every!r}")
        if graph.path is None:
            raise OptionError(
                f"checkpoint: {graph} is in memory only, so no later run could resume with it; ingest it into a store"
            )
        self.path, self.every, self.written, self.seconds = path, every, 0, 0.0
        self.same = {"isthmus": __version__, "graph": graph.identity(), "run": run}
        self.resumed: Saved | None = None  # the checkpoint that a pass resumed from last
        self._keep = keep
        self._passes = 0
        self._restart = restart

    def __enter__(self) -> Self:
        if is_store(self.path):
            raise OptionError(f"checkpoint: {self.path} is a store; name a folder of its own")
        self._lock = locked(self.path)
        try:
            remove_folder(self.path / WRITING)
            if self._restart:
                self._start_over()
            for folder in found(self.path):
                self._check(Saved(folder))
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start_over(self) -> None:
        try:
            remove(self.path)
        except OSError as error:
            raise StoreError(
                f"{self.path}: its checkpoints cannot be removed: {error.strerror}; name another folder"
            ) from error

    def _check(self, saved: Saved) -> None:
        """Raise StoreError if the checkpoint belongs to another run."""
        theirs = saved.facts
        saved.need(theirs, MEMBERS)
        saved.need(theirs["memory"], {"budget": int, "room": int})
        if theirs["run"] != self.same["run"]:
            raise StoreError(
                f"{saved.folder}: is a checkpoint of {theirs['run']}, and this run is {self.same['run']}; {ELSEWHERE}"
            )
        if theirs["graph"] != self.same["graph"]:
            raise StoreError(f"{saved.folder}: is a checkpoint of a run on another graph; {ELSEWHERE}")
        if theirs["isthmus"] != __version__:
            raise StoreError(
                f"{saved.folder}: was written by Isthmus {theirs['isthmus']}, this is {__version__}; {ANEW}"
            )

    def __exit__(self, *details: object) -> None:
        """Let go of the folder. If the call failed after a pass had resumed, the checkpoint may be the reason: say how
        to do without it.
        """
        with contextlib.suppress(OSError):  # not empty, or not ours to remove
            self.path.rmdir()
        self._lock.release()
        failure = details[1] if details else None
        if self.resumed is not None and isinstance(failure, (*WRONG, ArithmeticError, AssertionError)):
            raise self.resumed.failed(failure) from failure

    def next_pass(self, program: Program) -> Checkpoint | None:
        """None for a single iteration: a later process does it again, since nothing could check what it had found."""
        self._passes += 1
        if type(program).max_iter == 1:
            if self.same["run"].startswith(f"{program.name}("):  # it is all that the call runs
                raise one_pass(program)
            return None
        newest = found(self.path, self._passes)[-1:]
        return Checkpoint(self, self._passes, program, Saved(newest[0]) if newest else None)

    def over(self, notes: list[str]) -> None:
        """The run has its answer: remove all checkpoints, or leave them and say so."""
        over = "removed at the end of the run"
        try:
            if not self._keep:
                remove(self.path)
        except OSError as error:  # noted only: the answer is complete
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
        """Bytes that the program may use beyond its state. A program that uses them must resume with arrays of the
        saved size.
        """
        spare = max(0, near.budget - near.peak)
        if self._saved is not None and self._program.needs_spare_memory:
            facts = self._saved.facts["memory"]
            if memory is None and facts["budget"] <= available():
                near.budget = max(near.budget, facts["budget"])
            spare = facts["room"] - near.state
            if spare < 0:
                raise self._saved.misshapen(ValueError(f"expected room for at least {near.state} bytes"))
            if spare > near.budget - near.peak:
                then, now = format_size(facts["budget"]), format_size(near.budget)
                raise BudgetError(
                    f"{self._saved.folder}: was written with a budget of {then}, and {now} is too little to resume; "
                    f"give {option('memory', facts['budget'])}, or {ANEW}"
                )
        self._budget = {"budget": near.budget, "room": near.state + spare}
        return spare

    def begin(self, state: State, facts: Facts, frontier: Frontier, trace: Trace, say: Callable[[str], None]) -> None:
        """Resume from the checkpoint, if there is one. Raises OptionError if the program's state cannot be saved."""
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
            why = "its code has changed, or this recipe computes it in another way"
            raise StoreError(
                f"{self._saved.folder}: was written by another version of {self._program.name} ({why}); {ANEW}"
            )
        kept = self._saved.load({**value, "frontier": {"marks": frontier.marks}})
        try:
            self._in_order(frontier, kept)
            alike(kept["program"], value["program"])
            self._program.recall(state, kept["program"])
            self._program.check_recalled(state, frontier, facts)
        except WRONG as error:
            raise self._saved.misshapen(error) from error
        self._folder.resumed = self._saved
        trace.notes.append(f"resumed after {self.done} iterations, from {self._saved.folder}")

    def _in_order(self, frontier: Frontier, kept: dict[str, Any]) -> None:
        """Recall the frontier; ValueError if it does not fit the graph or the program."""
        recall(frontier, **kept["frontier"])
        most = LARGEST if self._program.max_iter is None else self._program.max_iter
        integer(self.done, 0, most)
        if self._program.all_active and not frontier.all_active:
            raise ValueError("expected all vertices to be active")

    def _value(self) -> dict[str, Any]:
        return {"frontier": remember(self._frontier), "program": self._program.remember(self._state)}

    def due(self) -> bool:
        """Whether it is time to write the next checkpoint."""
        return time.monotonic() - self._last >= self._folder.every * 60

    def write(self, iteration: int) -> None:
        """Write a checkpoint and remove the one before. If that fails, for example on a full disk, note it and
        continue.
        """
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
            self._warn(f"a checkpoint could not be written; the run continues without it: {error}")
        finally:
            remove_folder(writing)
            self._last = time.monotonic()
            self._folder.seconds += self._last - start

    def _warn(self, text: str) -> None:
        """Note and print a warning, once only."""
        if not self._warned:
            self._warned = True
            self._trace.notes.append(text)
            self._say(text)

    def needless(self) -> None:
        """Note that a program which solves everything in one kernel writes no checkpoints."""
        self._trace.notes.append(
            "no checkpoints: all edges are in memory, where this algorithm runs in a single kernel"
        )


def remember(frontier: Frontier) -> dict[str, Any]:
    """The active vertices, between two iterations."""
    sparse = frontier.all_active or frontier.list is not None
    return {
        "count": frontier.count,
        "all_active": frontier.all_active,
        "list": frontier.list,
        "marks": None if sparse else frontier.marks,
    }


def recall(frontier: Frontier, count: int, all_active: bool, list: Any, marks: Any) -> None:
    """Go on with these active vertices; ValueError if they do not fit the graph."""
    if [truth(all_active), list is not None, marks is not None].count(True) != 1:
        raise ValueError("expected all vertices to be active, a list of active ones, or marks")
    if list is not None:
        alike(list, np.empty(list.shape[:1], np.uint32))
        if (list >= frontier.vertices).any():
            raise ValueError("the active vertices are not vertices of the graph")
    if marks is None:
        frontier.marks[:] = 0
    else:
        alike(marks, frontier.marks)
        within(marks[: frontier.vertices], 1)
        within(marks[frontier.vertices :], 0)
        frontier.marks = marks
    if list is not None:
        frontier.marks[list] = 1
    found = frontier.vertices if all_active else int(np.count_nonzero(frontier.marks))
    frontier.count, frontier.all_active, frontier.list = integer(count, found, found), all_active, list
    if list is not None and (list.size != found or (list[1:] < list[:-1]).any()):
        raise ValueError("expected different active vertices, in ascending order")


def found(path: Path, number: int | None = None) -> list[Path]:
    """The checkpoints in a folder, or those of one pass, the newest last; none if there is no folder."""
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
    """Remove a checkpoint. It is renamed first, so that an incomplete one is never found."""
    doomed = folder.with_name(WRITING)
    os.rename(folder, doomed)
    remove_folder(doomed)


def locked(path: Path) -> FolderLock:
    return FolderLock(path, "checkpoints", "another process is using these checkpoints")


def clear(path: Path) -> None:
    """Remove a folder's checkpoints, and the folder if it is then empty, unless another process uses it."""
    with contextlib.suppress(OSError, StoreError):
        if not path.is_dir():
            return
        lock = locked(path)
        try:
            remove(path)
            path.rmdir()
        finally:
            lock.release()
