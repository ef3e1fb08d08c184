"""Causes of what differs from the papers, measured: each is switched on or off alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from unittest import mock

from isthmus.devices.model import device
from isthmus.devices.worker import LiveValues
from published.hytgraph import whole_card
from published.lab import Lab, Section, mean, times


def hytgraph_table_5(lab: Lab) -> Section:
    """Why proportions of SSSP's bytes differ from Table V: what launches see, Subway's further runs and its memory."""
    names = (
        "emogi",
        "hytgraph",
        "subway",
        "subway, once",
        "subway, card's memory",
        "emogi, own writes",
        "hytgraph, own writes",
    )
    rows = [["graph", *names]]
    found: dict[str, list[float]] = {name: [] for name in names}
    for case in (c for c in lab.cases if c.kind != "grid"):
        seen = lab.apart()
        for name in names:
            recipe, _, change = name.partition(", ")
            how = {"device": lab.card(case), "without": ("recompute",) if change == "once" else ()}
            memory = whole_card(recipe, "SSSP") if change == "card's memory" else ""
            with own_writes() if change == "own writes" else contextlib.nullcontext():
                run = (seen if change == "own writes" else lab).run(case, "SSSP", recipe, memory, **how)
            found[name].append(run.ratio)
        rows.append([case.name, *(times(ratios[-1]) for ratios in found.values())])
    means = {name: mean(ratios) for name, ratios in found.items()}
    rows.append(["geometric mean", *map(times, means.values())])
    pairs = (
        ("hytgraph", "emogi"),
        ("hytgraph, own writes", "emogi, own writes"),
        ("hytgraph", "subway"),
        ("hytgraph", "subway, once"),
        ("hytgraph", "subway, card's memory"),
    )
    text = [f"{one} ÷ {other}: {means[one] / means[other]:.2f}" for one, other in pairs]
    return Section(
        "HyTGraph, Table V: causes of what differs, SSSP, bytes moved ÷ edge bytes", rows, ["; ".join(text) + "."]
    )


@contextlib.contextmanager
def own_writes() -> Iterator[None]:
    """Launches of the runs inside see their own writes: host threads walk vertices in order."""
    with mock.patch.object(device, "Launches", lambda program, state: LiveValues(state)):
        yield


EXPERIMENTS = {"hytgraph-causes": hytgraph_table_5}
