"""Help texts with lists of recipes or formats. The lists are made when help is shown, without importing the parts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from typer.core import TyperCommand, TyperGroup

from isthmus.cli import verbosity
from isthmus.errors import OptionError
from isthmus.plugins import Catalogue

RECIPES, FORMATS = "{recipes}", "{formats}"  # placeholders for the lists


WHERE = {
    "algorithm": ("isthmus.programs.algorithms", "algorithm"),
    "format": ("isthmus.graph.formats", "Format"),
    "recipe": ("isthmus.policies.recipes", "Recipe"),
}  # packages that hold parts of each kind, and what declares one


def recipes() -> str:
    """`filter (whole partitions), ...`, with recipes of other packages."""
    return ", ".join(f"{name} ({words})" if words else name for name, words in catalogue("recipe").words().items())


def recipes_beginning(incomplete: str) -> list[str]:
    """Names of recipes, for completion."""
    return [name for name in catalogue("recipe").words() if name.startswith(incomplete)]


def formats() -> str:
    """`text (an edge list as text), ...`"""
    return ", ".join(f"{name} ({words})" if words else name for name, words in catalogue("format").words().items())


@cache
def catalogue(noun: str) -> Catalogue[Any]:
    """A catalogue that only reads declarations; loading the parts would import compilers."""
    return Catalogue(noun, *WHERE[noun])


def aliases() -> dict[str, str]:
    """Other names of algorithms, with the name each stands for."""
    return {
        each.facts["alias"]: name for name, each in catalogue("algorithm").declared.items() if each.facts.get("alias")
    }


LISTS: dict[str, Callable[[], str]] = {RECIPES: recipes, FORMATS: formats}


def show_flags_alone(command: Any, ctx: Any) -> None:
    """Help shows a flag without a type: it takes no value. Some versions of typer would write <bool> behind it."""
    for parameter in command.get_params(ctx):
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""


class Group(TyperGroup):
    """A group of commands."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        show_flags_alone(self, ctx)
        super().format_help(ctx, formatter)


class Command(TyperCommand):
    """A command whose help may contain lists, and that has --quiet and --verbose. Most options can be given once."""

    def __init__(self, *given: Any, params: list[Any] | None = None, **named: Any) -> None:
        super().__init__(*given, params=[*(params or []), *verbosity.options()], **named)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        words = list(args)
        rest = super().parse_args(ctx, args)
        for parameter in self.params:
            given = [word for word in words if word.split("=")[0] in parameter.opts]
            if (
                len(given) > 1
                and not getattr(parameter, "multiple", False)
                and not getattr(parameter, "is_flag", False)
            ):
                raise OptionError(f"{parameter.opts[-1]}: expected once, got it {len(given)} times")
        return rest

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for parameter in self.params:
            text = getattr(parameter, "help", None) or ""
            for mark, make in LISTS.items():
                if mark in text:
                    parameter.help = text.replace(mark, make())  # type: ignore[attr-defined]
        show_flags_alone(self, ctx)
        super().format_help(ctx, formatter)
