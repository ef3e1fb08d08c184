"""Suggestions for an option, a command or an algorithm that does not exist."""

from __future__ import annotations

import difflib
from typing import Any

ELSEWHERE = {  # what other libraries, and people, call an algorithm
    "breadth_first_search": "bfs",
    "dijkstra": "sssp",
    "bellman_ford": "sssp",
    "shortest_paths": "sssp",
    "components": "weakly_connected_components",
    "connected_components": "weakly_connected_components",
    "cc": "weakly_connected_components",
    "scc": "strongly_connected_components",
    "pr": "pagerank",
    "ppr": "personalized_pagerank",
    "mst": "minimum_spanning_forest",
    "minimum_spanning_tree": "minimum_spanning_forest",
    "k_core": "core_number",
    "kcore": "core_number",
    "triangles": "triangle_count",
    "clustering": "local_clustering_coefficient",
    "lcc": "local_clustering_coefficient",
    "cdlp": "label_propagation",
    "lpa": "label_propagation",
    "katz_centrality": "katz",
    "bc": "betweenness_centrality",
    "betweenness": "betweenness_centrality",
}
COMMANDS = {
    "shortest_path": "isthmus path",
    "degree": "isthmus degrees",
    "degrees": "isthmus degrees",
    "ego": "isthmus ego-graph",
}


def nearest(command: Any, context: Any, error: Any) -> str | None:
    """The option or command that comes closest to the one in a usage error; None if nothing does."""
    if hasattr(error, "option_name"):
        return nearest_option(
            error.option_name, [name for each in command.params for name in (*each.opts, *each.secondary_opts)]
        )
    if "No such command" in error.message:
        return nearest_command(error.message.split("'")[1], command.list_commands(context), context.command_path)
    return None


def nearest_option(given: str, options: list[str]) -> str | None:
    from isthmus.runtime.options import ELSEWHERE as OPTIONS

    meant = f"--{OPTIONS.get(given.lstrip('-').replace('-', '_'), '').replace('_', '-')}"
    if meant in options:
        return meant
    close = difflib.get_close_matches(given.replace("_", "-"), options, 1)
    return close[0] if close else None


def nearest_command(given: str, names: list[str], path: str) -> str | None:
    word = given.lower().replace("-", "_")
    if ELSEWHERE.get(word) in names:
        return ELSEWHERE[word]
    if word in COMMANDS:
        return COMMANDS[word]
    plain = {name.replace("-", "_"): name for name in names}
    close = difflib.get_close_matches(word, plain, 1)
    if close:
        return plain[close[0]]
    if path.strip() == "isthmus" and word in ELSEWHERE.values():  # an algorithm without its group
        return f"isthmus run {word}"
    return None
