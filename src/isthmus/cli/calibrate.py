"""`isthmus calibrate [PATH]`: measure a disk's rates, show them, and remember them for later runs. A GPU's: `calibrate_gpu.py`."""

from __future__ import annotations

import statistics
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from isthmus.cli import listing
from isthmus.cli.options import Json

if TYPE_CHECKING:
    from isthmus.link.calibrate import Memory
    from isthmus.link.link import Profile
    from isthmus.link.measure import Samples

Rates = TypeVar("Rates")
PathArgument = Annotated[
    Path | None,
    typer.Argument(metavar="PATH", help="A store to read, or a folder for a test file of up to 1 GB. Default: the current folder."),
]
DeviceOption = Annotated[str | None, typer.Option(metavar="cuda:NUMBER", help="Measure this GPU instead of a disk.")]
ShowOption = Annotated[bool, typer.Option("--show", help="Show the remembered rates and their age; measure nothing.")]
ForgetOption = Annotated[bool, typer.Option("--forget", help="Forget the remembered rates; measure nothing.")]


def register(app: typer.Typer) -> None:
    app.command(cls=listing.Command)(calibrate)


def calibrate(
    path: PathArgument = None, device: DeviceOption = None, show: ShowOption = False, forget: ForgetOption = False, json: Json = False
) -> None:
    """Measure the disk of a folder or store, or a GPU, in a few seconds, and remember its rates for later runs."""
    from isthmus.cli import calibrate_gpu
    from isthmus.errors import OptionError
    from isthmus.link.calibrate import checked_place, disk_of, recall

    if show and forget:
        raise OptionError("expected --show or --forget, not both")
    if device is not None:
        if path is not None:
            raise OptionError(f"expected a path, to measure a disk, or --device, to measure a GPU; got {path} and {device}")
        (calibrate_gpu.drop if forget else calibrate_gpu.tell if show else calibrate_gpu.measure)(device, json)
        return
    path = path or Path(".")
    before = recall(disk_of(checked_place(path)))
    if forget:
        drop(path, before, json)
    elif show:
        tell(path, before, json)
    else:
        measure(path, before, json)


def measure(path: Path, before: Memory | None, json: bool) -> None:
    from isthmus.cli.console import Bar, facts, say, show_json, warn
    from isthmus.link.calibrate import disk_of, memory_file, recall, survey
    from isthmus.memory import format_size

    start = time.perf_counter()
    with Bar() as bar:
        samples, profile = survey(path, bar, warn)
    seconds = time.perf_counter() - start
    after = recall(disk_of(path))
    kept = after is not None and after.profile == profile
    if json:
        taken = {"source": samples.source, "bytes": samples.bytes, "rounds": len(samples.bulk), "steady": samples.steady}
        more = {"seconds": seconds, "remembered": kept, "before": described(before)}
        show_json({"path": str(path), **as_json(profile), **taken, **more})
        return
    say(profile.name, "bold")
    show_table(samples, before)
    say("")
    facts("", [
        ("read", f"{samples.source}, {format_size(samples.bytes)}"),
        ("break-even", f"a request costs as much as {format_size(profile.break_even_gap)} in bulk"),
        ("time", f"{seconds:.1f} s, {len(samples.bulk)} rounds"),
        *([("remembered", f"in {memory_file()}")] if kept else []),
    ])  # fmt: skip


def tell(path: Path, before: Memory | None, json: bool) -> None:
    from isthmus.cli.console import facts, say, show_json

    if json:
        show_json({"path": str(path), "remembered": described(before)})
    elif before is None:
        say(f"nothing is remembered of the disk of {path}")
    else:
        facts(before.profile.name, [*rows_of(before.profile), ("measured", age(before.when))])


def drop(path: Path, before: Memory | None, json: bool) -> None:
    from isthmus.cli.console import say, show_json
    from isthmus.errors import StoreError
    from isthmus.link.calibrate import forget, memory_file

    forgotten = forget(path)
    if before is not None and not forgotten:
        raise StoreError(f"{memory_file()}: cannot be written, so nothing is forgotten")
    if json:
        show_json({"path": str(path), "forgotten": forgotten})
    elif before is None:
        say(f"nothing is remembered of the disk of {path}")
    else:
        say(f"forgotten: {before.profile.name}, measured {age(before.when)}")


def show_table(samples: Samples, before: Memory | None) -> None:
    """One row per kind of work: median, lowest and highest round, and the remembered rate."""
    from rich.table import Table

    from isthmus.cli.console import out

    old = dict(rows_of(before.profile)) if before else {}
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="cyan")  # fits 80 columns
    for title in ("", "median", "lowest", "highest", *([age(before.when)] if before else [])):
        table.add_column(title, justify="right" if title else "left", no_wrap=True)
    for name, unit, rates in kinds(samples.bulk, samples.singles, samples.packed):
        values = [shown(rate, unit) for rate in (statistics.median(rates), min(rates), max(rates))]
        table.add_row(name, *values, *([old.get(name, "-")] if before else []))
    out.print(table)


def rows_of(profile: Profile) -> list[tuple[str, str]]:
    """The rates of a profile. Profiles remembered by the first version have fewer."""
    rows = kinds(profile.bandwidth, dict(profile.rates) or {profile.depth: profile.request_rate}, profile.compaction)
    return [(name, shown(rate, unit)) for name, unit, rate in (rows if profile.rates else rows[:-1])]


def kinds(bulk: Rates, singles: dict[int, Rates], packed: Rates) -> list[tuple[str, str, Rates]]:
    """(kind of work, its unit, rates) in the order they are shown."""
    return [
        ("bulk reads", "B", bulk),
        *((f"4 KB reads, {depth} in flight", "", rates) for depth, rates in singles.items()),
        ("lists packed together", "B", packed),
    ]


def shown(rate: float, unit: str) -> str:
    from isthmus.memory import format_size

    return f"{format_size(rate)}/s" if unit == "B" else f"{rate:,.0f}/s"


def as_json(profile: Profile) -> dict[str, Any]:
    return {**asdict(profile), "rates": {str(depth): rate for depth, rate in profile.rates}, "break_even_gap": profile.break_even_gap}


def described(memory: Memory | None) -> dict[str, Any] | None:
    if memory is None:
        return None
    return {**as_json(memory.profile), "age_seconds": None if memory.when is None else max(0.0, time.time() - memory.when)}


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
