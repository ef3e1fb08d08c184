"""`isthmus calibrate [PATH]`: measure the rates of a disk or a GPU, show them, and remember them for later runs.

A `Calibration` measures (`disk_calibration.py`; devices bring theirs); all output to people and scripts is here.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isthmus.cli import help_lists
from isthmus.cli.shared_options import Json

if TYPE_CHECKING:
    from isthmus.devices.calibration import Calibration

PathArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="PATH", help="A store to read, or a folder for a test file of up to 1 GB. Default: the current folder."
    ),
]
DeviceOption = Annotated[str | None, typer.Option(metavar="cuda:NUMBER", help="Measure this GPU instead of a disk.")]
ShowOption = Annotated[bool, typer.Option("--show", help="Show the remembered rates and their age; measure nothing.")]
ForgetOption = Annotated[bool, typer.Option("--forget", help="Forget the remembered rates; measure nothing.")]


def register(app: typer.Typer) -> None:
    app.command(cls=help_lists.Command)(calibrate)


def calibrate(
    path: PathArgument = None,
    device: DeviceOption = None,
    show: ShowOption = False,
    forget: ForgetOption = False,
    json: Json = False,
) -> None:
    """Measure the disk of a folder or store, or a GPU, in a few seconds, and remember its rates for later runs."""
    from isthmus.errors import OptionError

    if show and forget:
        raise OptionError("expected --show or --forget, not both")
    if device is not None and path is not None:
        raise OptionError(f"expected a path, to measure a disk, or --device, to measure a GPU; got {path} and {device}")
    (drop if forget else show_remembered if show else measure)(calibration_at(path, device), json)


def calibration_at(path: Path | None, device: str | None) -> Calibration:
    if device is not None:
        from isthmus.devices.choose import calibration_of

        return calibration_of(device)
    from isthmus.cli.disk_calibration import Disk

    return Disk(path or Path("."))


def measure(subject: Calibration, json: bool) -> None:
    from isthmus.cli.console import Bar, facts, say, show_json, warn

    start = time.perf_counter()
    with Bar() as bar:
        remembered = subject.survey(bar, warn)
    seconds = time.perf_counter() - start
    if json:
        more = {"seconds": seconds, "remembered": remembered, "before": described(subject)}
        show_json({**subject.key, **subject.as_json(None), **more})
        return
    say(subject.name(None), "bold")
    show_table(subject)
    say("")
    rounds = len(subject.rounds()[0][2])
    where = [("remembered", f"in {subject.file}")] if remembered else []
    facts("", [*subject.facts(), ("time", f"{seconds:.1f} s, {rounds} rounds"), *where])


def show_remembered(subject: Calibration, json: bool) -> None:
    from isthmus.cli.console import facts, say, show_json

    if json:
        show_json({**subject.key, "remembered": described(subject)})
    elif subject.before is None:
        say(f"nothing is remembered of {subject.words}")
    else:
        rows = [(words, shown(figure, unit)) for words, unit, figure in subject.rows(subject.before)]
        facts(subject.name(subject.before), [*rows, ("measured", age(subject.before.when))])


def drop(subject: Calibration, json: bool) -> None:
    from isthmus.cli.console import say, show_json
    from isthmus.errors import StoreError

    forgotten = subject.forget()
    if subject.before is not None and not forgotten:
        raise StoreError(f"{subject.file}: cannot be written, so nothing is forgotten")
    if json:
        show_json({**subject.key, "forgotten": forgotten})
    elif subject.before is None:
        say(f"nothing is remembered of {subject.words}")
    else:
        say(f"forgotten: {subject.name(subject.before)}, measured {age(subject.before.when)}")


def show_table(subject: Calibration) -> None:
    """One row per kind of work: median, lowest and highest round, and the remembered figure."""
    from rich.table import Table

    from isthmus.cli.console import out

    before = subject.before
    old = {words: shown(figure, unit) for words, unit, figure in subject.rows(before)} if before else {}
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="cyan")  # fits 80 columns
    for title in ("", "median", "lowest", "highest", *([age(before.when)] if before else [])):
        table.add_column(title, justify="right" if title else "left", no_wrap=True)
    for words, unit, rounds in subject.rounds():
        table.add_row(words, *spread(rounds, unit), *([old.get(words, "-")] if before else []))
    out.print(table)


def spread(rounds: Sequence[float], unit: str) -> list[str]:
    return [shown(figure, unit) for figure in (statistics.median(rounds), min(rounds), max(rounds))]


def shown(figure: float, unit: str) -> str:
    """A figure with its unit: B for bytes per second, s for seconds, M for large counts per second, else counts."""
    from isthmus.memory import format_size

    if unit == "s":
        return f"{figure * 1e6:.3g} us"
    return f"{format_size(figure)}/s" if unit == "B" else f"{figure:,.3g}/s" if unit == "M" else f"{figure:,.0f}/s"


def described(subject: Calibration) -> dict[str, Any] | None:
    before = subject.before
    if before is None:
        return None
    return {
        **subject.as_json(before),
        "age_seconds": None if before.when is None else max(0.0, time.time() - before.when),
    }


def age(when: float | None) -> str:
    """'3 days ago'."""
    from isthmus.cli.console import counted

    if when is None:
        return "some time ago"
    seconds = time.time() - when
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= size:
            return f"{counted(int(seconds // size), unit)} ago"
    return "just now"
