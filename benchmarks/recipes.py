"""Recipes on the SSD link: `auto` against every fixed one, bytes moved, time spent deciding.

    python benchmarks/recipes.py [--folder DIR] [--graphs rmat24 kron23 grid4000] [--budgets 5% 10% 25%] [--rounds 1]
    python benchmarks/recipes.py --large 26 --memory 4GB         only the four algorithms by `auto`
    python benchmarks/recipes.py --real                          bytes and requests on the shared graphs

Every answer is compared with the one from memory before its time counts. A run is stopped when it has taken LIMIT
times as long as `auto` (and two seconds more): it is shown as "> seconds" and counts as that. `auto` runs first in
every round, then the others in turn. Real graphs of the shared data (ISTHMUS_DATA, or ../shared/data) are too small to
time: their bytes and requests are shown. Prints Markdown.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from graphs import hub, make, warm
from harness import table, verdict

import isthmus as ist

RECIPES = ("filter", "subway", "emogi", "unified")
ALGORITHMS = ("bfs", "sssp", "wcc", "pagerank")
JUDGED = 5.0  # seconds
LIMIT = 5.0
BLOCK = 4096


class Slow(Exception):
    """A run has taken long enough."""


def run(graph: ist.Graph, algorithm: str, source: Any, limit: float = math.inf, **how: Any) -> Any:
    """A result, or the seconds after which it was stopped."""
    start = time.perf_counter()

    def watch(_: Any) -> None:
        if time.perf_counter() - start > limit:
            raise Slow

    try:
        if algorithm == "pagerank":
            return ist.pagerank(graph, tol=1e-4, watch=watch, **how)
        if algorithm == "wcc":
            return ist.weakly_connected_components(graph, watch=watch, **how)
        return getattr(ist, algorithm)(graph, source, watch=watch, **how)
    except Slow:
        return time.perf_counter() - start


def agrees(algorithm: str, a: Any, b: Any) -> bool:
    return bool(np.abs(a - b).sum() <= 2e-4 if algorithm == "pagerank" else np.array_equal(a, b))


class Cell:
    """One graph, algorithm and budget: seconds by recipe, over rounds."""

    def __init__(self, graph: ist.Graph, name: str, algorithm: str, budget: str, expected: Any, source: Any) -> None:
        self._graph, self.name, self.algorithm, self.budget = graph, name, algorithm, budget
        self._expected, self._source = expected, source
        self.seconds: dict[str, list[float]] = {}
        self.stopped: set[str] = set()
        self.facts: dict[str, dict[str, Any]] = {}

    def round(self) -> None:
        limit = math.inf
        for recipe in ("auto", *RECIPES):
            found = run(self._graph, self.algorithm, self._source, limit, memory=self.budget, policy=recipe)
            if isinstance(found, float):
                self.stopped.add(recipe)
                self.seconds.setdefault(recipe, []).append(found)
                continue
            if not agrees(self.algorithm, found.filled(), self._expected):
                raise SystemExit(f"{self.name} {self.algorithm} {self.budget} {recipe}: the answer is wrong")
            facts = found.summary()
            facts["decide"] = found.trace.total("decide") / max(facts["seconds"]["iterate"], 1e-9)
            self.facts[recipe] = facts
            self.seconds.setdefault(recipe, []).append(facts["seconds"]["iterate"])
            if recipe == "auto":
                limit = LIMIT * facts["seconds"]["iterate"] + 2

    def median(self, recipe: str) -> float:
        return statistics.median(self.seconds[recipe])

    @property
    def best(self) -> float:
        return min(self.median(recipe) for recipe in RECIPES)

    @property
    def worst(self) -> float:
        return max(self.median(recipe) for recipe in RECIPES)

    @property
    def judged(self) -> bool:
        return max(self.best, self.median("auto")) >= JUDGED

    def row(self) -> list[str]:
        auto = self.median("auto")
        shown = [f"{'> ' if r in self.stopped else ''}{self.median(r):.2f}" for r in RECIPES]
        facts = self.facts["auto"]
        engines = ", ".join(
            f"{n} {use['bytes'] / facts['transfer']['bytes']:.0%}"
            for n, use in facts["engines"].items()
            if use["bytes"]
        )
        return [
            self.name,
            self.algorithm,
            self.budget,
            f"{auto:.2f}",
            *shown,
            f"{auto / self.best:.2f}",
            f"{self.worst / auto:.1f}",
            f"{facts['transfer']['ratio']:.2f}",
            engines,
            f"{facts['decide']:.1%}",
            verdict(auto / self.best, 1.15) if self.judged else "shown",
        ]


HEAD = [
    "graph",
    "algorithm",
    "budget",
    "auto s",
    *(f"{r} s" for r in RECIPES),
    "auto ÷ best",
    "worst ÷ auto",
    "x edges",
    "auto's bytes",
    "deciding",
    "≤ 1.15",
]


def cells(folder: Path, names: list[str], budgets: list[str], algorithms: list[str], rounds: int) -> list[Cell]:
    found = []
    print(table([HEAD]), flush=True)
    for name in names:
        with make(folder, name) as graph:
            source = hub(graph)
            warm(graph)
            for algorithm in algorithms:
                expected = run(graph, algorithm, source).filled()
                for budget in budgets:
                    cell = Cell(graph, name, algorithm, budget, expected, source)
                    for _ in range(rounds):
                        cell.round()
                    print(table([cell.row()]).splitlines()[0], flush=True)
                    found.append(cell)
    return found


def mean(values: list[float]) -> float:
    return math.exp(statistics.fmean(math.log(v) for v in values)) if values else math.nan


def conclusions(found: list[Cell]) -> list[list[str]]:
    rows = [["what", "measured", "target", ""]]
    for what, some in (("judged cells", [c for c in found if c.judged]), ("all cells", found)):
        if not some:
            continue
        ratios, gains = [c.median("auto") / c.best for c in some], [c.worst / c.median("auto") for c in some]
        rows += [
            [
                f"{what} ({len(some)}): auto ÷ best fixed recipe, worst",
                f"{max(ratios):.2f}",
                "≤ 1.15",
                verdict(max(ratios), 1.15),
            ],
            [f"{what}: auto ÷ best, geometric mean", f"{mean(ratios):.2f}", "≤ 1.05", verdict(mean(ratios), 1.05)],
            [f"{what}: worst ÷ auto, geometric mean", f"{mean(gains):.1f}", "≥ 3", verdict(mean(gains), 3, False)],
        ]
    decide = max((c.facts["auto"]["decide"] for c in found if c.judged), default=0.0)
    rows.append(
        [
            "cache, activity, policy and schedule, worst share of a judged run",
            f"{decide:.1%}",
            "≤ 5 %",
            verdict(decide, 0.05),
        ]
    )
    for c in found:
        if c.name.startswith("grid") and c.budget == "10%" and c.algorithm in ("bfs", "sssp"):
            ratio = c.facts["auto"]["transfer"]["ratio"]
            rows.append(
                [f"{c.name} {c.algorithm} at 10 %: edges moved", f"{ratio:.2f} x", "≤ 10 x", verdict(ratio, 10)]
            )
    return rows


def data_folder() -> Path:
    return Path(os.environ.get("ISTHMUS_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")


def real_graphs(folder: Path, budget: str) -> list[list[str]]:
    """Bytes and requests on graphs too small to time."""
    rows = [["graph", "algorithm", "recipe", "x edges", "requests", "iterations"]]
    for place in sorted(data_folder().glob("*/")):
        edges = sorted(place.glob("edges.t*")) + sorted(place.glob("edges.*"))
        if not edges:
            continue
        with ist.ingest(edges[0], folder / f"{place.name}.isthmus") as graph:
            source = hub(graph)
            for algorithm in ALGORITHMS:
                for recipe in ("auto", *RECIPES):
                    facts = run(graph, algorithm, source, memory=budget, policy=recipe).summary()
                    moved = facts["transfer"]
                    row = [
                        place.name,
                        algorithm,
                        recipe,
                        f"{moved['ratio']:.2f}",
                        f"{moved['requests']:,}",
                        str(facts["iterations"]),
                    ]
                    rows.append(row)
    return rows


def large(folder: Path, scale: int, memory: str) -> list[list[str]]:
    rows = [["algorithm", "seconds", "moved", "÷ reading the edges once", "iterations", "peak RSS"]]
    with make(folder, f"rmat{scale}") as graph:
        source = hub(graph)
        path = str(graph.path)
    start = ["--source", str(source)]
    for algorithm, words in (("bfs", start), ("sssp", start), ("wcc", []), ("pagerank", ["--tol", "1e-4"])):
        done = subprocess.run(
            ["isthmus", "run", algorithm, path, *words, "--memory", memory, "--json"], capture_output=True, check=True
        )
        facts = json.loads(done.stdout)
        moved = facts["transfer"]
        rows.append(
            [
                algorithm,
                f"{facts['seconds']['total']:.1f}",
                f"{moved['bytes'] / 1e9:.1f} GB",
                f"{moved['ratio']:.2f}",
                str(facts["iterations"]),
                f"{facts['memory']['rss_peak'] / 1e9:.2f} GB",
            ]
        )
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where graphs lie or are made; default: a temporary folder")
    parser.add_argument("--graphs", nargs="*", default=["rmat24", "kron23", "grid4000"])
    parser.add_argument("--budgets", nargs="*", default=["5%", "10%", "25%"])
    parser.add_argument("--algorithms", nargs="*", default=list(ALGORITHMS))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--large", type=int, help="scale of an RMAT graph to run by auto alone")
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--real", action="store_true", help="bytes and requests on the shared graphs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        if options.large:
            print(table(large(folder, options.large, options.memory)))
        elif options.real:
            print(table(real_graphs(Path(temporary), "10%")))
        else:
            found = cells(folder, options.graphs, options.budgets, options.algorithms, options.rounds)
            print("\n" + table(conclusions(found)))


if __name__ == "__main__":
    main()
