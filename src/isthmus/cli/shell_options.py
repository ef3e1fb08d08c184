"""Options of the shell from declared parameters, and the values that functions take from what the shell has parsed."""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isthmus.cli import help_lists
from isthmus.programs.parameter import Kind, Parameter
from isthmus.runtime.options import RunParameter

if TYPE_CHECKING:
    from isthmus.programs.algorithm import Algorithm

Given = dict[str, Any]  # options by name
COMPLETIONS = {"RECIPE": help_lists.recipes_beginning}  # by metavar


def option_of(parameter: Parameter, panel: str | None = None) -> inspect.Parameter:
    """A parameter as an option of the shell; `panel` is its heading in help."""
    option, default, kind = parameter.option, parameter.default, parameter.option.kind
    flag, metavar, hint = option.flag or f"--{parameter.name.replace('_', '-')}", option.metavar, parameter.type
    if kind is Kind.VERTEX:
        hint, default = str | None, None
    elif kind in (Kind.VERTICES, Kind.BY_VERTEX):
        hint = list[str] if parameter.required else list[str] | None
        metavar = f"VERTEX={metavar or 'NUMBER'}" if kind is Kind.BY_VERTEX else metavar
    elif kind in (Kind.ARRAY, Kind.ARRAYS):
        hint = Path if parameter.required else Path | None
    elif kind in (Kind.SIZES, Kind.NAMES):
        hint, default = (str, default) if parameter.required else (str | None, None)
    # Unnamed, typer adds a --no- form, which an option that is on by default needs.
    flags = [] if default is True else [flag]
    shown = typer.Option(
        *flags,
        help=option.help,
        min=option.least,
        metavar=metavar,
        show_default=not parameter.required,
        autocompletion=COMPLETIONS.get(metavar or ""),
        rich_help_panel=panel,
    )
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(parameter.name, keyword, default=default, annotation=Annotated[hint, shown])


def run_option_of(parameter: RunParameter) -> inspect.Parameter:
    """An option of a run as an option of the shell."""
    option = parameter.option
    return option_of(replace(parameter, type=option.shell_type or parameter.type), option.panel)


def read(algorithm: Algorithm, given: Given, graph: Any) -> Given:
    """Options as an algorithm takes them: words that name vertices become vertex ids, files become arrays."""
    from isthmus.cli.array_files import read_arrays

    found: Given = {}
    all_names = [parameter.name for parameter in algorithm.parameters]
    for name, kind in ((each.name, each.option.kind) for each in algorithm.parameters):
        if kind is Kind.ARRAYS and given[name] is not None:
            found |= read_arrays(given[name], name, *(other for other in all_names if other != name))
    for parameter in algorithm.parameters:
        name, kind, value = parameter.name, parameter.option.kind, given[parameter.name]
        absent = (value is None and not parameter.required) or (kind is Kind.VERTICES and not value)
        if kind is Kind.VERTEX or (kind is not Kind.ARRAYS and not absent):
            found[name] = value_of(parameter, value, graph)
    return found


def value_of(parameter: Parameter, value: Any, graph: Any) -> Any:
    """A value as an algorithm takes it."""
    from isthmus.cli.array_files import read_array, read_sizes

    match parameter.option.kind:
        case Kind.VERTEX:
            return start_from(value, graph)
        case Kind.VERTICES:
            return [graph.ids.parse(vertex) for vertex in value]
        case Kind.BY_VERTEX:
            return parse_numbers(value, graph, parameter.option.metavar or "NUMBER")
        case Kind.ARRAY:
            return read_array(value)
        case Kind.SIZES:
            return read_sizes(value)
        case Kind.NAMES:
            return names(value)
    return value


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
