"""Graphs and programs for the conformance suite: each graph with its oracle, each program with what it should say."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from tests import oracles, recorder
from tests.naive import Cleaned, clean

import isthmus as ist

INT_MAX, INT_MIN, INF = 2**63 - 1, -(2**63), float("inf")
TOL = 1e-7
Way = tuple[str, str, str | None, int, str]  # recipe, far memory, budget, threads, order
PROGRAM_RECIPE_FAR = (1, 2, 3)  # columns of (graph, program, *way)


@dataclass
class Case:
    """A graph, as edges, as the oracle has it, and as stores in both orders."""

    name: str
    edges: list[Any] = field(repr=False)
    source: Any = 0
    vertices: int | None = None  # ids are 0 .. vertices - 1
    directed: bool = True
    in_edges: bool = True
    graphs: dict[str, Any] = field(default_factory=dict, repr=False)
    answers: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def weighted(self) -> bool:
        return bool(self.edges) and self.edges[0][2] is not None

    @property
    def real(self) -> bool:
        return self.weighted and isinstance(self.edges[0][2], float)

    @cached_property
    def oracle(self) -> Cleaned:
        return clean(self.edges, range(self.vertices or 0), directed=self.directed)

    def columns(self) -> tuple[Any, ...]:
        kinds = [np.int64, np.int64, np.float64 if self.real else np.int32]
        if self.edges and isinstance(self.edges[0][0], str):
            kinds[:2] = [object, object]
        count = 3 if self.weighted else 2
        return tuple(np.array([edge[i] for edge in self.edges], kinds[i]) for i in range(count))

    def graph(self, way: Way) -> Any:
        return self.graphs[f"{way[4]} {'memory' if way[1] == 'memory' else 'store'}"]

    def build(self, folder: Path) -> None:
        for order in ("natural", "hub"):
            options: dict[str, Any] = {
                "directed": self.directed,
                "in_edges": self.in_edges,
                "vertices": self.vertices,
                "order": order,
            }
            self.graphs[f"{order} store"] = ist.ingest(
                self.columns(), folder / f"{self.name}-{order}.isthmus", **options
            )
            self.graphs[f"{order} memory"] = ist.read(self.columns(), **options)


def drawn(seed: int, vertices: int, edges: int, weight: Callable[[random.Random], Any], skew: float = 1.0) -> list[Any]:
    """Edges at random; `skew` above 1 makes low numbers hubs."""
    draw = random.Random(seed)
    pick = lambda: int(vertices * draw.random() ** skew)  # noqa: E731
    return [(pick(), pick(), weight(draw)) for _ in range(edges)]


def whole(draw: random.Random) -> int:
    return draw.randrange(0, 12)


def real(draw: random.Random) -> float:
    return draw.choice([0.0, 0.25, draw.random(), draw.random() * 9])


def nothing(draw: random.Random) -> None:
    return None


def cases() -> list[Case]:
    """Small graphs of every awkward kind."""
    hub = 6000  # its list is larger than a buffer when buffers are made small
    star = [(0, v, v % 7) for v in range(1, hub)] + [(v, 0, 1) for v in range(1, hub, 3)]
    names = ["", "a", "b", "ä", "zebra", "z", "B", "10", "9"]
    spread = drawn(5, 60, 150, whole)
    return [
        Case("skewed", drawn(1, 300, 1500, whole, 3.0), vertices=320, source=1),
        Case("skewed-real", drawn(2, 60, 150, real, 3.0), vertices=70, source=1, directed=False),
        Case("no-in-edges", drawn(9, 200, 900, whole, 2.0), source=1, in_edges=False),
        Case(
            "grid",
            [
                (r * 12 + c, r * 12 + c + d, 1 + (r * c) % 5)
                for r in range(12)
                for c in range(12)
                for d in (1, 12)
                if (d == 12 or c < 11) and r * 12 + c + d < 144
            ],
            directed=False,
        ),
        Case("star", star, source=5, vertices=hub + 3),
        Case("path", [(i, i + 1, None) for i in range(300)], directed=False, source=3),
        Case("two-components", [(0, 1, None), (1, 2, None), (5, 6, None), (6, 7, None), (7, 5, None)], vertices=12),
        Case(
            "loops-and-parallels",
            [
                (0, 0, 0),
                (0, 1, 5),
                (0, 1, 2),
                (1, 1, 1),
                (1, 2, 0),
                (2, 1, 0),
                (2, 0, 0),
                (2, 3, 0),
                (3, 3, 9),
                (3, 2, 0),
            ],
        ),
        Case("one-vertex", [], vertices=1),
        Case("one-loop", [(0, 0, 3)], vertices=1),
        Case("no-edges", [], vertices=5),
        Case("strings", [(names[u % 9], names[v % 9], w) for u, v, w in drawn(4, 9, 30, whole)], source="ä"),
        Case(
            "sparse-ids", [(u * 10**15 - 7, v * 10**15 - 7, w) for u, v, w in spread], source=spread[0][0] * 10**15 - 7
        ),
    ]


@ist.monotone(initial=-INF, combine="max", start=INF, column="width")
def widest(width, weight):
    return min(width, weight)


@ist.monotone(initial="vertex", combine="max")
def largest_ancestor(value):
    return value


@ist.monotone(initial=INF, combine="min", start=0)
def odd_steps(distance, vertex, degree, base=1):
    """Asks for all there is to ask for; the vertex's number must not depend on the order of the store."""
    return distance + base + vertex % 3 + min(degree, 2)


