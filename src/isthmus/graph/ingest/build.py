"""Public functions that make a graph: ingest into a store, read into memory, generate."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import fields, replace
from numbers import Real
from pathlib import Path
from typing import Any, SupportsIndex, TypedDict, Unpack

from isthmus.checks import flag, path_of
from isthmus.errors import OptionError
from isthmus.graph.formats import ReadOptions, open_source
from isthmus.graph.formats.isthmus_store import StoreSource
from isthmus.graph.graph import Graph
from isthmus.graph.ingest.cleaning import Cleaning, Report
from isthmus.graph.ingest.edges import EdgeSource
from isthmus.graph.ingest.generators import KINDS, PRESETS, Generator, WeightRange
from isthmus.graph.ingest.ingest import Ingest
from isthmus.graph.store.store import MemoryStore, Store
from isthmus.graph.store.writer import MemoryWriter, StoreWriter
from isthmus.memory import Budget
from isthmus.messages import warn
from isthmus.progress import SILENT, Progress
from isthmus.threads import Pool

READING = {field.name for field in fields(ReadOptions)}
CLEANING = {field.name for field in fields(Cleaning)}
ORDERS = ("natural", "hub")


class BuildOptions(TypedDict, total=False):
    """How a graph is built from edges."""

    order: str  # of vertices: natural or hub
    overwrite: bool  # replace a store that exists
    memory: str | int | None  # the limit; None: 60 % of the available memory
    threads: int | None  # None: one for each core
    progress: Progress  # called with stages and counts


class GenerateOptions(BuildOptions, total=False):
    """The size and shape of a generated graph, and how it is built."""

    scale: int
    edge_factor: float
    preset: str
    probabilities: Sequence[float]
    permute: bool
    vertices: int
    edges: int
    rows: int
    columns: int


def ingest(
    edges: Any,
    path: str | Path,
    /,
    *,
    order: str = "natural",
    overwrite: bool = False,
    memory: str | int | None = None,
    threads: int | None = None,
    progress: Progress = SILENT,
    **options: Any,
) -> Graph:
    """Read edges into a new store at `path`, within `memory`, and open it.

    `edges` is a path (also a pattern such as "edges-*.parquet"), arrays (sources, targets[, weights]), a list of
    tuples, a SciPy matrix, a NetworkX graph, or a table of pandas, polars, pyarrow or DuckDB.

    How to read: format, source, target, weight, header, ids, vertices, comments, allow_negative, max_expansion,
    missing. What to keep: directed, self_loops ("keep" or "drop"), parallel ("keep", "drop", "min", "sum"), in_edges,
    weight_dtype. A format may have further options of its own. `order="hub"` numbers vertices by degree, which some
    recipes use. The graph's `report` says what was read, dropped and merged.

    Raises GraphFormatError for an input that does not follow its format, StoreError if there is a store at `path` and
    `overwrite` is False, and BudgetError if `memory` is too small.
    """
    reading, cleaning = split_options(options)
    how = BuildOptions(order=order, overwrite=overwrite, memory=memory, threads=threads, progress=progress)
    return build(open_source(edges, reading), cleaning, path_of("ingest", path), **how)


def read(
    edges: Any,
    /,
    *,
    order: str = "natural",
    memory: str | int | None = None,
    threads: int | None = None,
    progress: Progress = SILENT,
    **options: Any,
) -> Graph:
    """Read edges into a graph in memory. Inputs, options and errors are those of `ingest`.

    ```python
    import isthmus as ist

    g = ist.read([("a", "b", 2), ("b", "c", 5)], directed=False)
    print(g)
    #> <Graph: 3 vertices, 2 undirected edges, weighted in memory>
    ```
    """
    reading, cleaning = split_options(options)
    how = BuildOptions(order=order, memory=memory, threads=threads, progress=progress)
    return build(open_source(edges, reading), cleaning, None, **how)


def generate(
    kind: str,
    path: str | Path | None = None,
    *,
    seed: int = 1,
    directed: bool = False,
    weights: str | None = None,
    weight_dtype: str | None = None,
    self_loops: str = "drop",
    parallel: str = "drop",
    in_edges: bool = True,
    **options: Unpack[GenerateOptions],
) -> Graph:
    """Make a graph of a `kind`, in a store at `path` or, without one, in memory. The same `seed` makes the same graph.

    - "rmat": `scale` (2**scale vertices), `edge_factor`, `preset` or `probabilities`, `permute`
    - "uniform": `vertices`, `edges`
    - "grid": `rows`, `columns`
    - "path", "star", "complete": `vertices`

    `weights` is a range from which weights are drawn, such as "1:255" or "0.0:1.0". `order`, `overwrite`, `memory`,
    `threads` and `progress` are as for `ingest`.

    ```python
    import isthmus as ist

    print(ist.generate("grid", rows=3, columns=4))
    #> <Graph: 12 vertices, 17 undirected edges in memory>
    ```
    """
    if not isinstance(kind, str) or kind not in KINDS:
        raise OptionError(f"generate: expected one of {', '.join(KINDS)}, got {kind!r}")
    building = {name: value for name, value in options.items() if name in BuildOptions.__annotations__}
    shape = {name: value for name, value in options.items() if name not in building}
    if "preset" in shape:
        preset = shape.pop("preset")
        if preset not in PRESETS:
            raise OptionError(f"preset: expected one of {', '.join(PRESETS)}, got {preset!r}")
        shape.setdefault("probabilities", PRESETS[preset])  # type: ignore[index]
    check_shape(kind, {**shape, "seed": seed})
    source: Generator = KINDS[kind](seed=seed, directed=flag("directed", directed), **shape)
    if weights is not None:
        source.range = WeightRange.parse(weights, weight_dtype)
        if parallel not in ("keep", "drop", "first"):
            raise OptionError("parallel edges of a generated graph have equal weights: expected keep or drop")
    elif weight_dtype is not None:
        raise OptionError("a weight type needs a range of weights")
    cleaning = Cleaning(directed, self_loops, parallel, in_edges)
    return build(source, cleaning, None if path is None else path_of("path", path), **building)  # type: ignore[arg-type]


def check_shape(kind: str, shape: dict[str, Any]) -> None:
    """Raise OptionError for parameters of a generator that are unknown, missing or of the wrong kind."""
    has = [name for name in inspect.signature(KINDS[kind]).parameters if name not in ("seed", "directed")]
    try:
        inspect.signature(KINDS[kind]).bind(**shape)
    except TypeError as error:
        raise OptionError(f"generate {kind}: {error}; it has {', '.join(has)}") from None
    for name, value in shape.items():
        if name == "permute":
            flag(name, value)
        elif name == "probabilities":
            if not isinstance(value, tuple | list) or not all(isinstance(each, Real) for each in value):
                raise OptionError(f"{name}: expected three numbers a, b, c, got {value!r}")
        elif not isinstance(value, Real if name == "edge_factor" else SupportsIndex) or isinstance(value, bool):
            raise OptionError(f"{name}: expected a {'' if name == 'edge_factor' else 'whole '}number, got {value!r}")


def split_options(options: dict[str, Any]) -> tuple[ReadOptions, Cleaning]:
    """Split options into reading and cleaning. Other names belong to the format, which checks them."""
    own = {name: value for name, value in options.items() if name not in (READING - {"own"}) | CLEANING}
    reading = ReadOptions(
        **{name: value for name, value in options.items() if name in READING and name != "own"}, own=own
    )
    return reading, Cleaning(**{name: value for name, value in options.items() if name in CLEANING})


def build(
    source: EdgeSource,
    cleaning: Cleaning,
    path: str | Path | None,
    *,
    order: str = "natural",
    overwrite: bool = False,
    memory: str | int | None = None,
    threads: int | None = None,
    progress: Progress = SILENT,
) -> Graph:
    """Run an ingest into a store at `path` (None: into memory).

    Hub order depends on the degrees of the finished graph, so any input but a finished store is built in natural
    order first.
    """
    if order not in ORDERS:
        raise OptionError(f"order: expected natural or hub, got {order!r}")
    flag("overwrite", overwrite)
    if not hasattr(progress, "stage"):
        raise OptionError(f"progress: expected an object with the methods stage and advance, got {progress!r}")
    budget = Budget(memory)
    with ExitStack() as stack:
        pool = stack.enter_context(Pool(threads))
        writer: Any = stack.enter_context(StoreWriter(path, overwrite) if path is not None else MemoryWriter(budget))
        report = None
        cleaning = still_simple(source, cleaning)
        if order == "hub" and not is_final(source, cleaning):
            scratch: Any = MemoryWriter(budget) if path is None else StoreWriter(writer.folder / "natural.isthmus")
            with scratch:
                run = Ingest(source, scratch, cleaning, budget, pool, progress)
                source, report = StoreSource(run.run()), run.report
            cleaning = still_simple(source, Cleaning(in_edges=cleaning.in_edges))
        if isinstance(source, StoreSource):
            source.order = order
        run = Ingest(source, writer, cleaning, budget, pool, progress)
        return finished(run.run(), report or run.report)


def store_again(graph: Graph, path: str | Path, overwrite: bool = False) -> Graph:
    """Write a graph that is in memory into a new store, in natural order."""
    return build(StoreSource(graph.store), Cleaning(), path, overwrite=overwrite)


def is_final(source: EdgeSource, cleaning: Cleaning) -> bool:
    """Whether `source` is a store whose edges do not change."""
    if not isinstance(source, StoreSource) or cleaning.directed not in (None, source.directed):
        return False
    return cleaning.self_loops == "keep" and (cleaning.parallel == "keep" or not source.store.manifest.parallel)


def still_simple(source: EdgeSource, cleaning: Cleaning) -> Cleaning:
    """The cleaning, with parallel "drop" for a store that has no parallel edges and gets none."""
    if (
        not isinstance(source, StoreSource)
        or source.store.manifest.parallel
        or cleaning.directed not in (None, source.directed)
    ):
        return cleaning
    return replace(cleaning, parallel="drop") if cleaning.parallel == "keep" else cleaning


def finished(store: Store | MemoryStore, report: Report) -> Graph:
    graph = Graph(store)
    graph.report = report
    warn(report.warnings)
    return graph
