"""Declared algorithms as tests try them: with arguments that their declarations name, against their own answers in
memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from tests import cases as kinds

from isthmus.graph.snapshot import Snapshot
from isthmus.programs.algorithm import Algorithm, Kind
from isthmus.programs.catalogue import ALGORITHMS
from isthmus.runtime.public import function_of
from isthmus.runtime.results.agreement import difference


def busiest(graph: Snapshot) -> Any:
    """The vertex with the most out-edges, by its own id."""
    return graph.ids.users(np.array([graph.out_degrees().argmax()]))[0]


SAMPLES: dict[Kind, Callable[[Snapshot], Any]] = {
    Kind.VERTEX: busiest,
    Kind.VERTICES: lambda graph: graph.ids.natural(0, 3).tolist(),
}  # of parameters that name none themselves


def arguments(algorithm: Algorithm, graph: Snapshot) -> dict[str, Any] | None:
    """What to call it with on a graph; None: its declaration does not say, or says that it cannot run there."""
    if algorithm.sample is not None:
        return algorithm.sample(graph)
    samples = {
        each.name: each.option.sample or (SAMPLES.get(each.option.kind) if each.required else None)
        for each in algorithm.parameters
    }
    if any(each.required and samples[each.name] is None for each in algorithm.parameters):
        return None
    return {name: sample(graph) for name, sample in samples.items() if sample is not None}


def unchecked(oracles: Iterable[str], cases: Iterable[kinds.Case]) -> list[str]:
    """Algorithms that have no oracle and that can be compared with themselves on none of the graphs."""
    graphs = [case.graphs["natural memory"].snapshot for case in cases]
    without = [name for name in ALGORITHMS.names() if name not in oracles]
    return [name for name in without if all(arguments(ALGORITHMS[name], graph) is None for graph in graphs)]


def compare(name: str, case: kinds.Case, ways: Iterable[kinds.Way]) -> int:
    """Run an algorithm in each of the ways; every answer must be that in memory. Returns how many runs were
    compared.
    """
    run, compared, near = function_of(ALGORITHMS[name]), 0, {}
    for way in ways:
        plain = case.graphs[f"{way[4]} memory"]
        given = arguments(ALGORITHMS[name], plain.snapshot)
        if given is None:
            continue
        if way[4] not in near:
            near[way[4]] = run(plain, **given)
        found = run(case.graph(way), **given, **kinds.how(way))
        where = difference(near[way[4]], found)
        assert where is None, f"{name} on {case.name}, {way}: {where}"
        kinds.assert_device(found, way)
        compared += 1
    return compared