@ist.accumulative(threshold=1e-13)
def spread(delta, degree, share=0.5):
    return share * delta / degree


@ist.accumulative(threshold=1e-13)
def weighted_spread(delta, weight, degree, share=0.05):
    return share * delta * weight / degree


@dataclass(frozen=True)
class Program:
    """How to run it, what it should say by user id, and how near it must come (0: exactly)."""

    name: str
    run: Callable[..., Any]
    expect: Callable[[Case], dict[Any, Any]]
    missing: tuple[Any, Any] = (INT_MAX, INF)  # what a vertex that is not expected holds, whole or real
    tol: float = 0.0
    weights: bool = False  # needs a graph that has them
    source: bool = True

    @property
    def algorithm(self) -> str:
        """The algorithm that it runs: its name without what is special about it."""
        return self.name.partition("-")[0]


def by_walks(case: Case, share: float, weighted: bool) -> dict[Any, float]:
    total, wave = dict.fromkeys(case.oracle.ids, 0.0), dict.fromkeys(case.oracle.ids, 1.0)
    while max(wave.values(), default=0) > 1e-16:
        fresh = dict.fromkeys(case.oracle.ids, 0.0)
        for u, entries in case.oracle.out.items():
            total[u] += wave[u]
            for v, w in entries:
                fresh[v] += share * wave[u] * ((1 if w is None else w) if weighted else 1) / len(entries)
        wave = fresh
    return total


def ancestors(case: Case) -> dict[Any, int]:
    """The largest place in natural order among all that lead to a vertex."""
    best: dict[Any, int] = {}
    for place in reversed(range(len(case.oracle.ids))):  # whoever comes first to a vertex is its largest
        rest = [case.oracle.ids[place]]
        while rest:
            v = rest.pop()
            if v not in best:
                best[v] = place
                rest += [target for target, _ in case.oracle.out[v]]
    return best


def odd(case: Case) -> dict[Any, int]:
    place = {v: i for i, v in enumerate(case.oracle.ids)}
    final: dict[Any, int] = {}
    heap = {case.source: 0}
    while heap:
        u = min(heap, key=lambda v: heap[v])
        final[u] = heap.pop(u)
        for v, _ in case.oracle.out[u]:
            further = final[u] + 2 + place[u] % 3 + min(len(case.oracle.out[u]), 2)
            if v not in final and further < heap.get(v, INT_MAX):
                heap[v] = further
    return final


