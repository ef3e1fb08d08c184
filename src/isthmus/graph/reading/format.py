"""The declaration of a format: its name, file endings, help text, the options it uses, and how it is written."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from isthmus.errors import OptionError
from isthmus.graph.ingest.edges import EdgeSource
from isthmus.messages import option
from isthmus.plugins import LAST

if TYPE_CHECKING:
    from isthmus.graph.export.outgoing import Outgoing
    from isthmus.graph.formats import ReadOptions

ALWAYS = ("format", "own")  # options that every format accepts
TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True)
class Option:
    """An option that only one format has. Its default gives its type: text, a whole number, a number, true or false."""

    name: str
    words: str
    default: Any = ""

    def value(self, given: Any, path: Path) -> Any:
        """The given value, converted to the type of the default; the shell gives text."""
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
    """A file format. `uses` are the fields of ReadOptions that it reads (None: all); others are refused by name.

    Where formats share an ending, a file is of the one whose `begins` it begins with, else of the one that has none.
    `save` writes the edges of a graph into an open file. A graph in several files, NAME with the endings `parts`, is
    known by the part that describes it; `save` finds the other files in `Outgoing.parts`. Write name, endings, begins,
    words, written, place, parts and described as literals: they are read without importing the format.
    """

    name: str
    open_path: Callable[[Path, ReadOptions], EdgeSource]
    endings: tuple[str, ...] = ()
    words: str = ""  # what such a file is, such as "a store"
    uses: tuple[str, ...] | None = None
    options: tuple[Option, ...] = ()
    place: int = LAST  # in lists
    begins: tuple[bytes, ...] = ()  # the first bytes of such a file
    save: Callable[[Outgoing, BinaryIO], None] | None = None
    written: str = ""  # what `save` writes: "text", which may go to standard output or be compressed, or "bytes"
    # Endings of the files that such a graph consists of: the edges first, the description last; (): one file.
    parts: tuple[str, ...] = ()
    # The ending of the part that describes the graph, and a word that is in it.
    described: tuple[str, bytes] | None = None

    def open(self, path: Path, options: ReadOptions) -> EdgeSource:
        """The edges of a file; an error if an option does not apply."""
        self.refuse(path, options)
        return self.open_path(path, options.with_own(self.own_values(path, options.own)))

    def part(self, path: Path, ending: str) -> Path:
        """The file with that ending, of a graph that is given by another part or by its name without an ending."""
        return part_of(path, self.parts, ending)

    def refuse(self, path: Path, options: ReadOptions) -> None:
        """Raise an error for options that the format does not use."""
        for each in fields(options):
            used = self.uses is None or each.name in self.uses or each.name in ALWAYS
            if not used and getattr(options, each.name) != each.default:
                raise OptionError(
                    f"{path}: is {self.words or f'of format {self.name}'}; {option(each.name)} does not apply to it"
                )

    def own_values(self, path: Path, given: Mapping[str, Any]) -> dict[str, Any]:
        """The values of the options that only this format has: as given, else their defaults."""
        known = {option.name: option for option in self.options}
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise unknown_option(unknown, f"format {self.name} has {', '.join(known) or 'no options'} of its own")
        return {name: option.value(given.get(name, option.default), path) for name, option in known.items()}


def part_of(path: Path, parts: tuple[str, ...], ending: str) -> Path:
    name = path.name.removesuffix(path.suffix) if path.suffix.lower() in parts else path.name
    return path.with_name(name + ending)


def unknown_option(names: list[str], more: str = "") -> OptionError:
    from isthmus.graph.ingest.build import CLEANING, READING

    known = sorted((READING | CLEANING) - {"own"})
    near = difflib.get_close_matches(names[0], known, 1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return OptionError(
        f"unknown option {', '.join(names)}{hint}; known: {', '.join(known)}{f'; {more}' if more else ''}"
    )
