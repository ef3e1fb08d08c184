"""The drawings of a page. Every colour has a contrast of 3 to the light and the dark background."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from isthmus.engines.registry import NAMES, colour_of
from isthmus.policies.recipes import RECIPES
from isthmus.report.answer import Distribution
from isthmus.report.series import MODELLED, UNKNOWN, Map, Series
from isthmus.report.svg import FAINT, GRID, INK, inline

# Of time; no engine has one of these.
SECONDS = {
    "compiling": "#aa00ff",
    "set-up": "#669900",
    "loading": "#cc00aa",
    "I/O wait": "#ff3388",
    "compute": "#337766",
    "deciding": "#7788dd",
    "other": "#886633",
}
MODELLED_SECONDS = {MODELLED: SECONDS["compute"]}  # always alone
# Colours are for engines and for time; these lines differ by their dashes.
ACTIVE = {"edges": (INK, "-"), "vertices": (INK, "--")}
OTHER = (colour_of("resident"), ":")  # for unknown recipes and for variants
MARKERS = "osD^vPX*"  # distinguish lines that lie on each other
MARKS = 6  # of a line
NARROW = 300  # a logarithmic axis that spans less has ticks at 2 and 5 too
LETTERS = 68  # that fit below a figure; the sample of a line takes about 6
SIZE = (4.4, 2.4)  # inches; a point is about a pixel on a phone
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "isthmus",
    "font.size": 9.5,
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": FAINT,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "grid.color": GRID,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "axes.formatter.use_mathtext": False,
    "text.usetex": False,
}


@contextmanager
def empty(label: str) -> Iterator[tuple[Any, Any]]:
    """An empty figure. Turn it into text inside the `with` block."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):  # type: ignore[arg-type]
        figure = Figure(SIZE, layout="constrained")
        ax = figure.add_subplot()
        ax.set_ylabel(label)
        yield figure, ax


@contextmanager
def axes(count: int, label: str, over: str = "iteration") -> Iterator[tuple[Any, Any]]:
    """An empty figure over iterations, or batches, 1 to `count`."""
    from matplotlib.ticker import MaxNLocator

    with empty(label) as (figure, ax):
        ax.set_xlim(0.5, max(count, 1) + 0.5)
        ax.xaxis.set_major_locator(MaxNLocator(7, integer=True, min_n_ticks=1))
        ax.set_xlabel(over)
        yield figure, ax


def scaled(ax: Any, unit: str) -> None:
    """Ticks such as 20 MB on a linear axis from 0."""
    from matplotlib.ticker import EngFormatter

    ax.set_ylim(bottom=0)
    ax.yaxis.set_major_formatter(EngFormatter(unit=unit))


def engine_colors(engines: Iterable[str]) -> dict[str, str]:
    """The colours that engines declare. Colour-blind readers can distinguish those of built-in engines."""
    return {engine: colour_of(engine) for engine in engines}


def line(recipe: str) -> tuple[str, str]:
    """Colour and dash that a recipe declares; a recipe with a single engine has that engine's colour."""
    found = RECIPES.get(recipe)
    return OTHER if found is None else (shade(found.colour), found.dash)


def shade(colour: str) -> str:
    """A declared colour: "#rrggbb", "ink", or an engine's."""
    return INK if colour == "ink" else colour if colour.startswith("#") else colour_of(colour)


def stacked(name: str, label: str, data: Series, layers: dict[str, Any], colors: dict[str, str], unit: str) -> str:
    """Layers on top of each other; `unit` "%" for shares of 1."""
    from matplotlib.ticker import PercentFormatter

    with axes(data.iterations, label) as (figure, ax):
        base = np.zeros(data.sizes.size)
        for layer, values in layers.items():
            ax.stairs(base + values, data.bounds, baseline=base, fill=True, color=colors[layer], linewidth=0)
            base = base + values
        if unit == "%":
            ax.set_ylim(0, 1)
            ax.yaxis.set_major_formatter(PercentFormatter(1))
        else:
            scaled(ax, unit)
        return inline(figure, name, f"{label} by iteration: {', '.join(map(plain, layers))}")


def active(name: str, data: Series) -> str:
    """Active vertices and edges, on one logarithmic axis."""
    with axes(data.iterations, "active") as (figure, ax):
        for what, values in (("edges", data.active_edges), ("vertices", data.active_vertices)):
            color, dash = ACTIVE[what]
            ax.stairs(
                np.where(values > 0, values, np.nan),
                data.bounds,
                baseline=None,
                color=color,
                linestyle=dash,
                linewidth=1.6,
            )
        ax.set_yscale("log")
        logarithmic(ax.yaxis)
        return inline(figure, name, "active vertices and edges by iteration")


