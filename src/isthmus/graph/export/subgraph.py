"""Parts of a graph as graphs of their own, in memory: the subgraph of some vertices, and the neighbourhood of one.

Only the lists of the chosen vertices are read. Vertices keep their ids, edges their weights; parallel edges and self
loops stay.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from isthmus.checks import flag, is_real, whole
from isthmus.errors import BudgetError, OptionError
from isthmus.graph.changing.changing_ids import Naming
from isthmus.graph.export.some_lists import some_arcs
from isthmus.graph.graph import Graph
from isthmus.graph.ingest.numbering import number_dtype
from isthmus.graph.store.files import Array
from isthmus.graph.store.manifest import Manifest, Section
from isthmus.graph.store.store import MemoryStore
from isthmus.memory import Budget, format_size
from isthmus.messages import option

ARC_BYTES = 40  # near memory per arc while a subgraph is put together: its ends twice, their order, and a weight


def subgraph(graph: Graph, vertices: Iterable[Any], memory: str | int | None = None) -> Graph:
    """The graph of these vertices and all edges between them, in memory. Vertices keep their ids.

    Raises UnknownVertexError for a vertex that the graph does not have, and BudgetError if the part is larger than
    `memory`.
    """
    if isinstance(vertices, str | bytes) or not isinstance(vertices, Iterable):
        raise OptionError(f"subgraph: expected vertices, such as [1, 2, 3], got {vertices!r}")
    with graph.reading():
        places = np.unique(np.fromiter((graph.ids.place(v) for v in vertices), np.int64))
        return of_places(graph, places, Budget(memory))


def ego_graph(
    graph: Graph,
    n: Any,
    radius: float = 1,
    center: bool = True,
    undirected: bool = False,
    distance: str | None = None,
    memory: str | int | None = None,
) -> Graph:
    """The graph of the vertices at most `radius` edges from vertex `n`, and all edges between them, in memory.

    Edges are followed forwards; `undirected`: in both directions. `center=False` leaves `n` itself out. With
    distance="weight", `radius` is the largest sum of weights on a path instead; without weights every edge counts as 1,
    as in NetworkX.
    """
    by_weight = checked_distance(graph, distance, radius)
    sides = ("out", "in") if flag("undirected", undirected) and graph.directed else ("out",)
    if "in" in sides:
        graph.need_in_edges("ego_graph with undirected=True")
    budget = Budget(memory)
    with graph.reading():
        start = graph.ids.number(n)
        reach = within_weight if by_weight else within
        numbers = reach(graph, np.array([start]), radius, sides, budget)
        if not flag("center", center):
            numbers = numbers[numbers != start]
        return of_places(graph, np.sort(graph.ids.places(numbers).astype(np.int64)), budget)


def checked_distance(graph: Graph, distance: Any, radius: Any) -> bool:
    """Whether distances are sums of weights; OptionError for words and radii that mean nothing."""
    if distance not in (None, "weight"):
        raise OptionError(f"distance: expected None, or 'weight' for the graph's weights, got {distance!r}")
    if distance is None:
        whole("radius", radius, 0)
        return False
    if not is_real(radius) or not radius >= 0:
        raise OptionError(f"radius: expected a number of at least 0, got {radius!r}")
    if graph.weighted and graph.snapshot.negative_weights:
        raise OptionError(f"distance: expected weights of at least 0, and {graph} has negative ones")
    return graph.weighted


def within(graph: Graph, start: Array, radius: float, sides: tuple[str, ...], budget: Budget) -> Array:
    """Numbers of the vertices at most `radius` edges from the start, ascending."""
    reached = newest = start.astype(np.int64)
    for _ in range(int(min(radius, graph.vertices))):
        found = [np.empty(0, np.int64)]
        for side in sides:
            for arcs in some_arcs(graph, newest, side):
                found.append(np.setdiff1d(arcs.others.astype(np.int64), reached))
                refuse_more(budget, 8 * (reached.size + sum(part.size for part in found)), "a neighbourhood")
        newest = np.unique(np.concatenate(found))
        if not newest.size:
            break
        reached = np.union1d(reached, newest)
    return reached


def within_weight(graph: Graph, start: Array, radius: float, sides: tuple[str, ...], budget: Budget) -> Array:
    """Numbers of the vertices whose distance by weight from the start is at most `radius`, ascending.

    All vertices whose distance fell are followed at once, and again if it falls later, until none does.
    """
    reached, distances = start.astype(np.int64), np.zeros(start.size)
    newest = reached
    while newest.size:
        ends, totals = [reached], [distances]
        here = distances[np.searchsorted(reached, newest)]
        for side in sides:
            for arcs in some_arcs(graph, newest, side, True):
                assert arcs.weights is not None
                total = here[arcs.rows] + arcs.weights
                ends.append(arcs.others[total <= radius].astype(np.int64))
                totals.append(total[total <= radius])
                refuse_more(budget, 16 * sum(part.size for part in ends), "a neighbourhood")
        every, total = np.concatenate(ends), np.concatenate(totals)
        order = np.lexsort((total, every))
        first = order[np.unique(every[order], return_index=True)[1]]  # the shortest way to each
        newest = every[first[first >= reached.size]]  # what was known comes first among equals, so these are shorter
        reached, distances = every[first], total[first]
    return reached


def of_places(graph: Graph, places: Array, budget: Budget) -> Graph:
    """The subgraph of the vertices at these places in natural order, which ascend."""
    numbers = graph.ids.numbers_of_natural(places).astype(np.int64)
    ascending = np.argsort(numbers)  # of a graph in hub order the lists come in another order
    numbers, new = numbers[ascending], ascending
    sources, targets, weights = arcs_between(graph, numbers, new, budget)
    order = np.lexsort((targets, sources))
    sources, targets, weights = sources[order], targets[order], None if weights is None else weights[order]
    kind = number_dtype(places.size)
    arrays = sections("out", sources, targets, weights, places.size, kind)
    loops = int(np.count_nonzero(sources == targets))
    if graph.directed:
        back = np.lexsort((sources, targets))
        arrays |= sections(
            "in", targets[back], sources[back], None if weights is None else weights[back], places.size, kind
        )
    ids, more = naming(graph, places)
    arrays |= more
    manifest = Manifest(
        places.size,
        targets.size if graph.directed else (targets.size + loops) // 2,
        targets.size,
        graph.directed,
        graph.weighted,
        ids,
        self_loops=loops,
        parallel=graph.parallel,
        in_edges=graph.directed,
        negative_weights=weights is not None and bool((weights < 0).any()),
        origin={"made by": f"subgraph of {graph.path or 'a graph in memory'}"},
        sections={name: Section(str(array.dtype), array.size) for name, array in arrays.items()},
    )
    return Graph(MemoryStore(manifest, arrays))


def arcs_between(graph: Graph, numbers: Array, new: Array, budget: Budget) -> tuple[Array, Array, Array | None]:
    """Arcs between the vertices `numbers`, which ascend, by their numbers in the subgraph, `new`."""
    sources, targets = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    weights: list[Array] = [] if graph.snapshot.weight_dtype is None else [np.empty(0, graph.snapshot.weight_dtype)]
    count = 0
    for arcs in some_arcs(graph, numbers, "out", graph.weighted):
        others = arcs.others.astype(np.int64)
        at = np.minimum(np.searchsorted(numbers, others), numbers.size - 1)
        inside = numbers[at] == others
        sources.append(new[arcs.rows[inside]])
        targets.append(new[at[inside]])
        count += sources[-1].size
        if arcs.weights is not None:
            weights.append(arcs.weights[inside])
        refuse_more(budget, ARC_BYTES * count + 16 * numbers.size, "a subgraph")
    return np.concatenate(sources), np.concatenate(targets), np.concatenate(weights) if weights else None


def refuse_more(budget: Budget, size: int, what: str) -> None:
    if size > budget.limit:
        raise BudgetError(
            f"{what} needs more than {format_size(size)}, but the budget is {format_size(budget.limit)}; "
            f"choose fewer vertices, or give a larger {option('memory')}"
        )


def sections(
    side: str, rows: Array, others: Array, weights: Array | None, vertices: int, kind: Any
) -> dict[str, Array]:
    """The arrays of one side, from arcs that are sorted by row."""
    offsets = np.zeros(vertices + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=vertices), out=offsets[1:])
    found = {f"{side}.offsets": offsets, f"{side}.targets": others.astype(kind)}
    return found if weights is None else {**found, f"{side}.weights": weights}


def naming(graph: Graph, places: Array) -> tuple[str, dict[str, Array]]:
    """The kind of the vertices' ids, and the arrays of their id map."""
    users = graph.ids.users_of_natural(places)
    if graph.ids.kind != "string" and np.array_equal(users, np.arange(users.size)):
        return "dense", {}
    kind = "string" if graph.ids.kind == "string" else str(users.dtype)
    return kind, Naming(kind, users.size, users).map().sections()
