"""Signatures of commands that are made from declarations: typer reads a command's options from its signature.

A parameter whose type is a dataclass stands for the options that are its fields, and `**options: Unpack[RunOptions]`
for the options of a run that the shell has.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from typing import Any, get_args, get_type_hints

from isthmus.cli.shell_options import names, run_option_of
from isthmus.programs.parameter import Kind
from isthmus.runtime.options import CALL, SESSION, RunParameter

KEYWORD, REQUIRED = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty


class ShellSignature:
    """The options of the shell that give a function its arguments. Options of a run named in `without` are left out."""

    def __init__(self, function: Callable[..., Any], without: tuple[str, ...] = ()) -> None:
        given = list(inspect.signature(function, eval_str=True).parameters.values())
        self._groups: dict[str, Any] = {each.name: each.annotation for each in given if is_dataclass(each.annotation)}
        own, run = list[inspect.Parameter](), list[str]()
        for each in given:
            if each.kind is each.VAR_KEYWORD:  # **options: Unpack[Class]
                run += [name for name in get_args(each.annotation)[0].__annotations__ if name not in without]
            else:
                own += fields_of(each.annotation) if each.name in self._groups else [each]
        own.sort(key=lambda each: each.default is not REQUIRED)
        first = sum(each.default is REQUIRED for each in own)
        self.parameters = [*own[:first], *shell_options(SESSION, run), *own[first:], *shell_options(CALL, run)]
        self._names = {name for name in run if {**SESSION, **CALL}[name].option.kind is Kind.NAMES}

    def arguments(self, given: dict[str, Any]) -> dict[str, Any]:
        """The function's arguments, from options as the shell has parsed them."""
        given = {name: names(value) if name in self._names else value for name, value in given.items()}
        made = {
            name: cls(**{field.name: given.pop(field.name) for field in fields(cls) if field.init})
            for name, cls in self._groups.items()
        }
        return {**made, **given}


def shell_options(known: dict[str, RunParameter], names: list[str]) -> list[inspect.Parameter]:
    """The options of a run among `names` that the shell has, in the order in which they are declared."""
    return [run_option_of(each) for name, each in known.items() if name in names and each.option.in_shell]


def fields_of(cls: Any) -> list[inspect.Parameter]:
    """The fields of a dataclass of options, as parameters."""
    hints = get_type_hints(cls, include_extras=True)
    return [
        inspect.Parameter(
            each.name,
            KEYWORD,
            default=REQUIRED if each.default is MISSING else each.default,
            annotation=hints[each.name],
        )
        for each in fields(cls)
        if each.init
    ]


def command_of(function: Callable[..., None]) -> Callable[..., None]:
    """A function as a command with the options that its signature stands for."""
    signature = ShellSignature(function)

    def run(**given: Any) -> None:
        function(**signature.arguments(given))

    return with_signature(run, function, signature.parameters)


def compose(own: Callable[..., Any], act: Callable[..., None], without: tuple[str, ...] = ()) -> Callable[..., None]:
    """A command named and described as `own`, with the options of both; `act` is first given what `own` returns."""
    mine, theirs = ShellSignature(own), ShellSignature(partial(act, None), without)

    def run(**given: Any) -> None:
        made = own(**{each.name: given.pop(each.name) for each in mine.parameters})
        act(made, **theirs.arguments(given))

    return with_signature(run, own, [*mine.parameters, *theirs.parameters])


def with_signature(
    run: Callable[..., None], named: Callable[..., Any], parameters: Iterable[inspect.Parameter]
) -> Callable[..., None]:
    """`run`, which takes keyword arguments, with these parameters, and the name and docstring of another function."""
    parameters = [parameter.replace(kind=KEYWORD) for parameter in parameters]
    run.__name__, run.__doc__ = named.__name__, named.__doc__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
