"""A user's own programs (examples/own_builtins.py) against the built-ins that they reproduce, in turns.

The same loops run for both where a built-in is a program like any other: widest paths everywhere, shortest paths from
disk. Other built-ins have more than a message when all edges are near, so those rows are shown, not judged.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness import verdict
from libraries import near, seconds_of

import isthmus as ist
from isthmus.programs.algorithms.bfs import BFS
from isthmus.programs.algorithms.pagerank import PageRank
from isthmus.programs.algorithms.sssp import SSSP
from isthmus.programs.algorithms.weakly_connected_components import Components
from isthmus.programs.algorithms.widest_path import WidestPath
from isthmus.programs.program import Program

sys.path.append(str(Path(__file__).parent.parent / "examples"))
from own_builtins import hops, rank, shortest, smallest, widest

LIMIT = 1.1
SHARE = "25%"  # of the edges near, when they come from disk
TOL = 1e-4
THRESHOLD = TOL * 0.15 / 0.85 / 2  # a residual of at most this at every vertex keeps the L1 error below TOL
Make = Callable[[Any], Program]
PROGRAMS: list[tuple[str, bool, bool, Make, Make]] = [  # from disk?, the same loop?
    ("widest_path", False, True, lambda source: widest(source=source), WidestPath),
    ("widest_path", True, True, lambda source: widest(source=source), WidestPath),
    ("sssp", True, True, lambda source: shortest(source=source), SSSP),
    ("sssp", False, False, lambda source: shortest(source=source), SSSP),
    ("bfs", False, False, lambda source: hops(source=source), BFS),
    ("wcc", False, False, lambda source: smallest, lambda source: Components()),
    ("pagerank", False, False, lambda source: rank(threshold=THRESHOLD), lambda source: PageRank(tol=TOL)),
]


def own_programs(name: str, graph: ist.Graph, rounds: int, judged: float) -> list[list[str]]:
    """A row for each program."""
    source = int(np.argmax(np.diff(graph.store.read("out.offsets"))))
    memory, rows = near(graph), []
    for algorithm, far, same, own, builtin in PROGRAMS:
        how: dict[str, Any] = {"memory": SHARE} if far else {}
        seconds: list[list[float]] = [[], []]
        for turn in range(rounds + 1):
            results: list[Any] = [None, None]
            for which, make in list(enumerate((own, builtin)))[:: 1 if turn % 2 else -1]:
                taken, results[which] = seconds_of(make(source), graph if far else memory, **how)
                if turn:  # the first round compiles
                    seconds[which].append(taken)
            assert agree(algorithm, *(result.filled() for result in results)), f"{algorithm}: the answers differ"
        mine, theirs = (statistics.median(taken) for taken in seconds)
        if far and results[0].summary()["policy"] == "resident":
            said = "all edges fit"
        elif not same:
            said = "has a kernel of its own"
        elif max(mine, theirs) < judged:
            said = "shown"
        else:
            said = verdict(mine / theirs, LIMIT)
        where = f"from disk, {SHARE} near" if far else "in memory"
        limit = f"≤ {LIMIT}" if same else "-"
        rows.append([name, algorithm, where, f"{mine:.3f} s", f"{theirs:.3f} s", f"{mine / theirs:.2f}", limit, said])
    return rows


def agree(algorithm: str, a: Any, b: Any) -> bool:
    if algorithm == "pagerank":
        return bool(np.abs(a / a.sum() - b).sum() <= 2 * TOL)
    return bool(np.array_equal(a, b))
