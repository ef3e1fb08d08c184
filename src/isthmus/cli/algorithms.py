"""Algorithms as commands: every group of commands (`run`, `compare`, `plan`) has one for each.

A command's own options come from the algorithm's declaration (`programs/algorithm.py`), the others from its group.
Lists and help texts are read from declarations; an algorithm is imported when its command is called.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from isthmus.cli import help_lists
from isthmus.cli.signatures import compose

if TYPE_CHECKING:
    from isthmus.programs.algorithm import Algorithm, Parameter

Given = dict[str, Any]  # an algorithm's options, as given on the command line
Act = Callable[..., None]


def group(words: str, shared: Callable[..., None], act: Act) -> typer.Typer:
    """A group of commands, one for each algorithm. `shared` declares the options they share, `act` does the work."""

    class Group(help_lists.Group):
        """Commands that are made on demand."""

        showing_help = False

        def list_commands(self, ctx: Any) -> list[str]:
            return list(help_lists.catalogue("algorithm").words())

        def get_command(self, ctx: Any, name: str) -> Any:
            if self.showing_help:
                return TyperCommand(name, help=help_lists.catalogue("algorithm").words()[name])
            algorithm = named(name)
            return command(algorithm, shared, act) if algorithm is not None else None

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


def command(algorithm: Algorithm, shared: Callable[..., None], act: Act) -> Any:
    """A command with an algorithm's own options and the shared ones."""

    def own(**given: Any) -> Given:
        return given

    parameters = [option_of(parameter) for parameter in algorithm.parameters]
    own.__name__, own.__doc__ = algorithm.name, inspect.getdoc(algorithm.function)
    own.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    app = typer.Typer()
    app.command(algorithm.name, cls=help_lists.Command)(
        compose(own, shared, lambda name, given, **rest: act(algorithm, given, **rest))
    )
    return typer.main.get_command(app)


def option_of(parameter: Parameter) -> inspect.Parameter:
    """A parameter as an option of the shell."""
    from isthmus.programs.algorithm import Kind

    option, default, kind = parameter.option, parameter.default, parameter.option.kind
    flag, metavar, hint = option.flag or f"--{parameter.name.replace('_', '-')}", option.metavar, parameter.type
    if kind is Kind.VERTEX:
        hint, default = str | None, None
    elif kind in (Kind.VERTICES, Kind.BY_VERTEX):
        hint = list[str] if parameter.required else list[str] | None
        metavar = f"VERTEX={metavar or 'NUMBER'}" if kind is Kind.BY_VERTEX else metavar
    elif kind in (Kind.ARRAY, Kind.ARRAYS):
        hint = Path if parameter.required else Path | None
    elif kind is Kind.SIZES:
        hint = str if parameter.required else str | None
    # Unnamed, typer adds a --no- form, which an option that is on by default needs.
    flags = [] if default is True else [flag]
    shown = typer.Option(
        *flags, help=option.help, min=option.least, metavar=metavar, show_default=not parameter.required
    )
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(parameter.name, keyword, default=default, annotation=Annotated[hint, shown])


def read(algorithm: Algorithm, given: Given, graph: Any) -> Given:
    """Options as an algorithm takes them: words that name vertices become vertex ids, files become arrays."""
    from isthmus.cli.array_files import read_array, read_arrays, read_sizes
    from isthmus.programs.algorithm import Kind

    found: Given = {}
    names = [parameter.name for parameter in algorithm.parameters]
    for parameter in algorithm.parameters:
        if parameter.option.kind is Kind.ARRAYS and given[parameter.name] is not None:
            found |= read_arrays(
                given[parameter.name], parameter.name, *(name for name in names if name != parameter.name)
            )
    for parameter in algorithm.parameters:
        name, kind, value = parameter.name, parameter.option.kind, given[parameter.name]
        if kind is Kind.VERTEX:
            found[name] = start_from(value, graph)
        elif kind is Kind.ARRAYS or (value is None and not parameter.required) or (kind is Kind.VERTICES and not value):
            continue
        elif kind is Kind.VERTICES:
            found[name] = [graph.ids.parse(vertex) for vertex in value]
        elif kind is Kind.BY_VERTEX:
            found[name] = parse_numbers(value, graph, parameter.option.metavar or "NUMBER")
        elif kind is Kind.ARRAY:
            found[name] = read_array(value)
        else:
            found[name] = read_sizes(value) if kind is Kind.SIZES else value
    return found


def parse_numbers(texts: list[str] | None, graph: Any, what: str) -> dict[Any, float] | None:
    """VERTEX=NUMBER words to a dictionary by vertex id."""
    from isthmus.errors import OptionError

    if not texts:
        return None
    numbers: dict[Any, float] = {}
    for text in texts:
        vertex, _, number = text.rpartition("=")
        try:
            size = float(number) if "=" in text else None
        except ValueError:
            size = None
        if size is None:
            raise OptionError(f"expected VERTEX={what} such as 7=0.5, got {text!r}")
        number = graph.ids.parse(vertex)
        if number in numbers:
            raise OptionError(f"expected every vertex once, got {vertex} twice")
        numbers[number] = size
    return numbers


def start_from(word: str | None, graph: Any) -> Any:
    """The vertex that was named; without one, the vertex with the most out-edges, and a note."""
    from isthmus.cli.console import warn

    if word is not None:
        return graph.ids.parse(word)
    source = graph.busiest()
    warn(f"no source was given; starting from vertex {source}, which has the most edges ({graph.out_degree(source):,})")
    return source


def names(text: str | None) -> tuple[str, ...]:
    """Names between commas."""
    return tuple(name.strip() for name in text.split(",")) if text is not None else ()
