"""`isthmus.make_workload`: changes to try a stream with, from a graph or from a list of edges with times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from isthmus.checks import path_of
from isthmus.errors import OptionError
from isthmus.graph.changing.changing_graph import ChangingGraph
from isthmus.graph.graph import Graph, open_graph
from isthmus.graph.ingest.build import ingest
from isthmus.graph.store.store import SUFFIX, is_store
from isthmus.kernels.changing.packed_array import INSERT
from isthmus.messages import option
from isthmus.stream.workload import workload_file
from isthmus.stream.workload.temporal import Temporal
from isthmus.stream.workload.workload import drawn, initial_graph


def make_workload(
    source: Graph | str | Path,
    output: str | Path,
    *,
    batches: int = 10,
    size: int = 100_000,
    ratio: float = 0.5,
    seed: int = 1,
    initial: str | Path | None = None,
    rate: float | None = None,
    columns: tuple[str, ...] | None = None,
    directed: bool = True,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Write `batches` batches of `size` changes to a file, and return figures about them.

    From a graph or its store: a share `ratio` of inserts, the others deletes, by chance; the same `seed` gives the same
    file. With `initial` the changes are for that store, which is written: the graph without the edges that will be
    inserted (Grapin's way); else they are for the graph itself. `rate`, in changes per second, adds a column time.
    From a file of edges with times: its latest rows; `initial` gets the graph of the earlier rows. `columns` names the
    columns of a text without a header, `directed` says what its edges are.
    """
    path = workload_file.check_path(output, overwrite)
    if isinstance(source, Graph):
        source = source.frozen() if isinstance(source, ChangingGraph) else source
        return from_graph(source, path, batches, size, ratio, seed, initial, rate, overwrite)
    file = path_of("make_workload", source)
    if file.suffix == SUFFIX or is_store(file):
        with open_graph(file) as graph:
            return from_graph(graph, path, batches, size, ratio, seed, initial, rate, overwrite)
    if initial is None:
        raise OptionError(
            f"{file}: a list of edges with times needs a store for its earlier edges: give "
            f"{option('initial', 'NAME.isthmus')}"
        )
    return from_times(Temporal(file, columns), path, batches, size, initial, directed, overwrite)


def from_graph(
    graph: Graph,
    path: Path,
    batches: int,
    size: int,
    ratio: float,
    seed: int,
    initial: str | Path | None,
    rate: float | None,
    overwrite: bool,
) -> dict[str, Any]:
    changes = drawn(graph, batches, size, ratio, seed, initial is None)
    if initial is not None:
        initial_graph(graph, changes, lambda before: before.save(initial, overwrite))
    workload_file.write(path, workload_file.tables(changes, workload_file.users_of(graph), size, rate), size)
    return figures(changes.wishes, path, batches, size, initial)


def from_times(
    temporal: Temporal, path: Path, batches: int, size: int, initial: str | Path, directed: bool, overwrite: bool
) -> dict[str, Any]:
    changes, times, before = temporal.latest(batches, size)
    earlier = temporal.earlier(before, directed)
    ingest(earlier, initial, directed=directed, overwrite=overwrite).close()
    workload_file.write(path, workload_file.tables(changes, lambda users: users, size, None, times), size)
    span = float(times[-1] - times[0])
    return {
        **figures(changes.wishes, path, batches, size, initial),
        "earlier": before,
        "arrival_rate": changes.wishes.size / span if span else None,
    }


def figures(wishes: Any, path: Path, batches: int, size: int, initial: str | Path | None) -> dict[str, Any]:
    inserts = int(np.count_nonzero(wishes == INSERT))
    found = {
        "path": str(path),
        "batches": batches,
        "size": size,
        "changes": int(wishes.size),
        "inserts": inserts,
        "deletes": int(wishes.size) - inserts,
    }
    return {**found, "initial": str(initial) if initial is not None else None}
