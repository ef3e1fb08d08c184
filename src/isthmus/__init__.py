"""Isthmus: graph algorithms when the edges do not fit in fast memory.

Names are loaded when they are first used, so that `isthmus --help` does not wait for compilers.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

import isthmus.stream  # a package without contents of its own; loaded now, it does not hide the function `stream` later

__version__ = "0.1.0"

del stream  # type: ignore[name-defined]  # noqa: F821  # the name that the import has set

_WHERE = {
    "open": ("isthmus.graph.graph", "open_graph"),
    "ingest": ("isthmus.graph.ingest.build", "ingest"),
    "read": ("isthmus.graph.ingest.build", "read"),
    "generate": ("isthmus.graph.ingest.build", "generate"),
    "export": ("isthmus.graph.export.export", "export"),
    "from_networkx": ("isthmus.graph.export.conversion", "from_networkx"),
    "coordinates": ("isthmus.graph.reading.coordinates", "coordinates"),
    "verify": ("isthmus.graph.store.verify", "verify"),
    "calibrate": ("isthmus.runtime.plan.calibrate", "calibrate"),
    "run": ("isthmus.runtime.public", "run"),
    "session": ("isthmus.runtime.session", "session"),
    "stream": ("isthmus.stream.opening", "stream"),
    "make_workload": ("isthmus.stream.workload.make", "make_workload"),
    "networkx_graph": ("isthmus.networkx.stored_graph", "networkx_graph"),
    "compare": ("isthmus.runtime.plan.comparison", "compare"),
    "compare_streams": ("isthmus.stream.stream_comparison", "compare_streams"),
    "plan": ("isthmus.runtime.plan.plan", "plan"),
    "shortest_path": ("isthmus.runtime.results.shortest_path", "shortest_path"),
    "degrees": ("isthmus.runtime.results.degrees", "degrees"),
    "subgraph": ("isthmus.graph.export.subgraph", "subgraph"),
    "ego_graph": ("isthmus.graph.export.subgraph", "ego_graph"),
    "algorithm": ("isthmus.programs.algorithm", "algorithm"),
    "monotone": ("isthmus.programs.declaration", "monotone"),
    "accumulative": ("isthmus.programs.declaration", "accumulative"),
    "Program": ("isthmus.programs.program", "Program"),
    "Functions": ("isthmus.programs.functions", "Functions"),
    "State": ("isthmus.programs.state", "State"),
    "Answer": ("isthmus.programs.algorithm", "Answer"),
    "Column": ("isthmus.programs.column", "Column"),
    "Option": ("isthmus.programs.algorithm", "Option"),
    "Runner": ("isthmus.programs.algorithm", "Runner"),
    "Vertex": ("isthmus.programs.algorithm", "Vertex"),
    "Graph": ("isthmus.graph.graph", "Graph"),
    "Session": ("isthmus.runtime.session", "Session"),
    "IsthmusError": ("isthmus.errors", "IsthmusError"),
    "OptionError": ("isthmus.errors", "OptionError"),
    "GraphFormatError": ("isthmus.errors", "GraphFormatError"),
    "StoreError": ("isthmus.errors", "StoreError"),
    "BudgetError": ("isthmus.errors", "BudgetError"),
    "ProgramError": ("isthmus.errors", "ProgramError"),
    "UnknownVertexError": ("isthmus.errors", "UnknownVertexError"),
    "NoPathError": ("isthmus.errors", "NoPathError"),
    "BatchError": ("isthmus.errors", "BatchError"),
    "PluginError": ("isthmus.errors", "PluginError"),
    "IsthmusWarning": ("isthmus.errors", "IsthmusWarning"),
}

if TYPE_CHECKING:
    from isthmus.errors import (
        BatchError,
        BudgetError,
        GraphFormatError,
        IsthmusError,
        IsthmusWarning,
        NoPathError,
        OptionError,
        PluginError,
        ProgramError,
        StoreError,
        UnknownVertexError,
    )
    from isthmus.graph.export.conversion import from_networkx
    from isthmus.graph.export.export import export
    from isthmus.graph.export.subgraph import ego_graph, subgraph
    from isthmus.graph.graph import Graph
    from isthmus.graph.graph import open_graph as open
    from isthmus.graph.ingest.build import generate, ingest, read
    from isthmus.graph.reading.coordinates import coordinates
    from isthmus.graph.store.verify import verify
    from isthmus.networkx.stored_graph import networkx_graph
    from isthmus.programs.algorithm import Answer, Option, Runner, Vertex, algorithm
    from isthmus.programs.column import Column
    from isthmus.programs.declaration import accumulative, monotone
    from isthmus.programs.functions import Functions
    from isthmus.programs.program import Program
    from isthmus.programs.state import State
    from isthmus.runtime.plan.calibrate import calibrate
    from isthmus.runtime.plan.comparison import compare
    from isthmus.runtime.plan.plan import plan
    from isthmus.runtime.public import run
    from isthmus.runtime.results.degrees import degrees
    from isthmus.runtime.results.shortest_path import shortest_path
    from isthmus.runtime.session import Session, session
    from isthmus.stream.stream_comparison import compare_streams
    from isthmus.stream.workload.make import make_workload


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [*_WHERE, "__version__", *_algorithms().names()]
    if name in _WHERE:
        module, attribute = _WHERE[name]
        value = getattr(importlib.import_module(module), attribute)
    elif not name.startswith("_") and not _is_module(name) and name in _algorithms():
        value = importlib.import_module("isthmus.runtime.public").function_of(_algorithms()[name])
    elif name[:1].isupper() and name in (titles := _live()):
        value = importlib.import_module("isthmus.stream.maintain.program_request").request_function(titles[name])
    else:
        raise AttributeError(f"module 'isthmus' has no attribute {name!r}")
    globals()[name] = value
    return value


def _is_module(name: str) -> bool:
    """Whether `name` is a module of the package. Python asks for these too; a search for algorithms would then import
    in a circle.
    """
    return importlib.util.find_spec(f"{__name__}.{name}") is not None


def _algorithms() -> Any:
    """Algorithms by name, found in their folder and in other packages."""
    return importlib.import_module("isthmus.programs.catalogue").ALGORITHMS


def _live() -> dict[str, Any]:
    """Algorithms that a stream can keep current, by the names that users give them by."""
    found = _algorithms()
    return {found[name].live.title: found[name] for name in found.names() if found[name].live is not None}


def __dir__() -> list[str]:
    return sorted([*_WHERE, "__version__", *_algorithms().names()])
