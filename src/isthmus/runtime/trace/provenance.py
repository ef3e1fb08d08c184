"""What is needed to repeat a run: the algorithm with all its options, the store and its checksum, version, date and
command.

Every summary has it under `repeat`, so `--json` and reports have it too.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import numpy as np

from isthmus import __version__
from isthmus.errors import OptionError
from isthmus.graph.snapshot import Snapshot
from isthmus.programs.algorithm import Algorithm
from isthmus.programs.program import Program
from isthmus.runtime.checkpoint.identity import description
from isthmus.runtime.options import SESSION, Settings

MANY = 1000  # entries of a list or dictionary; a larger one is shown by its beginning and its checksum
shell: list[str] = []  # the command that runs, if it is one of the shell


@contextmanager
def from_shell(words: list[str]) -> Iterator[None]:
    """Runs inside are those of the command `isthmus WORDS`."""
    shell[:] = [shlex.join(["isthmus", *words])]
    try:
        yield
    finally:
        shell.clear()


def now() -> str:
    """The time as a text that names its time zone."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def to_repeat(
    algorithm: Algorithm,
    args: tuple[Any, ...],
    named: dict[str, Any],
    graph: Snapshot,
    settings: Settings,
    threads: int,
    date: str,
) -> dict[str, Any]:
    """What is needed to repeat a run, as JSON knows it."""
    usual = {parameter.name: parameter.default for parameter in algorithm.parameters}
    given = {**dict(zip(usual, args, strict=False)), **named}
    found = origin(graph, date)
    return {
        **found,
        "command": found["command"] or call_of(algorithm, given, graph, settings),
        "options": {name: simple(given.get(name, default)) for name, default in usual.items()},
        "run": {**{name: simple(value) for name, value in vars(settings).items()}, "threads": threads},
    }


def origin(graph: Snapshot, date: str) -> dict[str, Any]:
    """What identifies any work on a graph; `command` is None outside the shell."""
    return {
        "isthmus": __version__,
        "date": date,
        "command": shell[0] if shell else None,
        "graph": {
            "path": str(graph.path.absolute()) if graph.path else None,
            "checksum": graph.identity() if graph.path else None,
        },
    }


def call_of(algorithm: Algorithm, given: dict[str, Any], graph: Snapshot, settings: Settings) -> str:
    """The run as a call in Python. A graph in memory is called `graph`."""
    where = f"isthmus.open({str(graph.path.absolute())!r})" if graph.path else "graph"
    program = next((value for value in given.values() if isinstance(value, Program)), None)
    first = [where] if program is None else [text_of(program), where]
    own = [f"{name}={text_of(value)}" for name, value in given.items() if not isinstance(value, Program)]
    changed = {name: value for name, value in vars(settings).items() if value != SESSION[name].default}
    arguments = [*first, *own, *(f"{name}={value!r}" for name, value in changed.items())]
    return f"isthmus.{algorithm.name}({', '.join(arguments)})"


def simple(value: Any) -> Any:
    """A value as JSON knows it; arrays, programs and large tables as a text with a checksum."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict) and len(value) <= MANY:
        return {str(simple(key)): simple(item) for key, item in value.items()}
    if isinstance(value, list | tuple) and len(value) <= MANY:
        return [simple(item) for item in value]
    return text_of(value)


def text_of(value: Any) -> str:
    """A text that is the same for the same value in another process, as far as there is one."""
    try:
        return description(value)
    except OptionError:
        return f"<{type(value).__name__}>"
