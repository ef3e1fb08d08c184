"""What it costs to compare every block with its checksum: runs with `verify` and without, in turns.

    python benchmarks/verified.py [--folder DIR] [--graphs rmat24 kron23 grid4000] [--budgets 5% 10% 25%] [--rounds 5]

The cells are those of `recipes.py`, and a run in memory for each algorithm, of which the time to load the edges counts.
Every answer is compared with that of the first run. Prints Markdown.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

from graphs import hub, make, warm
from harness import table, verdict
from recipes import ALGORITHMS, RECIPES, agrees, mean, run

import isthmus as ist

RESIDENT = "in memory: load"
HEAD = ["graph", "algorithm", "budget", "recipe", "verified s", "not verified s", "ratio"]


def seconds_of(facts: dict[str, Any], recipe: str) -> float:
    """Seconds of a run; of one in memory, those before its first iteration that follow from the size of the graph."""
    seconds: dict[str, float] = facts["seconds"]
    return seconds["load"] if recipe == RESIDENT else seconds["total"]


def cell(
    graph: ist.Graph, algorithm: str, source: Any, budget: str, recipe: str, rounds: int, expected: Any
) -> tuple[float, float]:
    """Median seconds with and without."""
    how: dict[str, Any] = {} if recipe == RESIDENT else {"memory": budget, "policy": recipe}
    taken: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(rounds + 1):
        for verify in (True, False) if turn % 2 else (False, True):
            found = run(graph, algorithm, source, verify=verify, **how)
            if not agrees(algorithm, found.values, expected):
                raise SystemExit(f"{graph} {algorithm} {budget} {recipe}: the answer is wrong")
            if turn:
                taken[verify].append(seconds_of(found.summary(), recipe))
    return statistics.median(taken[True]), statistics.median(taken[False])


def rows_of(graph: ist.Graph, name: str, options: argparse.Namespace) -> list[tuple[list[str], float]]:
    """(a row, its ratio) for every cell of a graph."""
    source, found = hub(graph), []
    warm(graph)
    for algorithm in options.algorithms:
        expected = run(graph, algorithm, source).values
        for budget, recipe in [("-", RESIDENT), *((b, r) for b in options.budgets for r in options.recipes)]:
            on, off = cell(graph, algorithm, source, budget, recipe, options.rounds, expected)
            row = [name, algorithm, budget, recipe, f"{on:.3f}", f"{off:.3f}", f"{on / off:.3f}"]
            print(table([row]).splitlines()[0], flush=True)
            found.append((row, on / off))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where graphs lie or are made; default: a temporary folder")
    parser.add_argument("--graphs", nargs="*", default=["rmat24", "kron23", "grid4000"])
    parser.add_argument("--budgets", nargs="*", default=["5%", "10%", "25%"])
    parser.add_argument("--algorithms", nargs="*", default=list(ALGORITHMS))
    parser.add_argument("--recipes", nargs="*", default=["auto", *RECIPES])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    found: list[tuple[list[str], float]] = []
    with tempfile.TemporaryDirectory() as temporary:
        print(table([HEAD]), flush=True)
        for name in options.graphs:
            with make(options.folder or Path(temporary), name) as graph:
                found += rows_of(graph, name, options)
    moved, loads = ([ratio for row, ratio in found if (row[3] == RESIDENT) == resident] for resident in (False, True))
    rows = [["verified ÷ not verified", "measured", "target", ""]]
    for what, ratios, limit in (
        ("recipes, geometric mean", mean(moved), 1.05),
        ("recipes, worst cell", max(moved), 1.10),
        ("loading edges in memory, worst", max(loads), 1.10),
    ):
        rows.append([what, f"{ratios:.3f}", f"≤ {limit:.2f}", verdict(ratios, limit)])
    print("\n" + table(rows))


if __name__ == "__main__":
    main()
