"""Runs an algorithm with several recipes. They take turns, so that other load affects all; their answers must agree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from isthmus.checks import is_real, whole
from isthmus.errors import IsthmusError, OptionError, ProgramError, UnknownVertexError
from isthmus.graph.graph import Graph
from isthmus.policies.recipes import RECIPES, recipe
from isthmus.runtime.public import callable_of
from isthmus.runtime.results.agreement import TOLERANCE, difference
from isthmus.runtime.results.result import Result
from isthmus.runtime.trace.trace import Trace

ROUNDS = 3  # the median of three is not the first run, which has to compile
# Called with recipe and round before every run; rounds count from 1, and 0 is the warm-up.
Begin = Callable[[str, int], None]


class DisagreementError(IsthmusError):
    """Two recipes gave different answers."""


@dataclass
class Run:
    """A run without its answer."""

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
    """Runs by recipe, one for each round, and the errors of recipes that failed."""

    rounds: dict[str, list[Run]] = field(default_factory=dict)  # all runs, by recipe
    errors: dict[str, IsthmusError] = field(default_factory=dict)  # by recipe
    answer: Result | None = None  # of the first run; those of all others agree with it

    @property
    def runs(self) -> dict[str, Run]:
        """The median run of every recipe; of an even number, the faster of the two in the middle."""
        return {
            name: sorted(runs, key=lambda run: run.seconds)[(len(runs) - 1) // 2] for name, runs in self.rounds.items()
        }

    @property
    def fastest(self) -> str:
        """The recipe with the smallest median time."""
        runs = self.runs
        return min(runs, key=lambda name: runs[name].seconds)

    def summary(self) -> dict[str, Any]:
        """The object that `isthmus compare --json` prints: the median runs, each with the seconds of all its rounds."""
        runs = [
            {**run.summary(), "rounds": [each.seconds for each in self.rounds[name]]} for name, run in self.runs.items()
        ]
        return {
            "runs": runs,
            "fastest": self.fastest,
            "failed": [{"recipe": name, "error": str(e)} for name, e in self.errors.items()],
        }

    def report(self, path: Any) -> None:
        """Write an HTML report of the median runs."""
        from isthmus.runtime.results.result import report_page

        report_page().write(path, self.runs, {name: str(error) for name, error in self.errors.items()}, self.answer)


def compare(
    algorithm: Callable[..., Result] | str,
    graph: Graph,
    *args: Any,
    policies: Sequence[str] | None = None,
    rounds: int = ROUNDS,
    tolerance: float = TOLERANCE,
    begin: Begin = lambda recipe, number: None,
    **options: Any,
) -> Comparison:
    """Run `algorithm(graph, …)` with each of `policies` (default: every recipe); check that answers agree.

    `algorithm` is a function such as `isthmus.bfs`, or its name. Each recipe runs `rounds` times. A recipe that cannot
    run, for example for lack of memory, is left out of later rounds; if none can, the error is raised. The first answer
    stays in memory beside the budget, to compare the others with. `tolerance` is for floating-point values of programs
    that state no error bound. Compare your own program with `compare(functools.partial(isthmus.run, program), graph)`.
    """
    run = callable_of("compare", algorithm)
    names = names_of(policies)
    whole("rounds", rounds, 1)
    if not is_real(tolerance) or tolerance < 0:
        raise OptionError(f"tolerance: expected a number of at least 0, got {tolerance!r}")
    check_options(names, options)
    found, judge = Comparison(), Judge(tolerance)

    def attempt(name: str, number: int) -> None:
        """Run one recipe; round 0 is a warm-up."""
        begin(name, number)
        try:
            done = judge.checked(name, run(graph, *args, policy=name, **options))
        except (UnknownVertexError, ProgramError, DisagreementError):
            raise  # every recipe would fail in the same way
        except IsthmusError as error:
            found.errors[name] = error
            return
        if number:
            found.rounds.setdefault(name, []).append(done)

    # There is no median, so every recipe is warmed up: each has loops of its own, and no time may include compiling.
    for number in range(0 if rounds == 1 else 1, rounds + 1):
        for name in names:
            if name not in found.errors:
                attempt(name, number)
    found.rounds = {name: runs for name, runs in found.rounds.items() if name not in found.errors}
    if not found.rounds:
        raise next(iter(found.errors.values()))
    found.answer = judge.answer
    return found


def names_of(policies: Any) -> list[str]:
    """The recipes to compare, each once; None: all of them."""
    if isinstance(policies, str):
        return [policies]
    policies = RECIPES if policies is None else policies
    names: list[Any] = list(policies) if isinstance(policies, Iterable) else [policies]
    if not all(isinstance(name, str) for name in names):
        raise OptionError(f"policies: expected names of recipes, got {policies!r}")
    if not names:
        raise OptionError("policies: expected at least one recipe, got none")
    return list(dict.fromkeys(names))


def check_options(names: list[str], options: dict[str, Any]) -> None:
    """Raise OptionError for unknown recipes and parts, and for options of a run that a comparison does not take."""
    for name in names:
        recipe(name, options.get("without", ()))
    if "policy" in options:
        given = options["policy"]
        raise OptionError(f"compare: expected policies=[{given!r}], a list of recipes, got policy={given!r}")
    if "checkpoint" in options:
        raise OptionError("compare takes no checkpoint: a recipe must not resume the run of another")


class Judge:
    """Keeps the first answer, compares all others with it, and frees them."""

    def __init__(self, tolerance: float) -> None:
        self._tolerance = tolerance
        self._first: tuple[str, Result] | None = None

    @property
    def answer(self) -> Result | None:
        return self._first[1] if self._first else None

    def checked(self, name: str, result: Result) -> Run:
        """The run without its answer. Raises DisagreementError unless this answer agrees with the first."""
        self._first = self._first or (name, result)
        other, answer = self._first
        if where := difference(answer, result, self._tolerance):
            raise DisagreementError(f"{result.algorithm}: {other} and {name} disagree: {where}; please report this")
        return Run({**result.summary(), "recipe": name}, result.trace)


def seconds_of(summary: dict[str, Any]) -> float:
    """The seconds by which runs are compared: those of the run, or modelled seconds on a modelled device."""
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
