"""A trace as columns to draw: at most BINS bins of equally many iterations, so that thousands stay readable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isthmus.engines.registry import NAMES, NOTHING
from isthmus.runtime.trace.packed_iterations import PARTITIONS, Name
from isthmus.runtime.trace.trace import Trace

Array = np.ndarray[Any, Any]
BINS = 120
ROWS = 96  # of the map of partitions
UNKNOWN = 255  # no engine has this code
MODELLED = "modelled"


@dataclass
class Series:
    """Columns by bin. A bin's figures are means per iteration, except `moved` and `requested`, which are sums.

    `seconds`: by what they were spent on; of a modelled device, only its own seconds, under "modelled".
    """

    iterations: int
    step: int  # iterations in a bin; the last may have fewer
    sizes: Array
    active_vertices: Array
    active_edges: Array
    hit_edges: Array
    seconds: dict[str, Array]
    bytes: dict[str, Array]  # by engine
    partitions: dict[str, Array]  # by engine
    moved: Array
    requested: Array

    @property
    def bounds(self) -> Array:
        """Where bins begin and end; iteration 1 lies between 0.5 and 1.5."""
        return np.concatenate([[0], np.cumsum(self.sizes)]) + 0.5

    @property
    def modelled(self) -> bool:
        """Whether the seconds are those of a modelled device."""
        return MODELLED in self.seconds

    @property
    def hit_rate(self) -> Array:
        """Shares of active edges that a cache held."""
        return np.divide(self.hit_edges, self.active_edges, out=np.zeros(self.sizes.size), where=self.active_edges > 0)

    def shares(self) -> dict[str, Array]:
        """Each engine's share of the active partitions."""
        total = sum(self.partitions.values(), np.zeros(self.sizes.size))
        return {
            name: np.divide(count, total, out=np.zeros(total.size), where=total > 0)
            for name, count in self.partitions.items()
        }


def series(trace: Trace) -> Series:
    """Bin a trace."""
    count = len(trace)
    step = max(1, -(-count // BINS))
    starts = np.arange(0, count, step)
    sizes = np.diff(np.append(starts, count))

    def sums(values: Array) -> Array:
        return np.add.reduceat(values.astype(np.float64), starts) if count else np.zeros(0)

    def means(name: Name) -> Array:
        return sums(trace.columns(name)[0]) / sizes

    engines = [name for name in NAMES.values() if name in trace.used()]
    moved, requested = ([sums(trace.columns((name, key))[0]) for name in engines] for key in ("bytes", "requests"))
    partitions = {name: means((name, PARTITIONS)) for name in engines}
    return Series(
        count,
        step,
        sizes,
        means("active_vertices"),
        means("active_edges"),
        means("hit_edges"),
        {name: sums(values) / sizes for name, values in spent(trace).items()},
        {name: values / sizes for name, values in zip(engines, moved, strict=True)},
        {name: values for name, values in partitions.items() if values.any()},
        sum(moved, np.zeros(sizes.size)),
        sum(requested, np.zeros(sizes.size)),
    )


def spent(trace: Trace) -> dict[str, Array]:
    """The seconds of every iteration, by what they were spent on."""
    seconds, wait, kernel, decide, modelled = trace.columns("seconds", "wait", "kernel", "decide", MODELLED)
    if modelled.size and not np.isnan(modelled).all():
        return {MODELLED: np.nan_to_num(modelled)}
    return {
        "I/O wait": wait,
        "compute": kernel,
        "deciding": decide,
        "other": np.maximum(0.0, seconds - wait - kernel - decide),
    }


@dataclass
class Map:
    """Which engine brought which partition when: the code of the commonest engine, by row and bin.

    UNKNOWN where partitions moved but the trace has no choices.
    """

    codes: Array
    partitions: int
    row_step: int  # partitions in a row
    step: int  # iterations in a bin


def choice_map(trace: Trace, step: int) -> Map | None:
    """The map of a trace in bins of `step` iterations, or more where choices were thinned; None without any."""
    choices = {at: chosen for at, chosen in trace.choices().items() if chosen.size}
    if not choices:
        return None
    step = max(step, int(np.diff(list(choices)).min()) if len(choices) > 1 else 1)
    partitions = max(chosen.size for chosen in choices.values())
    row_step = max(1, -(-partitions // ROWS))
    rows, columns = -(-partitions // row_step), -(-len(trace) // step)
    kinds = max(NAMES) + 1
    counts = np.zeros((columns, rows, kinds), np.int64)
    for at, chosen in choices.items():
        cells = np.arange(chosen.size) // row_step * kinds + chosen
        counts[at // step] += np.bincount(cells, minlength=rows * kinds).reshape(rows, kinds)
    counts[:, :, NOTHING] = 0
    codes = counts.argmax(2)  # NOTHING, which is 0, where no engine has a count
    known = {at // step for at in choices}
    moving = set(
        np.flatnonzero(sum(trace.columns(*((name, PARTITIONS) for name in trace.used())), np.zeros(len(trace)))) // step
    )
    codes[list(moving - known)] = UNKNOWN
    return Map(codes.T, partitions, row_step, step)
