"""Transfers of streams: what the recipes of `isthmus.stream` move to a modelled device for SSSP (Grapin, sections 7.1
and 7.2).

    python benchmarks/transfers.py [--graphs kron18 kron20] [--real FOLDER ...] [--share 0.026] [--batches 10] [--cache
    10]
                                   [--device a5000] [--folder DIR]

Ten batches, half inserts and half deletes, as `windows.py` draws them. Grapin's batches of 100,000 are 0.094, 0.023,
0.005, 0.004 and 0.003 % of its graphs' edges; ours are the mean, 0.026 % of each graph's. Weights are 1 to 255. The
cache holds a tenth of the edges, with weights. Answers are compared after the last batch. Prints Markdown.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from graphs import make
from harness import table, verdict
from windows import Window, window

import isthmus as ist
from isthmus.devices.residency import Transfer
from isthmus.policies.stream_recipes import RECIPES

LEAST = {"incremental": 61, "cached": 67, "together": 85}  # percent of the bytes before


def real(folder: Path, held: float) -> Window:
    with ist.read(next(folder.glob("edges*.gz")), directed=True, parallel="drop", weight="none") as graph:
        cut = window(graph, int(graph.edges * held))
    weights = np.random.default_rng(2).integers(1, 256, cut.sources.size).astype(np.int32)
    return replace(cut, weights=weights)


def moved(cut: Window, policy: str | None, size: int, batches: int, options: argparse.Namespace) -> dict[str, Any]:
    """The sum over all batches, with the answer after the last."""
    source = int(np.bincount(cut.sources[: cut.kept]).argmax())
    far = (
        {}
        if policy is None
        else {"device": f"model:{options.device}", "policy": policy, "memory": f"{options.cache:g}%"}
    )
    total, seconds = Transfer(), 0.0
    with ist.stream(cut.graph(), [ist.SSSP(source=source)], **far) as live:  # type: ignore[arg-type]
        for number in range(batches):
            inserts, deletes = cut.batch(number, size)
            report = live.apply(inserts=inserts, deletes=deletes)
            seconds += report.seconds["total"]
            if report.transfer is not None:
                total.add(report.transfer)
        return {"moved": total, "seconds": seconds, "values": live["sssp"].values, "edge_bytes": live.graph.edge_bytes}


def cut_of(before: float, after: float) -> float:
    return 100 * (1 - after / before) if before else 0.0


def row(name: str, cut: Window, options: argparse.Namespace) -> tuple[list[str], dict[str, float]]:
    size = max(2, round(cut.sources.size * options.share / 100 / 2) * 2)
    found = {policy: moved(cut, policy, size, options.batches, options) for policy in RECIPES}
    plain = moved(cut, None, size, options.batches, options)["values"]
    for policy, each in found.items():
        if (
            not np.ma.allequal(each["values"], plain)
            or (np.ma.getmaskarray(each["values"]) != np.ma.getmaskarray(plain)).any()
        ):
            raise SystemExit(f"{name}: {policy} has another answer")
    bytes_of = {policy: float(each["moved"].bytes) for policy, each in found.items()}
    whole, zero = bytes_of["grapin-recompute"], bytes_of["grapin-zc"]
    cuts = {
        "incremental": cut_of(whole, zero),
        "cached": cut_of(zero, bytes_of["auto"]),
        "together": cut_of(whole, bytes_of["auto"]),
    }
    kept = found["auto"]
    times = [each / options.batches / kept["edge_bytes"] for each in (whole, zero)]
    upkeep = 100 * kept["moved"].upkeep_seconds / kept["seconds"]
    shown = [
        name,
        f"{cut.sources.size:,}",
        f"{size:,}",
        f"{times[0]:.2f}",
        f"{times[1]:.4f}",
        *(f"{each:.1f}" for each in cuts.values()),
        *(f"{cut_of(zero, bytes_of[policy]):.0f}" for policy in ("grapin", "grapin-page")),
        f"{upkeep:.1f}",
    ]
    print(*shown, file=sys.stderr, flush=True)
    return shown, cuts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="*", default=["kron18", "kron20"])
    parser.add_argument("--real", nargs="*", type=Path, default=[], help="folders with edges*.gz")
    parser.add_argument("--share", type=float, default=0.026, help="changes of a batch, percent of the edges")
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--cache", type=float, default=10, help="percent of the edges")
    parser.add_argument("--device", default="a5000")
    parser.add_argument("--folder", type=Path, help="where graphs are made and stay; default: a temporary folder")
    options = parser.parse_args()
    held = options.share / 100 * options.batches / 2
    titles = [
        "graph",
        "edges",
        "batch",
        "from scratch, x edges",
        "grapin-zc, x edges",
        "incremental cuts, %",
        "auto, of the rest, %",
        "together, %",
        "grapin, of the rest, %",
        "grapin-page, of the rest, %",
        "upkeep, % of the time",
    ]
    rows, cuts = [titles], []
    with tempfile.TemporaryDirectory() as scratch:
        windows = {each.name: (lambda each=each: real(each, 2 * held)) for each in options.real}
        for name in options.graphs:
            with make(options.folder or Path(scratch), name) as graph:
                drawn = window(graph, int(2 * held * graph.edges) + 2 * options.batches)
            windows[name] = lambda drawn=drawn: drawn
        for name, draw in windows.items():
            shown, found = row(name, draw(), options)
            rows.append(shown)
            cuts.append(found)
    means = {each: float(np.mean([found[each] for found in cuts])) for each in LEAST}
    judged = [
        f"{means[each]:.1f} (at least {LEAST[each]}: {verdict(means[each], LEAST[each], at_most=False)})"
        for each in LEAST
    ]
    rows.append(["mean", "", "", "", "", *judged, "", "", ""])
    print(table(rows))


if __name__ == "__main__":
    main()