def shares(case: Case) -> dict[Any, float]:
    return {v: 1.0 + i % 3 for i, v in enumerate(case.oracle.ids[: len(case.oracle.ids) // 2 + 1])}


def sink(case: Case) -> dict[Any, float]:
    return {case.oracle.ids[-1]: 1.0}


ALGORITHMS = [
    Program("bfs", lambda c, g, **how: ist.bfs(g, c.source, **how), lambda c: oracles.bfs(c.oracle, c.source)),
    Program(
        "bfs-limit",
        lambda c, g, **how: ist.bfs(g, c.source, depth_limit=2, predecessors=True, **how),
        lambda c: oracles.bfs(c.oracle, c.source, 2),
    ),
    Program("sssp", lambda c, g, **how: ist.sssp(g, c.source, **how), lambda c: oracles.sssp(c.oracle, c.source)),
    Program(
        "sssp-cutoff",
        lambda c, g, **how: ist.sssp(g, c.source, cutoff=6.5, predecessors=True, **how),
        lambda c: oracles.sssp(c.oracle, c.source, 6.5),
    ),
    Program(
        "weakly_connected_components",
        lambda c, g, **how: ist.weakly_connected_components(g, **how),
        lambda c: oracles.components(c.oracle),
        source=False,
    ),
    Program(
        "pagerank",
        lambda c, g, **how: ist.pagerank(g, tol=TOL, **how),
        lambda c: oracles.pagerank(c.oracle),
        tol=TOL,
        source=False,
    ),
    Program(
        "pagerank-personal",
        lambda c, g, **how: ist.pagerank(g, 0.6, shares(c), tol=TOL, **how),
        lambda c: oracles.pagerank(c.oracle, 0.6, shares(c)),
        tol=TOL,
        source=False,
    ),
    Program(
        "pagerank-dangling",
        lambda c, g, **how: ist.pagerank(g, 0.7, tol=TOL, dangling=sink(c), **how),
        lambda c: oracles.pagerank(c.oracle, 0.7, None, sink(c)),
        tol=TOL,
        source=False,
    ),
    Program(
        "pagerank-weighted",
        lambda c, g, **how: ist.pagerank(g, 0.5, shares(c), tol=TOL, weight=True, dangling=sink(c), **how),
        lambda c: oracles.pagerank(c.oracle, 0.5, shares(c), sink(c), True),
        tol=TOL,
        weights=True,
        source=False,
    ),
    Program(
        "pagerank-rounds",
        lambda c, g, **how: ist.pagerank(g, iterations=5, **how),
        lambda c: oracles.pagerank(c.oracle, iterations=5),
        tol=1e-13,
        source=False,
    ),
]
OWN = [
    Program(
        "widest",
        lambda c, g, **how: ist.run(widest(c.source), g, **how),
        lambda c: oracles.widest(c.oracle, c.source),
        (INT_MIN, -INF),
    ),
    Program("ancestor", lambda c, g, **how: ist.run(largest_ancestor(), g, **how), ancestors, source=False),
    Program("odd-steps", lambda c, g, **how: ist.run(odd_steps(c.source, base=2), g, **how), odd),
    Program(
        "spread",
        lambda c, g, **how: ist.run(spread(), g, **how),
        lambda c: by_walks(c, 0.5, False),
        tol=1e-8,
        source=False,
    ),
    Program(
        "spread-weighted",
        lambda c, g, **how: ist.run(weighted_spread(share=0.04), g, **how),
        lambda c: by_walks(c, 0.04, True),
        tol=1e-8,
        source=False,
    ),
]
PROGRAMS = [*ALGORITHMS, *OWN]

RECIPES = ("filter", "subway", "emogi", "unified", "grus", "scaph", "hytgraph", "auto")
BUDGETS = ("1%", "10%", "50%", "100%", None)
FARS = ("store", "ram", "memory", "model", "recorder")


def ways() -> list[Way]:
    """(recipe, far memory, budget, threads, order): a graph in memory takes no budget of its own."""
    every = itertools.product(RECIPES, FARS, BUDGETS, (1, 2), ("natural", "hub"))
    return [way for way in every if way[1] != "memory" or way[2] is None]


def how(way: Way) -> dict[str, Any]:
    """The options of a run that goes this way."""
    recipe, far, budget, threads, _ = way
    devices = {"model": "model:rtx2080ti", "recorder": recorder.Recorder.kind}
    where = {"far": "ram"} if far == "ram" else {"device": devices[far]} if far in devices else {}
    return {"policy": recipe, "memory": budget, "threads": threads, **where}


def run(program: Program, case: Case, way: Way) -> Any:
    return program.run(case, case.graph(way), **how(way))


def assert_device(result: Any, way: Way) -> None:
    """A modelled device really was one, a device of another package too, and no other was."""
    device, expected = result.summary()["device"], {"recorder": "recorder"}.get(way[1], "cpu")
    assert device.startswith("model:") if way[1] == "model" else device == expected, (device, way)


def expected_values(program: Program, case: Case, dtype: Any) -> list[Any]:
    """The answer in natural order, infinities as `dtype` has them."""
    if program.name not in case.answers:
        case.answers[program.name] = program.expect(case)
    answer = case.answers[program.name]
    whole = np.dtype(dtype).kind == "i"
    values = [answer.get(v, program.missing[0 if whole else 1]) for v in case.oracle.ids]
    return [{INF: INT_MAX, -INF: INT_MIN}.get(v, v) for v in values] if whole else values
