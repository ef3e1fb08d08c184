"""Maintained programs, taken from the registry, and what NetworkX says to each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from tests.stream.plain import Plain

import isthmus as ist
from isthmus.programs.catalogue import ALGORITHMS
from isthmus.stream.maintain.program_request import ProgramRequest

TOL = 1e-6
ALPHA = 0.005  # of Katz: below 1 / the largest eigenvalue of graphs of a few dozen vertices with small weights


def lengths(graph: Any, source: Any, weight: bool) -> dict[Any, Any]:
    return dict(nx.single_source_dijkstra_path_length(graph, source, weight="weight" if weight else None))


def below(limit: Any, found: dict[Any, Any]) -> dict[Any, Any]:
    return {v: distance for v, distance in found.items() if distance <= limit}


def widths(graph: Any, source: Any) -> dict[Any, Any]:
    """The narrowest edge of the widest path. The source has none."""
    found: dict[Any, Any] = {}
    levels = sorted({w for *_, w in graph.edges(data="weight")}, reverse=True)
    for level in levels:
        wide = graph.edge_subgraph([(u, v) for u, v, w in graph.edges(data="weight") if w >= level])
        for v in nx.descendants(wide, source) if source in wide else ():
            found.setdefault(v, level)
    return found


def components(graph: Any) -> dict[Any, Any]:
    parts = nx.weakly_connected_components(graph) if graph.is_directed() else nx.connected_components(graph)
    return {v: min(part) for part in map(list, parts) for v in part}


def ranks(graph: Any, weight: bool = False, personal: dict[Any, float] | None = None) -> dict[Any, float]:
    return dict(nx.pagerank(graph, 0.85, personal, max_iter=2000, tol=1e-14, weight="weight" if weight else None))


def matrix(graph: Any, weight: bool) -> Any:
    return nx.to_numpy_array(graph, weight="weight" if weight else None)


def hits(graph: Any, source: Any, weight: bool = False) -> dict[Any, float]:
    """Penalised hitting probability: the source has 1 and takes no part again."""
    names, arcs = list(graph), matrix(graph, weight)
    strength = arcs.sum(1, keepdims=True)
    steps = np.divide(arcs, strength, out=np.zeros_like(arcs), where=strength > 0)
    at = names.index(source)
    steps[:, at] = 0
    start = np.zeros(len(names))
    start[at] = 1
    return dict(zip(names, np.linalg.solve(np.eye(len(names)) - 0.8 * steps.T, start).tolist(), strict=True))


def walks(graph: Any, weight: bool = False, alpha: float = ALPHA) -> dict[Any, float]:
    names = list(graph)
    if not names:
        return {}
    scores = np.linalg.solve(np.eye(len(names)) - alpha * matrix(graph, weight).T, np.ones(len(names)))
    return dict(zip(names, (scores / np.linalg.norm(scores)).tolist(), strict=True))


def cores(graph: Any) -> dict[Any, int]:
    """By peeling; both directions count, self loops do not."""
    without = graph.copy()
    without.remove_edges_from(list(nx.selfloop_edges(without)))
    return dict(nx.core_number(without))


def triangles(graph: Any) -> dict[Any, int]:
    without = nx.Graph(graph)
    without.remove_edges_from(list(nx.selfloop_edges(without)))
    return dict(nx.triangles(without))


@dataclass(frozen=True)
class Case:
    """A program of the registry with its options, and the oracle: by vertex, the value of the main column (none:
    unreached).
    """

    algorithm: str
    options: dict[str, Any]
    expect: Callable[[Any], dict[Any, Any]] | None  # None: whatever a run from scratch on a graph read anew says
    tol: float = 0.0  # of the sum of all errors
    name: str | None = None
    sources: tuple[Any, ...] = ()  # vertices that must not be removed

    @property
    def title(self) -> str:
        return self.name or self.algorithm

    def wanted(self) -> ProgramRequest:
        return ProgramRequest(ALGORITHMS[self.algorithm], self.options, self.name)

    def expected(self, plain: Plain, graph: Any) -> dict[Any, Any]:
        return self.expect(plain.networkx()) if self.expect is not None else by_vertex(self.scratch(graph))

    def scratch(self, graph: Any) -> Any:
        return getattr(ist, self.algorithm)(graph, **self.options)


def cases(s: Any, weighted: bool = True, alpha: float = ALPHA) -> list[Case]:
    """All maintained programs; `s` is a vertex that is never removed. `alpha`: of Katz."""
    own = (s,)
    known = [
        Case("bfs", {"source": s}, lambda g: lengths(g, s, False), sources=own),
        Case("bfs", {"source": s, "depth_limit": 2}, lambda g: below(2, lengths(g, s, False)), 0, "two hops", own),
        Case("sssp", {"source": s}, lambda g: lengths(g, s, True), sources=own),
        Case("sssp", {"source": s, "cutoff": 4}, lambda g: below(4, lengths(g, s, True)), 0, "near", own),
        Case("widest_path", {"source": s}, lambda g: widths(g, s), sources=own),
        Case("weakly_connected_components", {}, components),
        Case("pagerank", {"tol": TOL}, ranks, TOL),
        Case(
            "pagerank",
            {"tol": TOL, "personalization": {s: 2.0}},
            lambda g: ranks(g, personal={s: 1.0}),
            TOL,
            "own",
            own,
        ),
        Case("php", {"source": s, "tol": TOL}, lambda g: hits(g, s), TOL, sources=own),
        Case("katz", {"alpha": alpha, "tol": TOL}, lambda g: walks(g, alpha=alpha), 8 * TOL),
        Case("multi_source_bfs", {"sources": [s]}, lambda g: lengths(g, s, False), sources=own),
        Case(
            "personalized_pagerank",
            {"sources": [s], "tol": TOL},
            lambda g: ranks(g, personal={s: 1.0}),
            TOL,
            sources=own,
        ),
        Case("core_number", {}, cores),
        Case("triangle_count", {}, triangles),
    ]
    if weighted:
        known += [
            Case("pagerank", {"tol": TOL, "weight": True}, lambda g: ranks(g, True), TOL, "by weight"),
            Case(
                "php", {"source": s, "tol": TOL, "weight": True}, lambda g: hits(g, s, True), TOL, "php by weight", own
            ),
            Case(
                "katz",
                {"alpha": alpha, "tol": TOL, "weight": True},
                lambda g: walks(g, True, alpha),
                8 * TOL,
                "katz by weight",
            ),
        ]
    names = {case.algorithm for case in known}
    live = [name for name in ALGORITHMS.names() if ALGORITHMS[name].live is not None]
    return [case for case in known if case.algorithm in live] + [unknown(name, s) for name in live if name not in names]


def unknown(name: str, s: Any) -> Case:
    """A maintained program that this file does not know: a run from scratch is its oracle."""
    given = {"source": s, "sources": [s]}
    requested = {parameter.name for parameter in ALGORITHMS[name].parameters}
    tol = {"tol": TOL} if "tol" in requested else {}
    return Case(
        name,
        {key: value for key, value in given.items() if key in requested} | tol,
        None,
        2 * TOL if tol else 0.0,
        sources=(s,),
    )


def by_vertex(result: Any) -> dict[Any, Any]:
    """The main column by vertex, without vertices that have none."""
    values = result.values
    missing = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else np.zeros(values.size, np.bool_)
    found = zip(result.vertices.tolist(), np.ma.getdata(values).tolist(), missing.tolist(), strict=True)
    return {v: value for v, value, none in found if not none}


def assert_same(found: dict[Any, Any], expected: dict[Any, Any], tol: float) -> None:
    if not tol:
        assert found == expected
        return
    assert found.keys() == expected.keys()
    assert sum(abs(found[v] - value) for v, value in expected.items()) <= tol
