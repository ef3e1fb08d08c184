"""Input formats: each file here reads one kind of input as an `EdgeSource`, and declares it by a `Format`.

Declarations are read without importing the files; one is imported when an input needs it. Other packages add formats by
the entry points `isthmus.formats`; see docs/plugins.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from isthmus.checks import above_0, flag, is_real, whole
from isthmus.errors import GraphFormatError, OptionError, PluginError
from isthmus.graph.ingest.edges import EdgeSource
from isthmus.graph.reading.format import Format, Option, part_of, unknown_option
from isthmus.graph.store.files import address, is_address
from isthmus.messages import option
from isthmus.plugins import Catalogue, entry_points

__all__ = ["FORMATS", "Format", "Option", "ReadOptions", "format_of", "open_source"]

COMPRESSED = (".gz", ".zst")  # the format is given by the ending before these
OPENING = 64  # bytes that tell formats apart
DESCRIPTION = 1 << 16  # bytes in which a description has its word
DISTINCT = 8  # bytes that no edge list begins with by chance
# Endings of formats that would otherwise be read as text and give a wrong graph.
REFUSED = {
    ".bz2": "compressed with bzip2; recompress it as .gz or .zst",
    ".xz": "compressed with xz; recompress it as .gz or .zst",
    ".zip": "a zip archive; unpack it",
}


@dataclass(frozen=True)
class ReadOptions:
    """How to understand an input. Columns are numbers counted from 1, or names from a header."""

    format: str | None = None  # the input's format; None: by the ending of its name
    source: str | int | None = None  # the column of the edges' sources: its name, or its number counted from 1
    target: str | int | None = None  # the column of the edges' targets
    weight: str | int | None = None  # the column of the weights; "none": read none
    header: bool = False  # the first line of a text has the names of the columns
    ids: str = "auto"  # the type of the vertex ids: auto, int or string
    vertices: int | None = None  # how many vertices there are; their ids are 0 .. vertices - 1
    comments: str = "#%"  # characters that start a comment line
    allow_negative: bool = False  # accept negative weights, which algorithms of shortest paths refuse
    max_expansion: float = 200  # a decompressed file may be this many times its size, or 1 GiB
    missing: str = "error"  # a row or line without a source or target: error, or skip to leave it out
    own: Mapping[str, Any] = field(default_factory=dict)  # options that the format itself declares

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMATS:
            raise OptionError(f"format: expected one of {FORMATS.unknown(self.format)}")
        if self.ids not in ("auto", "int", "string"):
            raise OptionError(f"ids: expected auto, int or string, got {self.ids!r}")
        if self.vertices is not None and not is_real(self.vertices):
            what = type(self.vertices).__name__
            raise OptionError(f"vertices: expected how many there are, whose ids are 0, 1, 2, ..., got {what}")
        if self.vertices is not None:
            object.__setattr__(self, "vertices", whole("vertices", self.vertices, 0))
        for name in ("source", "target", "weight"):
            column = getattr(self, name)
            if not isinstance(column, str | int | np.integer | None) or isinstance(column, bool):
                raise OptionError(f"{name}: expected the name or the number of a column, got {column!r}")
        if not isinstance(self.comments, str):
            raise OptionError(f"comments: expected characters that start a comment line, got {self.comments!r}")
        above_0("max_expansion", self.max_expansion)
        if self.missing not in ("error", "skip"):
            raise OptionError(f"missing: expected error or skip, got {self.missing!r}")
        flag("header", self.header)
        flag("allow_negative", self.allow_negative)
        if self.vertices is not None and self.ids == "string":
            raise OptionError("vertices: a count means ids 0, 1, 2, ...; it does not go with string ids")

    def with_own(self, own: Mapping[str, Any]) -> ReadOptions:
        return replace(self, own=own)


def is_format(part: Any) -> bool:
    """Whether a plugin's part is a format; an error if it declares an ending or option that is taken."""
    if not isinstance(part, Format):
        return False
    taken = sorted(set(part.endings) & set(built_in_endings()))
    if taken:
        raise PluginError(
            f"format {part.name!r} declares the ending {taken[0]}, which format {built_in_endings()[taken[0]][0]} has"
        )
    reserved = sorted({option.name for option in part.options} & {each.name for each in fields(ReadOptions)})
    if reserved:
        raise PluginError(f"format {part.name!r} declares the option {reserved[0]}, which all formats have")
    return True


FORMATS: Catalogue[Format] = Catalogue("format", __name__, "Format", is_format)


