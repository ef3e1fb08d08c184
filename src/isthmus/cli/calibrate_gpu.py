"""`isthmus calibrate --device cuda:0`: measure a GPU's link and kernels, show the costs, and remember them for later runs."""

from __future__ import annotations

import statistics
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from isthmus.cli.calibrate import age

if TYPE_CHECKING:
    from isthmus.link.card_costs import CardCosts, Remembered
    from isthmus.link.measure_card import CardSamples

KINDS = (  # (member of CardCosts, words, unit)
    ("bandwidth", "copies to the GPU", "B"),
    ("back_bandwidth", "copies from the GPU", "B"),
    ("transfer_seconds", "a short copy", "s"),
    ("copy_seconds", "a short copy, waited for", "s"),
    *((f"direct {sectors}", f"kernels read {32 * sectors} B at a time", "B") for sectors in range(1, 5)),
    ("fill_bandwidth", "kernels fill memory", "B"),
    ("launch_seconds", "a launch", "s"),
    ("edge_rate", "edges pushed by a kernel", ""),
    ("host_edge_rate", "edges pushed by the processor", ""),
    ("packing", "lists packed together", "B"),
)


def measure(device: str, json: bool) -> None:
    from isthmus.cli.console import Bar, facts, say, show_json, warn
    from isthmus.link.card_costs import costs_file
    from isthmus.runtime.calibrating import recall_gpu, survey_gpu

    before, start = recall_gpu(device), time.perf_counter()
    with Bar() as bar:
        samples, costs = survey_gpu(device, bar, warn)
    seconds, after = time.perf_counter() - start, recall_gpu(device)
    kept = after is not None and after.costs == costs
    if json:
        show_json({"device": device, **asdict(costs), "seconds": seconds, "remembered": kept, "before": described(before)})
        return
    say(costs.gpu, "bold")
    show_table(samples, before)
    say("")
    facts("", [
        ("start", f"{costs.start_seconds:.2f} s until a program's first kernel has run"),
        ("time", f"{seconds:.1f} s, {len(samples.kinds['bandwidth'])} rounds"),
        *([("remembered", f"in {costs_file()}")] if kept else []),
    ])  # fmt: skip


def tell(device: str, json: bool) -> None:
    from isthmus.cli.console import facts, say, show_json
    from isthmus.runtime.calibrating import recall_gpu

    known = recall_gpu(device)
    if json:
        show_json({"device": device, "remembered": described(known)})
    elif known is None:
        say(f"nothing is remembered of {device}")
    else:
        rows = [(words, shown(figure(known.costs, name), unit)) for name, words, unit in KINDS]
        facts(known.costs.gpu, [*rows, ("measured", age(known.when))])


def drop(device: str, json: bool) -> None:
    from isthmus.cli.console import say, show_json
    from isthmus.errors import StoreError
    from isthmus.link.card_costs import costs_file
    from isthmus.runtime.calibrating import forget_gpu, recall_gpu

    before = recall_gpu(device)
    forgotten = forget_gpu(device)
    if before is not None and not forgotten:
        raise StoreError(f"{costs_file()}: cannot be written, so nothing is forgotten")
    if json:
        show_json({"device": device, "forgotten": forgotten})
    else:
        say(f"nothing is remembered of {device}" if before is None else f"forgotten: {before.costs.gpu}, measured {age(before.when)}")


def show_table(samples: CardSamples, before: Remembered | None) -> None:
    """One row per kind of work: median, lowest and highest round, and the remembered figure."""
    from rich.table import Table

    from isthmus.cli.console import out

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="cyan")
    for title in ("", "median", "lowest", "highest", *([age(before.when)] if before else [])):
        table.add_column(title, justify="right" if title else "left", no_wrap=True)
    for name, words, unit in KINDS:
        rounds = samples.kinds[name]
        values = [shown(value, unit) for value in (statistics.median(rounds), min(rounds), max(rounds))]
        table.add_row(words, *values, *([shown(figure(before.costs, name), unit)] if before else []))
    out.print(table)


def figure(costs: CardCosts, name: str) -> float:
    kind, _, sectors = name.partition(" ")
    return float(costs.direct[int(sectors) - 1] if sectors else getattr(costs, kind))


def shown(value: float, unit: str) -> str:
    from isthmus.memory import format_size

    if unit == "s":
        return f"{value * 1e6:.3g} us"
    return f"{format_size(value)}/s" if unit == "B" else f"{value:,.3g}/s"


def described(known: Remembered | None) -> dict[str, Any] | None:
    return None if known is None else {**asdict(known.costs), "age_seconds": max(0.0, time.time() - known.when)}
