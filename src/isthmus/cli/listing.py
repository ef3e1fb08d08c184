"""Help texts that list parts: the lists are made when help is shown, and nothing that they name is imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from typer.core import TyperCommand

from isthmus.plugins import Catalogue

RECIPES, FORMATS = "{recipes}", "{formats}"  # stand for the lists


def recipes() -> str:
    """`filter (whole partitions), ...`, those of other packages too."""
    return ", ".join(f"{name} ({words})" if words else name for name, words in catalogue("recipe").words().items())


def formats() -> str:
    """`text (an edge list as text), ...`"""
    return ", ".join(f"{name} ({words})" if words else name for name, words in catalogue("format").words().items())


def catalogue(noun: str) -> Catalogue[Any]:
    """A list of declarations alone; those that load parts import compilers."""
    package, kind = {"recipe": ("isthmus.policies.recipes", "Recipe"), "format": ("isthmus.graph.formats", "Format")}[noun]
    return Catalogue(noun, package, kind)


LISTS: dict[str, Callable[[], str]] = {RECIPES: recipes, FORMATS: formats}


class Command(TyperCommand):
    """A command whose help may contain lists."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for parameter in self.params:
            text = getattr(parameter, "help", None) or ""
            for mark, make in LISTS.items():
                if mark in text:
                    parameter.help = text.replace(mark, make())  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)
