"""Isthmus: graph algorithms when the edges do not fit in fast memory.

Names are loaded when they are first used, so that `isthmus --help` does not wait for compilers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_WHERE = {
    "open": ("isthmus.graph.graph", "open_graph"),
    "ingest": ("isthmus.graph.build", "ingest"),
    "read": ("isthmus.graph.build", "read"),
    "generate": ("isthmus.graph.build", "generate"),
    "verify": ("isthmus.graph.verify", "verify"),
    "calibrate": ("isthmus.link.calibrate", "calibrate"),
    "run": ("isthmus.runtime.algorithms", "run"),
    "bfs": ("isthmus.runtime.algorithms", "bfs"),
    "sssp": ("isthmus.runtime.algorithms", "sssp"),
    "weakly_connected_components": ("isthmus.runtime.algorithms", "weakly_connected_components"),
    "pagerank": ("isthmus.runtime.algorithms", "pagerank"),
    "widest_path": ("isthmus.runtime.more_algorithms", "widest_path"),
    "katz": ("isthmus.runtime.more_algorithms", "katz"),
    "php": ("isthmus.runtime.more_algorithms", "php"),
    "multi_source_bfs": ("isthmus.runtime.more_algorithms", "multi_source_bfs"),
    "personalized_pagerank": ("isthmus.runtime.more_algorithms", "personalized_pagerank"),
    "betweenness_centrality": ("isthmus.runtime.more_algorithms", "betweenness_centrality"),
    "label_propagation": ("isthmus.runtime.more_algorithms", "label_propagation"),
    "core_number": ("isthmus.runtime.more_algorithms", "core_number"),
    "triangle_count": ("isthmus.runtime.more_algorithms", "triangle_count"),
    "local_clustering_coefficient": ("isthmus.runtime.more_algorithms", "local_clustering_coefficient"),
    "minimum_spanning_forest": ("isthmus.runtime.more_algorithms", "minimum_spanning_forest"),
    "strongly_connected_components": ("isthmus.runtime.more_algorithms", "strongly_connected_components"),
    "circuit": ("isthmus.runtime.simulations", "circuit"),
    "nn_inference": ("isthmus.runtime.simulations", "nn_inference"),
    "compare": ("isthmus.runtime.compare", "compare"),
    "plan": ("isthmus.runtime.plan", "plan"),
    "monotone": ("isthmus.programs.declared", "monotone"),
    "accumulative": ("isthmus.programs.declared", "accumulative"),
    "Program": ("isthmus.programs.program", "Program"),
    "Functions": ("isthmus.programs.functions", "Functions"),
    "State": ("isthmus.programs.program", "State"),
    "Graph": ("isthmus.graph.graph", "Graph"),
    "IsthmusError": ("isthmus.errors", "IsthmusError"),
    "OptionError": ("isthmus.errors", "OptionError"),
    "GraphFormatError": ("isthmus.errors", "GraphFormatError"),
    "StoreError": ("isthmus.errors", "StoreError"),
    "BudgetError": ("isthmus.errors", "BudgetError"),
    "ProgramError": ("isthmus.errors", "ProgramError"),
    "UnknownVertexError": ("isthmus.errors", "UnknownVertexError"),
    "PluginError": ("isthmus.errors", "PluginError"),
}
__all__ = [*_WHERE, "__version__"]

if TYPE_CHECKING:
    from isthmus.errors import (
        BudgetError,
        GraphFormatError,
        IsthmusError,
        OptionError,
        PluginError,
        ProgramError,
        StoreError,
        UnknownVertexError,
    )
    from isthmus.graph.build import generate, ingest, read
    from isthmus.graph.graph import Graph
    from isthmus.graph.graph import open_graph as open
    from isthmus.graph.verify import verify
    from isthmus.link.calibrate import calibrate
    from isthmus.programs.declared import accumulative, monotone
    from isthmus.programs.functions import Functions
    from isthmus.programs.program import Program, State
    from isthmus.runtime.algorithms import bfs, pagerank, run, sssp, weakly_connected_components
    from isthmus.runtime.compare import compare
    from isthmus.runtime.more_algorithms import (
        betweenness_centrality,
        core_number,
        katz,
        label_propagation,
        local_clustering_coefficient,
        minimum_spanning_forest,
        multi_source_bfs,
        personalized_pagerank,
        php,
        strongly_connected_components,
        triangle_count,
        widest_path,
    )
    from isthmus.runtime.plan import plan
    from isthmus.runtime.simulations import circuit, nn_inference


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'isthmus' has no attribute {name!r}")
    module, attribute = _WHERE[name]
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
