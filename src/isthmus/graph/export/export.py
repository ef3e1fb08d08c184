"""Export: the edges of a graph into a file of another format, within a memory budget.

The format follows from the ending of the file's name. The file takes the place of an older one when it is complete.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from isthmus.checks import flag, path_of
from isthmus.errors import OptionError, StoreError
from isthmus.graph.export.outgoing import Outgoing
from isthmus.graph.formats import COMPRESSED, FORMATS, Format, built_in_endings
from isthmus.graph.graph import Graph
from isthmus.graph.store.files import fsync_folder, refuse_address
from isthmus.graph.store.replacement import replacing
from isthmus.messages import option, warn
from isthmus.progress import SILENT, Progress

CODECS = {".gz": "gzip", ".zst": "zstd"}
STREAM = ".tsv"  # the ending that a stream without a name gets


def export(
    graph: Graph,
    path: Any,
    format: str | None = None,
    *,
    weights: bool = True,
    header: bool | None = None,
    memory: str | int | None = None,
    progress: Progress = SILENT,
) -> None:
    """Write the edges of a graph to a file, or to an open binary file, within `memory`.

    `format` is the name of a format or an ending; by default it follows from the name of the file. `weights=False`
    leaves out the weights. `header` says whether text begins with a line of names; by default .csv does. What the
    format cannot hold is an error or, where it is only left out, a warning.
    """
    warn(exported(graph, path, format, weights=weights, header=header, memory=memory, progress=progress))


def exported(
    graph: Graph,
    path: Any,
    format: str | None = None,
    *,
    weights: bool = True,
    header: bool | None = None,
    memory: str | int | None = None,
    progress: Progress = SILENT,
) -> list[str]:
    """Like `export`; returns the notes for the user."""
    if not isinstance(graph, Graph):
        raise OptionError(f"export: expected a graph, got {type(graph).__name__}")
    file = None if hasattr(path, "write") else path_of("export", path)
    chosen, ending = chosen_format(file, format)
    if header is not None and chosen.name != "text":
        raise OptionError(f"{file or 'export'}: is {chosen.words}; {option('header')} does not apply to it")
    with graph.reading():
        edges = Outgoing(
            graph,
            memory,
            flag("weights", weights),
            ending,
            None if header is None else flag("header", header),
            progress,
        )
        progress.stage("writing", None, "arcs")
        assert chosen.save is not None
        if file is None:
            chosen.save(edges, path)
            return edges.notes
        refuse_address(file, "a graph")
        try:
            (save_parts if chosen.parts else save_one)(chosen, edges, file)
        except OSError as error:
            raise StoreError(f"{file}: cannot write the graph: {error.strerror or error}") from error
    return edges.notes


def save_one(chosen: Format, edges: Outgoing, path: Path) -> None:
    """Write the only file of a format."""
    assert chosen.save is not None
    with replacing(path) as fresh, compressed(fresh, CODECS.get(path.suffix.lower())) as out:
        chosen.save(edges, out)


def save_parts(chosen: Format, edges: Outgoing, path: Path) -> None:
    """Write the files of a format that has several.

    They are replaced one after the other when all are complete. The old description goes before that, and the new one
    comes last, so that a mix of old and new files cannot be opened.
    """
    assert chosen.save is not None
    old, removed = chosen.part(path, chosen.parts[-1]), False
    try:
        with ExitStack() as parts:  # the part that is entered first is replaced last
            for ending in reversed(chosen.parts):
                edges.parts[ending] = parts.enter_context(replacing(chosen.part(path, ending)))
            chosen.save(edges, edges.parts[chosen.parts[0]])
            for file in edges.parts.values():
                file.flush()
                os.fsync(file.fileno())
            if os.path.lexists(old):
                old.unlink()
                removed = True
                fsync_folder(old.parent)
    except OSError as error:
        if not removed:
            raise
        why = f"cannot replace the graph: {error.strerror or error}"
        raise StoreError(
            f"{path}: {why}; the old graph cannot be opened any more, {old.name} was removed; export it again"
        ) from error


def chosen_format(path: Path | None, format: str | None) -> tuple[Format, str]:
    """(The format to write, the ending that tells its variants apart)."""
    ending = ending_of(path)
    if format is not None and format not in FORMATS:
        ending, format = f".{format.lower().removeprefix('.')}", None
        if not savers(ending):
            raise OptionError(f"format: expected one of {', '.join(written())}, or an ending, got {ending[1:]!r}")
    chosen = FORMATS[format if format is not None else only_saver(path, ending)]
    if chosen.save is None:
        raise OptionError(f"format: {chosen.name} cannot be written; expected one of {', '.join(written())}")
    if chosen.written != "text" and (path is None or path.suffix.lower() in CODECS):
        expected = "a file" if path is None else "a name without .gz or .zst"
        raise OptionError(f"{path or 'standard output'}: {chosen.words} is binary; expected {expected}")
    return chosen, ending


def ending_of(path: Path | None) -> str:
    """The ending of a name, before one that only tells how it is compressed."""
    if path is None:
        return STREAM
    return next((ending.lower() for ending in reversed(path.suffixes) if ending.lower() not in COMPRESSED), "")


def only_saver(path: Path | None, ending: str) -> str:
    """The one format that is written with this ending; OptionError if there are none or several."""
    names = savers(ending)
    if len(names) > 1:
        raise OptionError(f"{path or 'export'}: could be {' or '.join(names)}; give {option('format')}")
    if not names:
        known = ", ".join(sorted(ending for ending in built_in_endings() if savers(ending)))
        raise OptionError(f"{path or 'export'}: expected a name that ends in {known}")
    return names[0]


def written() -> list[str]:
    """Names of the built-in formats that can be written."""
    return [name for name, each in FORMATS.declared.items() if each.facts.get("written")]


def savers(ending: str) -> list[str]:
    """Formats with this ending that can be written; of other packages only if no built-in one has the ending.

    A format of several files is written only if it is named.
    """
    if ending in built_in_endings():
        return [
            name
            for name in built_in_endings()[ending]
            if name in written() and not FORMATS.declared[name].facts.get("parts")
        ]
    return [
        name
        for name in FORMATS
        if name not in FORMATS.declared and ending in FORMATS[name].endings and FORMATS[name].save is not None
    ]


@contextmanager
def compressed(file: BinaryIO, codec: str | None) -> Iterator[Any]:
    """The file, or one that compresses into it."""
    if codec is None:
        yield file
        return
    import pyarrow as pa

    with pa.CompressedOutputStream(pa.PythonFile(LeftOpen(file), "w"), codec) as out:
        yield out


class LeftOpen:
    """A file that stays open when a stream into it is closed: it must still be synced."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self.write, self.flush, self.tell = file.write, file.flush, file.tell

    def close(self) -> None:
        pass
