"""`isthmus.stream`: opens a stream on a graph, and with a log, or goes on with a log."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Unpack

from isthmus.errors import OptionError, StoreError
from isthmus.graph.graph import Graph, open_graph
from isthmus.messages import option
from isthmus.runtime.options import refuse_unknown
from isthmus.runtime.session import check_graph
from isthmus.stream.context import OPTIONS, StreamOptions
from isthmus.stream.live import Live
from isthmus.stream.log.logged import Logged, log_size_of
from isthmus.stream.log.reader import ReadOnly


def stream(
    graph: Graph | str | Path | None = None,
    programs: Iterable[Any] | None = None,
    *,
    log: str | Path | None = None,
    log_size: str | int | None = None,
    read_only: bool = False,
    **options: Unpack[StreamOptions],
) -> Live:
    """Open a stream on a graph, or on the store at a path.

    The graph itself does not change: the stream copies it into memory, or leaves its edges on disk and holds the
    changes. `programs` are the names of algorithms, programs such as `isthmus.SSSP(source=7)`, or programs of your own.
    `memory` limits what the stream holds; edges that do not fit stay on disk, if the graph is a store (`on_disk=True`
    or `False` overrides this). For edges on disk it may be a share of them, such as "10%", and `policy` a recipe for
    reading them. `threads` and `device` are as for a run. On a modelled device or a GPU the host has the edges: then
    `memory` is the GPU's memory, or a share of the edges for lists that stay near, and `policy` a recipe of
    `policies/stream_recipes.py`.

    `log` is a folder. A batch is on disk there when `apply` returns, and the stream goes on with it when it is opened
    again, with the same graph or with none. Then `programs` are those of the last time, if none are given. `log_size`:
    length of the log after which a checkpoint is written and the log is cut. `read_only`: open the folder as it is now,
    beside a stream that writes to it.

    Raises BudgetError if `memory` is too small, OptionError for an algorithm that cannot be kept current, ProgramError
    for a program of your own that cannot, and StoreError for a log that is damaged or that another process writes.

    ```python
    import isthmus as ist

    with ist.stream(ist.generate("path", vertices=4), [ist.BFS(source=0)]) as live:
        live.apply(inserts=[(0, 3)])
        print(live["bfs"].values)
    #> [0 1 2 1]
    ```
    """
    refuse_unknown("stream", options, ("programs", *OPTIONS, "log", "log_size", "read_only"))
    if log is None and (read_only or log_size is not None):
        raise OptionError(
            f"{'read_only' if read_only else 'log_size'}: expected a folder as well: give {option('log')}"
        )
    with ExitStack() as stack:
        if isinstance(graph, str | Path):
            graph = stack.enter_context(open_graph(graph))
        elif graph is not None or log is None:
            check_graph("stream", graph)
        if log is None:
            return Live(graph, programs or (), **options)
        folder = Path(log).absolute()  # wherever the process goes
        try:
            return opened(
                ReadOnly(folder) if read_only else Logged(folder, graph, log_size_of(log_size)),
                graph,
                programs,
                options,
            )
        except OSError as error:
            raise StoreError(f"{error.filename or log}: {error.strerror}") from error


def opened(log: Logged | ReadOnly, graph: Graph | None, programs: Iterable[Any] | None, options: StreamOptions) -> Live:
    """A stream that goes on with a log. The log is closed with it, or now if it cannot be opened."""
    try:
        return Live(graph, log.programs() if programs is None else programs, log=log, **options)
    except BaseException:
        log.close()
        raise
