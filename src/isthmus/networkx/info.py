"""Facts about the backend that NetworkX reads when it is imported, so this file imports nothing.

`FUNCTIONS` is the list of functions that the backend has; what each adds to NetworkX's own documentation is shown
there. A test compares it with `backend.py`.
"""

from __future__ import annotations

from typing import Any

BY_DISTANCE = (
    "The dictionary is in ascending order of distances; vertices at the same distance are in the order of the graph."
)
NOT_NEGATIVE = "Weights are numbers of at least 0."

FUNCTIONS = {
    "all_pairs_bellman_ford_path_length": f"{NOT_NEGATIVE} {BY_DISTANCE}",
    "all_pairs_dijkstra_path_length": f"{NOT_NEGATIVE} {BY_DISTANCE}",
    "all_pairs_shortest_path_length": f"64 sources share every pass over the edges. {BY_DISTANCE}",
    "ancestors": "On a stored graph only if it is undirected.",
    "average_clustering": "Undirected graphs without weights.",
    "bellman_ford_path_length": NOT_NEGATIVE,
    "betweenness_centrality": "Without weights. The same `seed` draws the same sample.",
    "clustering": "Undirected graphs without weights.",
    "connected_components": "In the order of their first nodes, as NetworkX has them.",
    "core_number": "Directed graphs as well, by the sum of both degrees.",
    "descendants": "",
    "descendants_at_distance": "",
    "dijkstra_path_length": NOT_NEGATIVE,
    "has_path": "",
    "is_connected": "",
    "is_strongly_connected": "",
    "is_weakly_connected": "",
    "katz_centrality": "`tol` bounds the relative error of every score. `alpha` and `beta` are numbers above 0; no "
    "`nstart`.",
    "maximum_spanning_edges": "By Kruskal's rules: the edges, and their order, are NetworkX's.",
    "maximum_spanning_tree": "By Kruskal's rules: the tree is NetworkX's.",
    "minimum_spanning_edges": "By Kruskal's rules: the edges, and their order, are NetworkX's.",
    "minimum_spanning_tree": "By Kruskal's rules: the tree is NetworkX's.",
    "node_connected_component": "",
    "number_connected_components": "",
    "number_strongly_connected_components": "",
    "number_weakly_connected_components": "",
    "pagerank": "`tol` bounds the L1 error of the whole answer, which NetworkX's does not. `alpha` is above 0 and "
    "below 1.",
    "shortest_path_length": f"{NOT_NEGATIVE} {BY_DISTANCE}",
    "single_source_bellman_ford_path_length": f"{NOT_NEGATIVE} {BY_DISTANCE}",
    "single_source_dijkstra_path_length": f"{NOT_NEGATIVE} {BY_DISTANCE}",
    "single_source_shortest_path_length": BY_DISTANCE,
    "single_target_shortest_path_length": f"On a stored graph only if it is undirected. {BY_DISTANCE}",
    "strongly_connected_components": "In the order of their first nodes; NetworkX has another order.",
    "transitivity": "Undirected graphs.",
    "triangles": "",
    "weakly_connected_components": "In the order of their first nodes, as NetworkX has them.",
}

DEFAULTS = {"memory": None, "policy": None, "threads": None}  # options of every run; None: as Isthmus chooses


def backend_info() -> dict[str, Any]:
    """The facts that the entry point `networkx.backend_info` returns."""
    return {
        "backend_name": "isthmus",
        "project": "isthmus",
        "package": "isthmus",
        "short_summary": "Graph algorithms when the edges do not fit in fast memory.",
        "default_config": dict(DEFAULTS),
        "functions": {name: {"additional_docs": words} if words else {} for name, words in FUNCTIONS.items()},
    }
