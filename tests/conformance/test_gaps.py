"""Lists with gaps behind them: every algorithm gives the same answer, in memory and from far, whatever the gaps
hold.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests import cases as kinds
from tests.conformance.test_conformance import assert_same, tight
from tests.conformance.test_more import MORE, SLOW, Places
from tests.covering import covering, missed
from tests.gaps import gapped

import isthmus as ist
from isthmus.runtime.executor.settling_partitions import SettlingPartitions

__all__ = ["tight"]  # a fixture
NAMES = ("skewed", "skewed-real", "grid", "star", "path", "loops-and-parallels", "one-loop", "no-edges", "strings")
CASES = {case.name: case for case in kinds.cases() if case.name in NAMES}
PROGRAMS = {program.name: program for program in kinds.PROGRAMS}
FARS: dict[str, dict[str, Any]] = {"ram": {"far": "ram"}, "model": {"device": "model:rtx2080ti"}}
WAYS = list(itertools.product(kinds.RECIPES, FARS, ("1%", "50%"), (1, 2), ("natural", "hub")))
WAYS_EACH = 2


def case_of(name: str) -> kinds.Case:
    """A case with its graphs in memory, in both orders, with gaps."""
    case = CASES[name]
    for order in ("natural", "hub") if not case.graphs else ():
        options: dict[str, Any] = {"directed": case.directed, "vertices": case.vertices, "order": order}
        case.graphs[order] = gapped(ist.read(case.columns(), **options), len(name))
    return case


PAIRS = [(c.name, p.name) for c in CASES.values() for p in kinds.PROGRAMS if c.weighted or not p.weights]
FURTHER = [(name, program) for name in CASES for program in MORE if (name, program) not in SLOW]


@functools.cache
def chosen() -> dict[Any, list[Any]]:
    return covering([*PAIRS, *FURTHER], WAYS, WAYS_EACH)


def test_all_pairs_of_choices_meet() -> None:
    assert missed([*PAIRS, *FURTHER], WAYS, chosen()) == set()


def ways(name: str, program: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Orders and options: everything near, and some of the ways from far."""
    yield "natural", {}
    yield "hub", {"threads": 1}
    for recipe, far, budget, threads, order in chosen()[name, program]:
        yield order, {"policy": recipe, "memory": budget, "threads": threads, **FARS[far]}


@pytest.mark.usefixtures("tight")
@pytest.mark.parametrize(("name", "program"), PAIRS)
def test_programs_of_the_suite(name: str, program: str) -> None:
    case = case_of(name)
    for order, how in ways(name, program):
        try:
            assert_same(PROGRAMS[program].run(case, case.graphs[order], **how), PROGRAMS[program], case)
        except Exception as error:
            error.add_note(f"{program} on {name}, {order}, {how}")
            raise


@pytest.mark.usefixtures("tight")
@pytest.mark.parametrize(("name", "program"), FURTHER)
def test_further_programs(name: str, program: str) -> None:
    case = case_of(name)
    places, (run, read, expect) = Places(case), MORE[program]
    expected = expect(places)
    for order, how in ways(name, program):
        assert read(run(places, case.graphs[order], **how)) == expected, (order, how)


@pytest.fixture(scope="module")
def medium() -> Any:
    """Graphs at their real sizes, without and with gaps: levels are searched both ways, threads share, long paths are
    settled.
    """
    made = {
        "rmat": ist.generate("rmat", scale=13, weights="0:40"),
        "directed": ist.generate("rmat", scale=12, directed=True, weights="0.0:9.0"),
        "grid": ist.generate("grid", rows=200, columns=200, weights="1:9"),
    }
    return {name: (graph, gapped(graph, 3)) for name, graph in made.items()}


RUNS: dict[str, Any] = {
    "bfs": lambda g, **how: ist.bfs(g, 0, **how),
    "sssp": lambda g, **how: ist.sssp(g, 0, **how),
    "wcc": lambda g, **how: ist.weakly_connected_components(g, **how),
    "pagerank": lambda g, **how: ist.pagerank(g, **how),
    "label_propagation": lambda g, **how: ist.label_propagation(g, 3, **how),
    "triangles": lambda g, **how: ist.triangle_count(g, **how),
}


@pytest.mark.parametrize("run", list(RUNS))
@pytest.mark.parametrize("name", ["rmat", "directed", "grid"])
def test_graphs_at_their_real_sizes(medium: Any, name: str, run: str) -> None:
    plain, spread = medium[name]
    expected = RUNS[run](plain).filled()
    recipes = kinds.RECIPES[list(RUNS).index(run) % 4 :: 4]
    for how in ({}, *({"policy": recipe, "memory": "10%", **far} for recipe in recipes for far in FARS.values())):
        found = RUNS[run](spread, **how).filled()
        same = np.abs(found - expected).sum() <= 3e-6 if run == "pagerank" else (found == expected).all()
        assert same, how


def test_settling(medium: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions whose cuts fall into gaps are worked to a standstill as well."""
    plain, spread = medium["grid"]
    run, settled = SettlingPartitions.run, []
    monkeypatch.setattr(SettlingPartitions, "run", lambda self, *given: settled.append(self) or run(self, *given))
    found = ist.sssp(spread, 0, policy="auto", memory="10%", far="ram")
    assert found.values.tolist() == ist.sssp(plain, 0).values.tolist()
    assert settled


def test_gaps_do_not_count_as_edges(medium: Any) -> None:
    """Active edges are edges; what whole partitions move has the gaps in it, what is gathered has not."""
    plain, spread = medium["rmat"]
    how: dict[str, Any] = {"memory": "10%", "far": "ram", "threads": 1}
    for policy in ("filter", "emogi"):
        runs = [ist.pagerank(graph, iterations=3, policy=policy, **how) for graph in (plain, spread)]
        edges = [[iteration.active_edges for iteration in result.trace] for result in runs]
        assert edges[0] == edges[1] == [plain.arcs] * 3
    seen = [ist.bfs(graph, 0) for graph in (plain, spread)]
    assert sum(i.active_edges for i in seen[1].trace) <= 2 * plain.arcs