def logarithmic(axis: Any) -> None:
    """Ticks such as 10 k or 1e-05 on a logarithmic axis, and no labels between them."""
    from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_data_interval()
    large = EngFormatter(sep=" ")
    axis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0) if high < 50 * low else (1.0,), numticks=7))
    axis.set_major_formatter(FuncFormatter(lambda value, _: large(value) if value >= 1 else f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def spread(name: str, what: str, rows: str, found: Distribution) -> str:
    """A distribution: how many `rows` have which value of `what`."""
    from matplotlib.ticker import EngFormatter, MaxNLocator

    with empty(rows) as (figure, ax):
        ax.stairs(found.counts, found.edges, fill=True, color=FAINT, linewidth=0)
        if found.logarithmic:
            ax.set_xscale("log")
            logarithmic(ax.xaxis)
        elif found.each:
            ax.xaxis.set_major_locator(MaxNLocator(9, integer=True, min_n_ticks=1))
        if found.counts.max() > 50 * max(1, found.counts[found.counts > 0].min()):
            ax.set_yscale("log")
            ax.set_ylim(bottom=0.7)
            logarithmic(ax.yaxis)
        else:
            ax.set_ylim(bottom=0)
            ax.yaxis.set_major_locator(MaxNLocator(6, integer=True))
            ax.yaxis.set_major_formatter(EngFormatter(sep=" "))
        ax.set_xlabel(what)
        return inline(figure, name, f"{rows} by {what}")


def hit_rate(name: str, data: Series) -> str:
    return stacked(name, "active edges from the cache", data, {"cache": data.hit_rate}, engine_colors(["cache"]), "%")


def growing(name: str, label: str, runs: dict[str, tuple[Series, Any]], unit: str) -> str:
    """One line for each recipe: the running total of its bins."""
    with axes(max(data.iterations for data, _ in runs.values()), label) as (figure, ax):
        for at, (recipe, (data, values)) in enumerate(runs.items()):
            color, dash = line(recipe)
            so_far = np.concatenate([[0], np.cumsum(values)])
            ax.plot(
                data.bounds, so_far, color=color, linestyle=dash, label=recipe, **told_apart(at, len(runs), so_far.size)
            )
        scaled(ax, unit)
        if len(runs) > 1:
            legend(figure, runs)
        return inline(figure, name, f"{label} by iteration: {', '.join(runs)}")


def legend(figure: Any, names: Iterable[str]) -> None:
    """The legend below a figure, in as many columns as its names allow."""
    figure.legend(loc="outside lower center", ncols=min(4, max(1, LETTERS // (6 + max(map(len, names))))))


def told_apart(at: int, lines: int, points: int) -> dict[str, Any]:
    """The style of line number `at`: thinner than the lines below it, with its own marks at other points."""
    if lines == 1:
        return {"linewidth": 1.8}
    step = max(1, points // MARKS)
    marks = {
        "marker": MARKERS[at % len(MARKERS)],
        "markersize": 4.5,
        "markevery": (at * step // lines if step > 1 else at % 2, step),
    }
    return {"linewidth": 3.4 - 2.2 * at / max(1, lines - 1), **marks}


def by_batch(name: str, label: str, batches: int, lines: dict[str, tuple[Any, Any, str, str]], unit: str) -> str:
    """One line per recipe of a stream: bounds, values, colour, dash. Logarithmic unless `unit` is "%".

    A recipe without values has no line; the marks of the others are the same in all figures.
    """
    from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter, PercentFormatter

    with axes(batches, label, "batch") as (figure, ax):
        for at, (recipe, (bounds, values, colour, dash)) in enumerate(lines.items()):
            if values.any():
                seen = values if unit == "%" else np.where(values > 0, values, np.nan)
                style = in_columns(told_apart(at, len(lines), seen.size))
                ax.plot(*columns(bounds, seen), color=colour, linestyle=dash, label=recipe, **style)
        if unit == "%":
            ax.set_ylim(0, 1.02)
            ax.yaxis.set_major_formatter(PercentFormatter(1))
        else:
            seen = np.concatenate([values[values > 0] for _, values, _, _ in lines.values()])
            narrow = seen.max() < NARROW * seen.min()
            ax.set_yscale("log")
            ax.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5) if narrow else (1,), numticks=7))
            ax.yaxis.set_major_formatter(EngFormatter(unit=unit, sep=" "))
            ax.yaxis.set_minor_formatter(NullFormatter())
        legend(figure, lines)
        return inline(figure, name, f"{label} by batch: {', '.join(lines)}")


def columns(bounds: Any, values: Any) -> tuple[Any, Any]:
    """A line with steps, by three points a column: its ends, and the middle, for marks."""
    middles = (bounds[:-1] + bounds[1:]) / 2
    return np.stack([bounds[:-1], middles, bounds[1:]], axis=1).ravel(), np.repeat(values, 3)


def in_columns(style: dict[str, Any]) -> dict[str, Any]:
    """A line's style, with its marks in the middle of columns."""
    if "markevery" not in style:
        return style
    first, step = style["markevery"]
    return {**style, "markevery": (3 * first + 1, 3 * step)}


def partition_map(name: str, data: Series, chosen: Map) -> str:
    """Partitions downwards, iterations to the right; cells without a transfer stay blank."""
    from matplotlib.colors import to_rgba_array

    table = np.zeros((UNKNOWN + 1, 4))
    table[list(NAMES)] = to_rgba_array(list(engine_colors(NAMES.values()).values()))
    table[UNKNOWN] = to_rgba_array(colour_of("resident"), 0.25)
    with axes(data.iterations, "partition") as (figure, ax):
        pixels = (table[chosen.codes] * 255).astype(np.uint8)
        ax.imshow(
            pixels,
            aspect="auto",
            interpolation="none",
            origin="upper",
            extent=(0.5, chosen.step * chosen.codes.shape[1] + 0.5, chosen.row_step * chosen.codes.shape[0], 0),
        )
        ax.set_xlim(0.5, data.iterations + 0.5)
        ax.set_ylim(chosen.partitions, 0)
        ax.grid(False)
        return inline(figure, name, "which engine brought which partition in which iteration")


def plain(name: str) -> str:
    """zero_copy as people write it."""
    return name.replace("_", "-")
