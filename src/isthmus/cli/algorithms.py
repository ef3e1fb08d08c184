"""Algorithms as commands: every group of commands (`run`, `compare`, `plan`) has one for each.

A command's own options come from the algorithm's declaration (`programs/algorithm.py`), the others from its group.
Lists and help texts are read from declarations; an algorithm is imported when its command is called.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from isthmus.cli import help_lists
from isthmus.cli.shell_options import option_of, read
from isthmus.cli.signatures import compose

if TYPE_CHECKING:
    from isthmus.graph.graph import Graph
    from isthmus.programs.algorithm import Algorithm
    from isthmus.runtime.results.result import Result


@dataclass(frozen=True)
class AlgorithmCall:
    """An algorithm and its own options, as given on the command line."""

    algorithm: Algorithm
    given: dict[str, Any]

    @property
    def name(self) -> str:
        return self.algorithm.name

    @property
    def function(self) -> Callable[..., Result]:
        from isthmus.runtime.public import function_of

        return function_of(self.algorithm)

    def arguments(self, graph: Graph) -> dict[str, Any]:
        """The algorithm's own options, as its function takes them."""
        return read(self.algorithm, self.given, graph)


Act = Callable[..., None]  # called with an AlgorithmCall, and by keyword with the options that its signature declares


def group(words: str, act: Act, without: tuple[str, ...] = ()) -> typer.Typer:
    """A group of commands, one for each algorithm. `act` does the work.

    A command has the algorithm's own options and those that `act` declares, except options of a run in `without`.
    """

    class Group(help_lists.Group):
        """Commands that are made on demand."""

        showing_help = False

        def list_commands(self, ctx: Any) -> list[str]:
            return list(help_lists.catalogue("algorithm").words())

        def get_command(self, ctx: Any, name: str) -> Any:
            if self.showing_help:
                return TyperCommand(name, help=help_lists.catalogue("algorithm").words()[name])
            algorithm = named(name)
            return command(algorithm, act, without) if algorithm is not None else None

        def format_help(self, ctx: Any, formatter: Any) -> None:
            self.showing_help = True
            super().format_help(ctx, formatter)

        def shell_complete(self, ctx: Any, incomplete: str) -> Any:
            """Names of algorithms and their help texts, without importing them."""
            self.showing_help = True
            return super().shell_complete(ctx, incomplete)

    app = typer.Typer(no_args_is_help=True, help=words, cls=Group)

    @app.callback()
    def nothing_first() -> None:
        pass

    return app


def named(name: str) -> Algorithm | None:
    """The algorithm with that name or alias, or None."""
    from isthmus.programs.catalogue import ALGORITHMS

    try:
        return ALGORITHMS[name]
    except KeyError:
        name = help_lists.aliases().get(name, "")
        return ALGORITHMS[name] if name else None


def command(algorithm: Algorithm, act: Act, without: tuple[str, ...]) -> Any:
    """The command of one algorithm."""

    def own(**given: Any) -> AlgorithmCall:
        return AlgorithmCall(algorithm, given)

    own.__name__, own.__doc__ = algorithm.name, inspect.getdoc(algorithm.function)
    own.__signature__ = inspect.Signature([option_of(each) for each in algorithm.parameters])  # type: ignore[attr-defined]
    app = typer.Typer()
    app.command(algorithm.name, cls=help_lists.Command)(compose(own, act, without))
    return typer.main.get_command(app)
