"""What commands share: progress bars, tables, one-line errors and exit codes."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console
from rich.table import Table

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


class Bar:
    """Draws progress with rate and time left on standard error; silent where that is no terminal."""

    def __init__(self, wanted: bool = True) -> None:
        self._progress: Any = None
        self._task: Any = None
        if wanted and err.is_terminal:
            from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

            self._progress = Progress(
                SpinnerColumn(), TextColumn("{task.description:<12}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"),
                TextColumn("{task.fields[rate]}"), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
                console=err, transient=True,
            )  # fmt: skip

    def __enter__(self) -> Bar:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(self, *details: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def stage(self, name: str, total: int | None, unit: str) -> None:
        if self._progress is None:
            return
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._unit = unit
        self._task = self._progress.add_task(name, total=total or None, rate="")

    def advance(self, amount: int) -> None:
        if self._progress is None:
            return
        task = self._progress.tasks[-1]
        rate = f"{people(task.speed or 0)}{'B' if self._unit == 'B' else ' ' + self._unit}/s"
        self._progress.update(self._task, advance=amount, rate=rate)


def people(count: float) -> str:
    """1234567 as 1.23 M."""
    for unit in ("", "k", "M", "G"):
        if abs(count) < 999.5:
            return f"{count:.3g} {unit}".rstrip()
        count /= 1000
    return f"{count:.3g} T"


def show_json(value: Any) -> None:
    """One line of JSON on standard output, and nothing else there."""
    sys.stdout.write(json.dumps(value) + "\n")


def facts(title: str, rows: list[tuple[str, str]]) -> None:
    """A small two-column table."""
    table = Table(title=title, title_justify="left", title_style="bold", show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="cyan")
    table.add_column()
    for name, value in rows:
        table.add_row(name, value)
    out.print(table)


def warn(text: str) -> None:
    err.print(f"[yellow]note:[/yellow] {escape(text)}", soft_wrap=True)


def fail(text: str) -> None:
    err.print(f"[red]error:[/red] {escape(text)}", soft_wrap=True)


def escape(text: str) -> str:
    from rich.markup import escape as escape_markup

    return escape_markup(text)
