"""Ways in: each module here reads one kind of input as an `EdgeSource`.

A further format is one new module and one entry in FORMATS. Modules are loaded when they are needed.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isthmus.errors import GraphFormatError, OptionError
from isthmus.graph.edges import EdgeSource

# name: (module, file endings); a trailing .gz or .zst is looked through
FORMATS: dict[str, tuple[str, tuple[str, ...]]] = {
    "text": ("text", (".txt", ".tsv", ".csv", ".el", ".wel", ".edges", ".edgelist")),
    "parquet": ("columns", (".parquet", ".pq")),
    "arrow": ("columns", (".arrow", ".feather", ".ipc", ".arrows")),
    "graphalytics": ("graphalytics", (".properties", ".e", ".v")),
    "adjacency": ("adjacency", (".adj", ".adjlist")),
    "gapbs": ("gapbs", (".sg", ".wsg")),
    "isthmus": ("stored", (".isthmus",)),
}
COMPRESSED = (".gz", ".zst")
# Endings of formats that would otherwise be taken for text and give a wrong graph.
REFUSED = {
    ".bz2": "compressed with bzip2; recompress it as .gz or .zst",
    ".xz": "compressed with xz; recompress it as .gz or .zst",
    ".zip": "a zip archive; unpack it",
    ".mtx": "Matrix Market; read it with scipy.io.mmread and hand the matrix to isthmus.ingest",
    ".gr": "a DIMACS graph, which is not read yet",
    ".graph": "a METIS graph, which is not read yet",
    ".graphml": "GraphML, which is not read yet",
}


@dataclass(frozen=True)
class ReadOptions:
    """How to understand an input. Columns are numbers counted from 1, or names from a header."""

    format: str | None = None
    source: str | int | None = None
    target: str | int | None = None
    weight: str | int | None = None
    header: bool = False
    ids: str = "auto"  # auto, int or string
    vertices: int | None = None  # ids are 0 .. vertices - 1
    comments: str = "#%"
    allow_negative: bool = False
    max_expansion: float = 200  # a decompressed file may be this many times its size, or 1 GiB

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMATS:
            raise OptionError(f"format: expected one of {', '.join(FORMATS)}, got {self.format!r}")
        if self.ids not in ("auto", "int", "string"):
            raise OptionError(f"ids: expected auto, int or string, got {self.ids!r}")
        if self.vertices is not None and self.vertices < 0:
            raise OptionError(f"vertices: expected at least 0, got {self.vertices}")
        if self.vertices is not None and self.ids == "string":
            raise OptionError("vertices: a count means ids 0, 1, 2, ...; it does not go with string ids")


def open_source(what: Any, options: ReadOptions) -> EdgeSource:
    """The source for a path, or for anything of Python's that holds edges."""
    if isinstance(what, EdgeSource):
        return what
    if not isinstance(what, str | Path):
        from isthmus.graph.formats import tables

        return tables.open_object(what, options)
    path = Path(what)
    if not path.exists():
        raise GraphFormatError(f"{path}: no such file")
    if not path.is_file() and not path.is_dir():
        raise GraphFormatError(f"{path}: is a pipe or a device; expected a file, which can be read more than once")
    if options.format is None and path.suffix.lower() in REFUSED:
        raise GraphFormatError(f"{path}: {REFUSED[path.suffix.lower()]} (--format text reads it as an edge list all the same)")
    name = options.format or format_of(path)
    module = importlib.import_module(f"isthmus.graph.formats.{FORMATS[name][0]}")
    source: EdgeSource = module.open_path(path, options)
    return source


def refuse(path: Path, options: ReadOptions, *names: str) -> None:
    """Options that a format has no use for are mistakes, not to be passed over."""
    for name in names:
        if getattr(options, name):
            raise OptionError(f"{path}: --{name} does not apply to this format")


def format_of(path: Path) -> str:
    """The format a path's ending means; a folder takes it from the files in it."""
    endings = [ending for ending in path.suffixes if ending.lower() not in COMPRESSED]
    for name, (_, suffixes) in FORMATS.items():
        if endings and endings[-1].lower() in suffixes:
            return name
    if path.is_dir():
        inside = {format_of(file) for file in sorted(path.iterdir()) if file.is_file() and file.name[0] not in "._"}
        if len(inside) == 1:
            return inside.pop()
        raise GraphFormatError(f"{path}: expected a folder of Parquet or Arrow parts, found {', '.join(sorted(inside)) or 'nothing'}")
    return "text"
