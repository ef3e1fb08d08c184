"""A shortest path between two vertices: a search that ends at the target, and a walk back along predecessors.

The search is that of BFS, or of SSSP where weights count; the tree is that of their option `predecessors`. BFS and the
tree stop as soon as the target is reached. In memory SSSP stops when the target's distance is final; from disk, paths
longer than the best one to the target are not followed. Only the edges that are needed are read, within the same budget
as any run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from isthmus.checks import flag
from isthmus.errors import NoPathError, OptionError
from isthmus.graph.graph import Graph
from isthmus.programs.algorithm import WEIGHT_WORDS, Algorithm, Answer, Runner
from isthmus.programs.algorithms.bfs import BFS
from isthmus.programs.algorithms.sssp import SSSP
from isthmus.programs.predecessors import Predecessors, with_predecessors
from isthmus.programs.program import NOTHING_YET
from isthmus.programs.weights import no_negative_weights
from isthmus.runtime.options import RunOptions, split
from isthmus.runtime.results.result import Result
from isthmus.runtime.session import Session, check_graph


@dataclass
class FoundPath:
    """The vertices of a path in order, its length (edges, or the sum of their weights), and the result of the
    search.
    """

    vertices: list[Any]
    length: float
    result: Result


def shortest_path(
    graph: Graph, source: Any, target: Any, weight: Any = None, **options: Unpack[RunOptions]
) -> list[Any]:
    """The vertices of a shortest path from `source` to `target`, in order: one with the fewest edges or, with
    weight="weight", the smallest sum of weights.

    Raises NoPathError if there is none. Among several shortest paths, any is right.
    """
    check_graph("shortest_path", graph)
    _, opened, called = split("shortest_path", dict(options))
    with Session(graph, **opened) as session:
        return found_path(session, source, target, weight, **called).vertices


def found_path(session: Session, source: Any, target: Any, weight: Any = None, **options: Any) -> FoundPath:
    """The same in a session, with the length of the path."""
    weighted = uses_weights(weight) and session.graph.weighted
    ids = session.graph.ids
    for vertex in (source, target):
        ids.number(vertex)  # an unknown one is an error before the search
    result = session.call(Algorithm("shortest_path", search), (source, target, weighted), dict(options))
    if "predecessor" not in result.columns:
        raise NoPathError(f"no path from vertex {source!r} to vertex {target!r}{direction(session.graph)}")
    start, numbers, parents = ids.number(source), [ids.number(target)], result.raw("predecessor")
    while numbers[-1] != start:
        numbers.append(int(parents[numbers[-1]]))
    length = result.raw("distance")[numbers[0]].item()
    return FoundPath(ids.users(np.array(numbers[::-1])).tolist(), length, result)


def search(run: Runner, source: Any, target: Any, weight: bool) -> Answer:
    """Distances and predecessors, as far as the target needs them; no predecessors if it is not reached.

    The search may end early, so its only figure is the length of the path: others would be about a part of the graph.
    """
    run.must_fit(Predecessors(source, NOTHING_YET, weight))
    if weight:
        no_negative_weights(run, "shortest_path")
    answer = run(SSSP(source, until=target) if weight else BFS(source, until=target))
    at = run.graph.ids.number(target)
    known = answer.columns["distance"][at : at + 1]
    answer.figures = {}
    if answer.declared[0].missing(known)[0]:
        return answer
    answer.figures = {"length": known[0].item()}
    return with_predecessors(run, answer, source, weight, target)


def uses_weights(weight: Any) -> bool:
    """NetworkX's words for weights, or a flag."""
    if isinstance(weight, str) and weight not in WEIGHT_WORDS:
        raise OptionError(f"weight: expected None, or 'weight' for the graph's weights, got {weight!r}")
    return weight is not None and (weight in WEIGHT_WORDS or flag("weight", weight))


def direction(graph: Graph) -> str:
    return "; edges are followed in their direction only" if graph.directed else ""
