"""Algorithms as functions of a graph: `isthmus.bfs(graph, source, ...)` is a session for one call.

Signature, defaults and docstring come from the algorithm's declaration. Options that change only the speed follow.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any, Unpack

from isthmus.errors import OptionError
from isthmus.graph.graph import Graph
from isthmus.programs.algorithm import Algorithm
from isthmus.programs.catalogue import ALGORITHMS
from isthmus.programs.program import Program
from isthmus.runtime.options import VISIBLE, RunOptions, split
from isthmus.runtime.results.result import Result
from isthmus.runtime.session import Session, check_graph, check_program

OPTIONS = f"""

Options that change only the speed: {", ".join(VISIBLE)}.
"""


@cache
def function_of(algorithm: Algorithm) -> Callable[..., Result]:
    """The function that users call."""
    own = tuple(parameter.name for parameter in algorithm.parameters)

    def call(graph: Any = None, *args: Any, **given: Any) -> Result:
        check_graph(algorithm.name, graph)
        mine, opened, called = split(algorithm.name, given, own)
        with Session(graph, **opened) as session:
            return session.call_with(algorithm, args, mine, **called)

    call.__name__ = call.__qualname__ = algorithm.name
    call.__module__ = "isthmus"
    call.__doc__ = (inspect.getdoc(algorithm.function) or "") + OPTIONS
    given = list(inspect.signature(algorithm.function).parameters.values())[1:]
    options = inspect.Parameter("options", inspect.Parameter.VAR_KEYWORD, annotation="Unpack[RunOptions]")
    first = inspect.Parameter("graph", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation="Graph")
    call.__signature__ = inspect.Signature([first, *given, options], return_annotation="Result")  # type: ignore[attr-defined]
    return call


def callable_of(name: str, algorithm: Any) -> Callable[..., Result]:
    """An algorithm that is given as a function, or by its name. `name` is the function that it was given to."""
    if isinstance(algorithm, str) and algorithm in ALGORITHMS:
        return function_of(ALGORITHMS[algorithm])
    if isinstance(algorithm, str) or not callable(algorithm):
        raise OptionError(
            f"{name}: expected an algorithm such as isthmus.bfs, or one of {ALGORITHMS.unknown(algorithm)}"
        )
    found: Callable[..., Result] = algorithm
    return found


def run(program: Program, graph: Graph, **options: Unpack[RunOptions]) -> Result:
    """Run any vertex program: one declared with `monotone` or `accumulative`, or a `Program` of your own.

    Raises ProgramError if it does not compile, and otherwise what algorithms raise.
    """
    check_program(program)
    check_graph("run", graph)
    _, opened, called = split("run", dict(options))
    with Session(graph, **opened) as session:
        return session.run(program, **called)
