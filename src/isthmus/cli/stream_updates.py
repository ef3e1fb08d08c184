"""The updates of a stream, as commands are given them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from isthmus.cli.program_texts import SYNTAX
from isthmus.errors import OptionError

UNITS = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600}

Programs = Annotated[
    list[str] | None,
    typer.Option(
        "--program",
        metavar=SYNTAX,
        help="An algorithm to keep current, such as sssp:source=7 or pagerank:tol=1e-4; may be repeated.",
    ),
]
UpdatesOption = Annotated[
    str,
    typer.Option(
        metavar="FILE|-",
        help="Changes with columns op, source, target, weight, time: Parquet, Arrow, CSV, JSON lines; - for a pipe.",
    ),
]
FormatOption = Annotated[
    str | None, typer.Option(help="csv, jsonl, parquet or arrow. Default: from the file name, or the first line.")
]
BatchOption = Annotated[
    int | None,
    typer.Option(min=1, metavar="ROWS", help="Changes per batch. Default: the workload's batch size, else 100000."),
]
WindowOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="Apply a batch after this much time, such as 1s or 500ms; for a file, by its column time."
    ),
]


@dataclass
class Updates:
    """Where updates come from, how they are divided into batches, and the programs that follow them."""

    updates: UpdatesOption
    program: Programs = None
    format: FormatOption = None
    batch: BatchOption = None
    window: WindowOption = None

    def reading(self) -> dict[str, Any]:
        """How updates are read, as a stream takes it."""
        window = None if self.window is None else duration(self.window)
        return {"batch": self.batch, "window": window, "format": self.format}


def duration(text: str) -> float:
    """'500ms', '1s', '2m' or a number of seconds."""
    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = text.strip()[len(number) :] or "s"
    try:
        seconds = float(number) * UNITS[unit]
    except (ValueError, KeyError):
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise OptionError(f"--window: expected a time such as 1s or 500ms, got {text!r}")
    return seconds