def open_source(what: Any, options: ReadOptions) -> EdgeSource:
    """The edge source for a path, or for a Python object that holds edges."""
    if not isinstance(what, str | Path):
        if options.own:
            raise unknown_option(sorted(options.own))
        if isinstance(what, EdgeSource):
            return what
        from isthmus.graph.reading.python_objects import open_object

        return open_object(what, options)
    path = Path(what)
    if not path.exists():
        if (
            described := by_description(path, [options.format] if options.format else list(FORMATS.declared))
        ) is not None:
            return FORMATS[described].open(path, options)
        if set(str(what)) & set("*?["):
            from isthmus.graph.reading import file_parts

            return file_parts.open_pattern(str(what), options)
        if is_address(what):
            raise GraphFormatError(
                f"{address(what)}: is an address, expected a file on this machine; download it first"
            )
        raise GraphFormatError(f"{path}: no such file")
    if not path.is_file() and not path.is_dir():
        raise GraphFormatError(f"{path}: is a pipe or a device; expected a file, which can be read more than once")
    return FORMATS[options.format or format_of(path)].open(path, options)


def format_of(path: Path) -> str:
    """The format of a path by its ending; for a folder, by the files in it."""
    known = ending_means(path)
    if known is not None:
        return known
    if path.suffix.lower() in REFUSED:
        raise GraphFormatError(
            f"{path}: {REFUSED[path.suffix.lower()]} ({option('format', 'text')} reads it as an edge list all the same)"
        )
    if path.is_dir():
        inside = {format_of(file) for file in sorted(path.iterdir()) if file.is_file() and file.name[0] not in "._"}
        if len(inside) == 1:
            return inside.pop()
        raise GraphFormatError(
            f"{path}: expected a folder of Parquet or Arrow parts, found {', '.join(sorted(inside)) or 'nothing'}"
        )
    return by_opening(opening(path), [name for name in FORMATS.declared if name != "text"], DISTINCT) or "text"


def ending_means(path: Path) -> str | None:
    """The format that has a path's ending. Plugins are asked only if no built-in format has it."""
    endings = [ending.lower() for ending in path.suffixes if ending.lower() not in COMPRESSED]
    if not endings:
        return None
    known = built_in_endings()
    if endings[-1] in known:
        return one_of(path, known[endings[-1]])
    return next((other.name for other in others() if endings[-1] in other.endings), None)


def one_of(path: Path, names: list[str]) -> str:
    """The format of a file among those with its ending: by a file that describes it, or by its first bytes."""
    if len(names) == 1:
        return names[0]
    if (described := by_description(path, names)) is not None:
        return described
    begun = opening(path)
    plain = [name for name in names if not begins(name) and not described_by(name)]
    found = by_opening(begun, names) or (plain[0] if plain else None)
    if found is None:
        kinds = " or ".join(f"{FORMATS.declared[name].facts['words']} ({option('format', name)})" for name in names)
        raise GraphFormatError(
            f"{path}: expected {kinds}, got {f'a file that begins with {begun[:8]!r}' if begun else 'an empty file'}"
        )
    return found


def by_opening(begun: bytes, names: list[str], least: int = 1) -> str | None:
    """The format whose files begin with these bytes, by beginnings of at least `least` bytes."""
    return next(
        (name for name in names if any(len(mark) >= least and begun.startswith(mark) for mark in begins(name))), None
    )


def by_description(path: Path, names: list[str]) -> str | None:
    """The format whose description a graph has: beside this file, in it, or under this name with another ending."""
    for name in names:
        ending, word = described_by(name) or ("", b"")
        if ending and word in opening(part_of(path, FORMATS.declared[name].facts["parts"], ending), DESCRIPTION):
            return name
    return None


def described_by(name: str) -> tuple[str, bytes] | None:
    """The ending and a word of the file that describes a graph of this format; None if there is no such file."""
    return FORMATS.declared[name].facts.get("described") if name in FORMATS.declared else None


def begins(name: str) -> tuple[bytes, ...]:
    return tuple(FORMATS.declared[name].facts.get("begins", ()))


def opening(path: Path, size: int = OPENING) -> bytes:
    """The first bytes of a file, decompressed; none if it cannot be read, which its format will report."""
    from isthmus.graph.reading.text_lines import CODECS, without_mark_bytes

    try:
        with path.open("rb") as file:
            codec = CODECS.get(path.suffix.lower())
            if codec is None:
                return without_mark_bytes(file.read(size))
            import pyarrow as pa

            return without_mark_bytes(bytes(pa.CompressedInputStream(pa.PythonFile(file, "r"), codec).read(size)))
    except (OSError, ValueError):  # ValueError: a name with a null byte
        return b""


def built_in_endings() -> dict[str, list[str]]:
    """The built-in formats of each ending."""
    found: dict[str, list[str]] = {}
    for name, each in FORMATS.declared.items():
        for ending in each.facts["endings"]:
            found.setdefault(ending, []).append(name)
    return found


def others() -> Iterator[Format]:
    """Formats that are not built in. One that cannot be loaded gives a warning, since its endings are unknown."""
    for name in [*FORMATS, *(entry.name for entry in entry_points(FORMATS.group))]:
        if name in FORMATS.declared:
            continue
        try:
            yield FORMATS[name]
        except PluginError as error:
            warnings.warn(f"{error}; files are read as if it were not installed", stacklevel=2)
