"""Output of commands: progress bars, tables, one-line errors."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import Any

from rich.console import Console
from rich.text import Text

from isthmus.cli import signals, verbosity

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


class Bar:
    """A progress bar with rate and time left, on standard error if that is a terminal."""

    def __init__(self) -> None:
        self._progress: Any = None
        self._task: Any = None
        self._unit = ""
        if err.is_terminal and not verbosity.quiet:
            from rich.progress import (
                BarColumn,
                Progress,
                SpinnerColumn,
                TextColumn,
                TimeElapsedColumn,
                TimeRemainingColumn,
            )

            self._progress = Progress(
                SpinnerColumn(),
                TextColumn("{task.description:<12}"),
                BarColumn(),
                TextColumn("{task.percentage:>3.0f}%"),
                TextColumn("{task.fields[rate]}"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=err,
                transient=True,
            )

    def __enter__(self) -> Bar:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(self, *details: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def stage(self, name: str, total: int | None, unit: str) -> None:
        signals.check()
        log(f"{name}{f' ({total:,} {unit})' if total else ''}")
        if self._progress is None:
            return
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._unit = unit
        self._task = self._progress.add_task(name, total=total or None, rate="")

    def advance(self, amount: int) -> None:
        signals.check()
        if self._progress is None:
            return
        speed = self._progress.tasks[-1].speed or 0
        self._progress.update(self._task, advance=amount, rate=rate(speed, self._unit))


def rate(speed: float, unit: str) -> str:
    """'12.3 MB/s', '4.56 M edges/s'."""
    from isthmus.memory import format_size

    return f"{format_size(speed)}/s" if unit == "B" else f"{short_count(speed)} {unit}/s"


def short_count(count: float) -> str:
    """1234567 as 1.23 M."""
    for unit in ("", "k", "M", "G"):
        if abs(count) < 999.5:
            return f"{count:.3g} {unit}".rstrip()
        count /= 1000
    return f"{count:.3g} T"


def progress(share: float | None, seconds: float) -> str:
    """'37 % done, 0:01:05 left, ', from a share and the seconds it took; empty where the share is not known."""
    if share is None:
        return ""
    left = f", {timedelta(seconds=round(seconds * (1 - share) / share))} left" if share > 0 else ""
    return f"{100 * share:.0f} % done{left}, "


def counted(count: int, noun: str) -> str:
    """'1 edge', '1,234 edges'."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def show_json(value: Any) -> None:
    """One line of JSON on standard output, and nothing else there."""
    print(json.dumps(value), flush=True)  # flushed here, where an error of a closed pipe is still handled


def facts(title: str, rows: list[tuple[str, str]], console: Console | None = None) -> None:
    """A title, if there is one, and two columns."""
    console = console or out
    if title:
        console.print(Text(plain(title), "bold"), soft_wrap=True)
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        console.print(Text.assemble((name.ljust(width), "cyan"), "  ", plain(value)), soft_wrap=True)


def summary(title: str, rows: list[tuple[str, str]], error: bool = False) -> None:
    """Print a summary of a command, unless it is quiet. `error`: on standard error, where standard output has data."""
    if not verbosity.quiet:
        facts(title, rows, err if error else out)


def log(text: str) -> None:
    """A line on standard error if the command is verbose."""
    if verbosity.verbose:
        err.print(Text.assemble((time.strftime("%H:%M:%S"), "cyan"), "  ", plain(text)), soft_wrap=True)


def say(text: str, style: str = "") -> None:
    out.print(Text(plain(text), style), soft_wrap=True)


def warn(text: str) -> None:
    if verbosity.quiet:
        return
    err.print(Text.assemble(("note:", "yellow"), " ", plain(text)), soft_wrap=True)


def fail(text: str) -> None:
    err.print(Text.assemble(("error:", "red"), " ", plain(text)), soft_wrap=True)


def plain(text: str) -> str:
    """One line that any terminal can show: line breaks and control characters in file names come out escaped."""
    shown = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
    return shown.encode(errors="backslashreplace").decode()


class Watch:
    """A live line for a run: share done, time left, iteration, active vertices, edges and bytes so far."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._status: Any = None
        self._edges = self._bytes = 0
        self._start = self._last = self._pass = time.perf_counter()  # of the run, of the last iteration, of the pass

    def __enter__(self) -> Watch:
        if err.is_terminal and not verbosity.quiet and not verbosity.verbose:
            self._status = err.status(self._name)
            self._status.start()
        return self

    def __exit__(self, *details: object) -> None:
        if self._status is not None:
            self._status.stop()

    def begin(self, name: str) -> None:
        """Another run starts."""
        signals.check()
        self._name, self._edges, self._bytes = name, 0, 0
        self._start = self._last = self._pass = time.perf_counter()

    def seen(self, iteration: Any) -> None:
        """Show an iteration that has just ended."""
        signals.check()
        if self._status is None and not verbosity.verbose:
            return
        from isthmus.memory import format_size

        if verbosity.verbose:
            log(f"{self._name}: {iteration_text(iteration)}")
        if self._status is None:
            return
        self._edges += iteration.active_edges
        self._bytes += iteration.bytes
        if iteration.number == 0:  # an algorithm may have several passes, and each knows its own share
            self._pass = self._last
        self._last = time.perf_counter()
        seconds = self._last - self._start
        self._status.update(
            f"{self._name}: {progress(iteration.done, self._last - self._pass)}iteration {iteration.number + 1:,}, "
            f"{iteration.active_vertices:,} active, "
            f"{rate(self._edges / seconds, 'edges')}, {format_size(self._bytes)} moved, {seconds:.0f} s"
        )

    def say(self, text: str) -> None:
        warn(text)


def iteration_text(iteration: Any) -> str:
    """'iteration 3, 17 active, 120 edges, 64 kB by filter in 2 requests, 0.012 s'."""
    from isthmus.memory import format_size

    moved = [
        f"{format_size(use['bytes'])} by {name.replace('_', '-')} in {counted(use['requests'], 'request')}"
        for name, use in iteration.engines.items()
        if use["bytes"]
    ]
    counts = [f"{iteration.active_vertices:,} active", counted(iteration.active_edges, "edge")]
    return ", ".join([f"iteration {iteration.number + 1:,}", *counts, *moved, f"{iteration.seconds:.3f} s"])
