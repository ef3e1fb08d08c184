"""Programs as the shell names them: `sssp:source=7,cutoff=20`. Options are those that the algorithm declares."""

from __future__ import annotations

import difflib
import types
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

if TYPE_CHECKING:
    from isthmus.programs.algorithm import Algorithm
    from isthmus.programs.parameter import Parameter

SYNTAX = "NAME[:OPTION=VALUE,...]"
TRUTH = {"true": True, "yes": True, "1": True, "": True, "false": False, "no": False, "0": False}


def parse(text: str, graph: Any) -> Any:
    """A program to maintain, from its text."""
    from isthmus.cli.algorithms import named
    from isthmus.cli.shell_options import read
    from isthmus.errors import OptionError
    from isthmus.programs.algorithm import Kind
    from isthmus.stream.maintain.program_request import ProgramRequest

    name, _, rest = text.partition(":")
    algorithm = named(name.strip())
    if algorithm is None or algorithm.live is None:
        raise OptionError(f"--program {text}: {unknown(name.strip(), algorithm)}")
    words = options_of(text, rest, algorithm)
    title = words.pop("name", [None])[-1]
    given: dict[str, Any] = {}
    for parameter in algorithm.parameters:
        kind, values = parameter.option.kind, words.get(parameter.name)
        if kind in (Kind.VERTICES, Kind.BY_VERTEX):
            given[parameter.name] = values
        elif kind is Kind.PLAIN:
            given[parameter.name] = (
                None if values is None else plain(parameter, once(text, parameter.name, values), text)
            )
        else:
            given[parameter.name] = None if values is None else once(text, parameter.name, values)
    chosen = {
        parameter.name
        for parameter in algorithm.parameters
        if parameter.name in words or parameter.option.kind is Kind.VERTEX
    }
    found = read(algorithm, given, graph)
    return ProgramRequest(algorithm, {option: value for option, value in found.items() if option in chosen}, title)


def unknown(name: str, algorithm: Algorithm | None) -> str:
    """The message about a program that a stream does not maintain."""
    from isthmus.programs.catalogue import ALGORITHMS

    known = [each for each in ALGORITHMS.names() if ALGORITHMS[each].live is not None]
    if algorithm is not None:
        reason = f": {algorithm.not_live}" if algorithm.not_live else ""
        return (
            f"{algorithm.name} cannot be kept current{reason}; run it on a saved graph. Kept current are "
            f"{', '.join(known)}"
        )
    near = difflib.get_close_matches(name, known, 1)
    return (
        f"no algorithm {name!r}; did you mean {near[0]}?"
        if near
        else f"no algorithm {name!r}; expected one of {', '.join(known)}"
    )


def options_of(text: str, rest: str, algorithm: Algorithm) -> dict[str, list[str]]:
    """Values by option. A word without an option continues the value before it, so that an id may contain a comma."""
    from isthmus.errors import OptionError

    known = [*(parameter.name for parameter in algorithm.parameters), "name"]
    found: dict[str, list[str]] = {}
    last = None
    for word in rest.split(",") if rest else []:
        option, equals, value = word.partition("=")
        option = option.strip().replace("-", "_")
        if option not in known:
            if last is not None and not equals:
                found[last][-1] += f",{word}"
                continue
            near = difflib.get_close_matches(option, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(known)}"
            raise OptionError(f"--program {text}: {algorithm.name} has no option {option!r}; {hint}")
        found.setdefault(option, []).append(value)
        last = option
    return found


def once(text: str, name: str, values: list[str]) -> str:
    from isthmus.errors import OptionError

    if len(values) > 1:
        raise OptionError(f"--program {text}: {name}: expected once, got it {len(values)} times")
    return values[0]


def plain(parameter: Parameter, word: str, text: str) -> Any:
    """A number, a word or a flag, of the type that the parameter declares."""
    from isthmus.errors import OptionError

    kinds = [parameter.type]
    if get_origin(parameter.type) in (Union, types.UnionType):
        kinds = [kind for kind in get_args(parameter.type) if kind is not type(None)]
    try:
        if kinds[0] is bool:
            return TRUTH[word.strip().lower()]
        value = kinds[0](word)
    except (KeyError, ValueError, TypeError):
        what = {bool: "true or false", int: "a whole number", float: "a number"}.get(
            kinds[0], getattr(kinds[0], "__name__", "a value")
        )
        raise OptionError(f"--program {text}: {parameter.name}: expected {what}, got {word!r}") from None
    least = parameter.option.least
    if least is not None and value < least:
        raise OptionError(f"--program {text}: {parameter.name}: expected at least {least:g}, got {word}")
    return value
