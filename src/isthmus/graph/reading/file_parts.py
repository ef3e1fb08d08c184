"""Several files as one input: a pattern such as `edges-*.parquet`. Files are read in the order of their names."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from isthmus.errors import GraphFormatError
from isthmus.graph.formats import FORMATS, ReadOptions, format_of
from isthmus.graph.formats.text import TextSource
from isthmus.graph.ingest.edges import EdgeBlock, EdgeSource
from isthmus.graph.reading.arrow_columns import WIDTHS
from isthmus.kernels.text import edge_text as kernels
from isthmus.threads import Pool

TABLES = {"parquet", "arrow"}


def open_pattern(pattern: str, options: ReadOptions) -> EdgeSource:
    """The edges of all files whose names match a pattern."""
    paths = [Path(path) for path in sorted(glob.glob(pattern))]
    if not paths:
        raise GraphFormatError(f"{pattern}: no such file, and no file matches it as a pattern")
    formats = {options.format or format_of(path) for path in paths}
    if len(paths) > 1 and not (formats <= TABLES or formats == {"text"}):
        raise GraphFormatError(
            f"{pattern}: expected files of text, or of Parquet or Arrow, got {len(paths)} of "
            f"{', '.join(sorted(formats))}"
        )
    first = FORMATS[sorted(formats)[0]]
    if len(paths) == 1:
        return first.open(paths[0], options)
    first.refuse(Path(pattern), options)
    first.own_values(Path(pattern), options.own)
    if formats == {"text"}:
        return TextParts(pattern, paths, options)
    from isthmus.graph.formats.arrow_files import open_parts

    return open_parts(pattern, paths, options)


class TextParts(EdgeSource):
    """Edges from several text files. The first one decides whether ids are integers or strings."""

    unit = "B"
    replayable = True

    def __init__(self, pattern: str, paths: list[Path], options: ReadOptions) -> None:
        self.name, self._paths = pattern, paths
        first = TextSource(paths[0], options)
        self._options = replace(options, ids=first.ids)
        self.ids, self.weighted, self.vertices, self.notes = first.ids, first.weighted, first.vertices, first.notes
        self.total = sum(path.stat().st_size for path in paths)
        self._reports: list[dict[str, Any]] = []

    def blocks(self, pool: Pool) -> Iterator[EdgeBlock]:
        self.signed, huge, self.weight_dtype, self._reports = False, False, WIDTHS[0], []
        for path in self._paths:
            part = TextSource(path, self._options)
            if part.weighted != self.weighted:
                raise GraphFormatError(
                    f"{path}: expected weights as in {self._paths[0]}, found {'some' if part.weighted else 'none'}"
                )
            part.salt = self.salt
            before = part.notes  # about the first lines; those of the first file stand for all
            yield from part.blocks(pool)
            self.signed |= part.signed
            huge |= bool(part.seen & kernels.SAW_HUGE_ID)
            if self.signed and huge:
                raise GraphFormatError(f"{self.name}: ids below 0 and above 2**63 - 1; no 64-bit type holds both")
            self.weight_dtype = max(self.weight_dtype, part.weight_dtype, key=WIDTHS.index)
            self.notes += tuple(note for note in part.notes if note not in before)
            self._reports.append(part.report())

    def report(self) -> dict[str, Any]:
        return {"format": "text", "files": len(self._paths), "lines": sum(report["lines"] for report in self._reports)}
