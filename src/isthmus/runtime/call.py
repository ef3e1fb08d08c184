"""One call of an algorithm: the programs it runs, one after the other, and their combined summary."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from isthmus.errors import BudgetError
from isthmus.graph.snapshot import Snapshot
from isthmus.programs.algorithm import Answer
from isthmus.programs.program import Program
from isthmus.runtime.checkpoint.checkpoint import RunCheckpoints
from isthmus.runtime.execute import Execution, execute, recipe_for, session_split, summary_of
from isthmus.runtime.near.budget import Split
from isthmus.runtime.options import Watch
from isthmus.runtime.trace.trace import Trace

if TYPE_CHECKING:
    from isthmus.runtime.session import Session


class Call:
    """The `Runner` that an algorithm's function gets."""

    def __init__(
        self, session: Session, name: str, watch: Watch, say: Callable[[str], None] | None, checkpoints: RunCheckpoints
    ) -> None:
        self._session, self._name, self._watch, self._say, self._checkpoints = session, name, watch, say, checkpoints
        self._passes: list[Execution] = []
        self.notes: list[str] = []  # about the answer; those about the run itself are in the trace only
        self.trace = Trace()

    @property
    def graph(self) -> Snapshot:
        return self._session.graph.snapshot

    @property
    def algorithm(self) -> str:
        """The algorithm's name; for a program run by itself, the program's name."""
        return self._passes[-1].program.name if self._name == "run" else self._name

    def sweeps(self, program: Program) -> bool:
        if not self._session.device.sweeps or recipe_for(program, self._session).sweeps:
            return self._session.device.sweeps
        try:
            return self.fits(program)
        except BudgetError:  # the program that runs instead names its own minimum
            return False

    def fits(self, program: Program) -> bool:
        return session_split(program, self._session).resident

    def must_fit(self, program: Program) -> None:
        session_split(program, self._session)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def __call__(self, program: Program) -> Answer:
        found = execute(program, self._session, self._watch, self._say, self._checkpoints.next_pass(program))
        self._passes.append(found)
        self.trace.extend(found.trace)
        for note in found.trace.notes:
            if note not in self.trace.notes:
                self.trace.notes.append(note)
        return Answer(found.columns, program.columns, found.figures, program=program)

    def summary(self, answer: Answer) -> dict[str, Any]:
        """The summary of an answer, with the seconds and transfers of all passes added up."""
        self.trace.notes += [note for note in self.notes if note not in self.trace.notes]
        main = next((each for each in self._passes if each.program is answer.program), self._passes[-1])
        parts = [summary_of(each, self._session) for each in self._passes]
        found = parts[self._passes.index(main)]
        for key in ("seconds", "transfer", "cache", "load"):
            found[key] = {name: sum(part[key][name] for part in parts) for name in found[key]}
        found["algorithm"], found["iterations"] = self.algorithm, sum(part["iterations"] for part in parts)
        rss_peak = max(part["memory"]["rss_peak"] for part in parts)
        found["memory"] = {
            **max((part["memory"] for part in parts), key=lambda memory: memory["near_peak"]),
            "rss_peak": rss_peak,
        }
        return {**found, "engines": self.trace.engines(), "notes": self.trace.notes, "result": answer.figures}


class Rehearsal(Call):
    """A call that stops before its first pass. `told` receives every pass known by then, and its memory split."""

    def __init__(self, session: Session, name: str, told: Callable[[Program, Split], None]) -> None:
        super().__init__(session, name, lambda iteration: None, None, RunCheckpoints())
        self._told = told

    def must_fit(self, program: Program) -> None:
        self._told(program, session_split(program, self._session))

    def __call__(self, program: Program) -> Answer:
        self.must_fit(program)
        raise Rehearsed


class Rehearsed(Exception):
    """Raised by a rehearsal in place of running its first pass."""
