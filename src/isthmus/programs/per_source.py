"""Answers with one column per source, in the form that a stream keeps current: a program for each source.

A run from scratch lets all sources share every read. After a batch each source has its own few vertices to look at, so
there is nothing to share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from isthmus.errors import OptionError
from isthmus.programs.column import Array, Column
from isthmus.programs.program import Program


class BySource:
    """A program for each source. The column of a source is called `prefix` and its id."""

    def __init__(
        self,
        name: str,
        columns: tuple[Column, ...],
        prefix: str,
        sources: list[Any],
        most: int,
        program: Callable[[Any], Program],
        summary: Callable[[dict[str, Array], list[Program]], dict[str, Any]],
    ) -> None:
        if not 1 <= len(sources) <= most:
            raise OptionError(f"sources: expected 1 to {most} vertices, got {len(sources)}")
        if len(set(sources)) < len(sources):
            raise OptionError(f"sources: expected different vertices, got {sources}")
        self.name, self.columns, self.sources, self.summary = name, columns, sources, summary
        self.programs = {f"{prefix}{source}": program(source) for source in sources}
