"""What a format declares: its name, file endings, words for help, and the options it understands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isthmus.errors import OptionError
from isthmus.graph.edges import EdgeSource
from isthmus.plugins import LAST

if TYPE_CHECKING:
    from isthmus.graph.formats import ReadOptions

ALWAYS = ("format", "own")  # options that are about formats
TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True)
class Option:
    """An option of a format's own. Its default says what kind it is: text, a whole number, a number or a truth value."""

    name: str
    words: str
    default: Any = ""

    def value(self, given: Any, path: Path) -> Any:
        """What was given, as the kind of the default; the shell gives text."""
        kind = type(self.default)
        if self.default is None or isinstance(given, kind):
            return given
        try:
            return TRUTH[given.lower()] if kind is bool else kind(given)
        except (KeyError, ValueError, TypeError, AttributeError):
            what = {bool: "true or false", int: "a whole number", float: "a number"}.get(kind, kind.__name__)
            raise OptionError(f"{path}: option {self.name}: expected {what}, got {given!r}") from None


@dataclass(frozen=True)
class Format:
    """A kind of file. `uses` are the fields of ReadOptions that `open_path` looks at (None: all); others are refused by name.

    Give name, endings, words and place as literals: they are read without importing the format.
    """

    name: str
    open_path: Callable[[Path, ReadOptions], EdgeSource]
    endings: tuple[str, ...] = ()
    words: str = ""  # what such a file is: "a store"
    uses: tuple[str, ...] | None = None
    options: tuple[Option, ...] = ()
    place: int = LAST  # in lists

    def open(self, path: Path, options: ReadOptions) -> EdgeSource:
        """The edges of a file, once the options are known to mean something."""
        self.refuse(path, options)
        return self.open_path(path, options.with_own(self.settled(path, options.own)))

    def refuse(self, path: Path, options: ReadOptions) -> None:
        """Options that a format has no use for are mistakes, not to be passed over."""
        for each in fields(options):
            used = self.uses is None or each.name in self.uses or each.name in ALWAYS
            if not used and getattr(options, each.name) != each.default:
                flag = each.name.replace("_", "-")
                raise OptionError(f"{path}: is {self.words or f'of format {self.name}'}; --{flag} does not apply to it")

    def settled(self, path: Path, given: Mapping[str, Any]) -> dict[str, Any]:
        """Values of all options of its own."""
        known = {option.name: option for option in self.options}
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise unknown_option(unknown, f"format {self.name} has {', '.join(known) or 'no options'} of its own")
        return {name: option.value(given.get(name, option.default), path) for name, option in known.items()}


def unknown_option(names: list[str], more: str = "") -> OptionError:
    from isthmus.graph.build import CLEANING, READING

    known = ", ".join(sorted((READING | CLEANING) - {"own"}))
    return OptionError(f"unknown option {', '.join(names)}; known: {known}{f'; {more}' if more else ''}")
