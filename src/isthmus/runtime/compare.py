"""One job by several recipes: alternately, so that a busy machine is busy for all, and with answers that must agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from isthmus.errors import IsthmusError, OptionError, ProgramError, UnknownVertexError
from isthmus.graph.graph import Graph
from isthmus.policies.recipes import RECIPES, recipe
from isthmus.runtime.agree import TOLERANCE, difference
from isthmus.runtime.result import Result
from isthmus.runtime.trace import Trace

ROUNDS = 3  # the median of three is no run that had to compile
Begin = Callable[[str, int], None]  # told of every run: recipe and round, from 1; 0 is not counted


class DisagreementError(IsthmusError):
    """Two recipes gave different answers."""


@dataclass
class Run:
    """What is kept of a run: all but its answer."""

    facts: dict[str, Any]
    trace: Trace

    def summary(self) -> dict[str, Any]:
        """As `Result.summary`, with the recipe that was asked for."""
        return self.facts

    @property
    def seconds(self) -> float:
        return seconds_of(self.facts)


@dataclass
class Comparison:
    """Runs by recipe, one for each round, and why other recipes have none."""

    rounds: dict[str, list[Run]] = field(default_factory=dict)
    errors: dict[str, IsthmusError] = field(default_factory=dict)

    @property
    def runs(self) -> dict[str, Run]:
        """The median run of every recipe; of an even number, the faster of the two in the middle."""
        return {name: sorted(runs, key=lambda run: run.seconds)[(len(runs) - 1) // 2] for name, runs in self.rounds.items()}

    @property
    def fastest(self) -> str:
        """The recipe with the least median."""
        runs = self.runs
        return min(runs, key=lambda name: runs[name].seconds)

    def summary(self) -> dict[str, Any]:
        """What `isthmus compare --json` prints: summaries of the median runs, each with the seconds of all its rounds."""
        runs = [
            {**run.summary(), "rounds": [each.seconds for each in self.rounds[name]]} for name, run in self.runs.items()
        ]
        return {"runs": runs, "fastest": self.fastest, "failed": [{"recipe": name, "error": str(e)} for name, e in self.errors.items()]}

    def report(self, path: Any) -> None:
        """Write a page about the median runs; needs `pip install isthmus[report]`."""
        from isthmus.runtime.result import report_page

        report_page().write(path, self.runs, {name: str(error) for name, error in self.errors.items()})


def compare(
    algorithm: Callable[..., Result], graph: Graph, *args: Any, policies: Sequence[str] | None = None, rounds: int = ROUNDS,
    tolerance: float = TOLERANCE, begin: Begin = lambda recipe, number: None, **options: Any,
) -> Comparison:  # fmt: skip
    """Run `algorithm(graph, …)` by each of `policies` (default: every recipe), `rounds` times, and check that answers agree.

    A recipe that cannot run, for want of memory say, is left out of later rounds; if none can, its error is raised. One
    answer is held beside the budget, to compare the others with. `tolerance` is for floating-point values of programs
    that state no error bound. A program of your own is compared as `compare(functools.partial(isthmus.run, program), graph)`.
    """
    names = list(dict.fromkeys(RECIPES if policies is None else policies))
    if not names or rounds < 1 or isinstance(policies, str):
        raise OptionError(f"expected recipes and at least one round, got {policies!r} and {rounds}")
    for name in names:
        recipe(name, options.get("without", ()))
    if "policy" in options:
        raise OptionError("compare takes policies, not a policy")
    if "checkpoint" in options:
        raise OptionError("compare takes no checkpoint: a recipe must not go on where another was")
    found = Comparison()
    judge = Judge(tolerance)

    def attempt(name: str, number: int) -> Run | None:
        begin(name, number)
        try:
            return judge.heard(name, algorithm(graph, *args, policy=name, **options))
        except (UnknownVertexError, ProgramError, DisagreementError):
            raise  # no recipe would do better
        except IsthmusError as error:
            found.errors[name] = error
            return None

    if rounds == 1:  # without a median, one more run comes first, so that nobody's seconds hold the compiling
        next(filter(None, (attempt(name, 0) for name in names)), None)
    for number in range(1, rounds + 1):
        for name in names:
            run = attempt(name, number) if name not in found.errors else None
            if run is not None:
                found.rounds.setdefault(name, []).append(run)
    for name in found.errors:
        found.rounds.pop(name, None)
    if not found.rounds:
        raise next(iter(found.errors.values()))
    return found


class Judge:
    """Holds the first answer against all others, and lets go of these."""

    def __init__(self, tolerance: float) -> None:
        self._tolerance = tolerance
        self._first: tuple[str, Result] | None = None

    def heard(self, name: str, result: Result) -> Run:
        """Raise DisagreementError unless this answer agrees with the first."""
        self._first = self._first or (name, result)
        other, answer = self._first
        if where := difference(answer, result, self._tolerance):
            raise DisagreementError(f"{result.algorithm}: {other} and {name} disagree: {where}; please report this")
        return Run({**result.summary(), "recipe": name}, result.trace)


def seconds_of(summary: dict[str, Any]) -> float:
    """What a run is judged by: the seconds it took, or would take on a modelled device."""
    seconds = summary["seconds"]
    return float(seconds.get("modelled", seconds["total"]))


def hits(summary: dict[str, Any]) -> str:
    """The share of active edges that a cache held."""
    cache = summary["cache"]
    asked = cache["hit_edges"] + cache["miss_edges"]
    return f"{100 * cache['hit_edges'] / asked:.1f} %" if cache["hit_edges"] else "-"


def mix(summary: dict[str, Any]) -> str:
    """Engines by their share of the bytes that moved: 'filter 97 %, zero-copy 3 %'."""
    engines, total = summary["engines"], summary["transfer"]["bytes"]
    if not total:
        return ", ".join(engines).replace("_", "-")
    shares = sorted(((use["bytes"] / total, name) for name, use in engines.items() if use["bytes"]), reverse=True)
    return ", ".join(f"{name} {100 * share:.0f} %" for share, name in shares).replace("_", "-")
