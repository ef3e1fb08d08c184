"""Two versions of Isthmus against each other: seconds and peak memory of this tree beside those of an older one.

    python benchmarks/versions.py --before OLD/src [--after NEW/src] [--graphs kron20 ...] [--algorithms bfs ...]
                                  [--memory 10% [--recipes auto ...]] [--rounds 3] [--threads 2] [--folder DIR] [--json
                                  FILE]

Every cell (graph, algorithm, and with --memory also recipe) has a fresh process per tree. Both open the same store, run
once to warm up, and their answers are compared; then they are timed in turns. Shown are medians of what the runs
themselves report as total, of the clock outside, and the highest resident memory of each process (VmHWM). Only
the public interface is used, so that any two trees can meet. Prints Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from graphs import hub, make
from harness import table

import isthmus as ist

ALGORITHMS = ("bfs", "sssp", "weakly_connected_components", "pagerank")
GRAPHS = ["kron20", "kron22", "grid4000", "rmat22"]
TOL = 1e-4  # of PageRank
JUDGED = 0.1  # seconds: cells that are faster in both trees are shown, not judged
OWN = Path(__file__).resolve().parent.parent / "src"
SIDES = ("before", "after")


class Left(Exception):
    """Why a cell has no figures."""


# ---- the process of one tree


def serve(store: str, algorithm: str, options: dict[str, Any]) -> None:
    """Answer every line {"keep": FILE or null} with a run: its seconds, and its values in the file."""
    source = options.pop("source")
    given = [source] if algorithm in ("bfs", "sssp") else []
    if algorithm == "pagerank":
        options["tol"] = TOL
    with ist.open(store) as graph:
        print(json.dumps({"tree": str(Path(ist.__file__).parent.parent)}), flush=True)
        for line in sys.stdin:
            start = time.perf_counter()
            result = getattr(ist, algorithm)(graph, *given, **options)
            wall = time.perf_counter() - start
            if keep := json.loads(line)["keep"]:
                np.save(keep, np.asarray(result.values))
            print(json.dumps({"total": result.summary()["seconds"]["total"], "wall": wall}), flush=True)


class Worker:
    """A process that runs one cell by the source of one tree."""

    def __init__(self, side: str, tree: Path, store: Path, algorithm: str, options: dict[str, Any]) -> None:
        self._side = side
        command = [sys.executable, __file__, "--serve", str(store), algorithm, json.dumps(options)]
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed in close)
        environment = {**os.environ, "PYTHONPATH": str(tree)}
        self._process = subprocess.Popen(
            command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
        )
        try:
            used = Path(self._read()["tree"])
            if used.resolve() != tree.resolve():
                raise SystemExit(f"expected Isthmus from {tree}, got it from {used}")
        except BaseException:
            self.close()
            raise

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        if line := self._process.stdout.readline():
            return dict(json.loads(line))
        self._process.wait()
        self._errors.seek(0)
        words = self._errors.read().strip().splitlines() or ["ended without a word"]
        raise Left(f"{self._side}: {words[-1]}")

    def run(self, keep: Path | None = None) -> dict[str, float]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"keep": keep and str(keep)}) + "\n")
        self._process.stdin.flush()
        return self._read()

    def peak(self) -> int:
        """Bytes that were resident at most, since the process began."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._errors.close()


# ---- cells


@dataclass
class Cell:
    """A graph, an algorithm and a way to run it: figures of both trees, or why there are none."""

    graph: str
    algorithm: str
    memory: str | None = None
    recipe: str = "auto"
    total: dict[str, list[float]] = field(default_factory=lambda: {side: [] for side in SIDES})
    wall: dict[str, list[float]] = field(default_factory=lambda: {side: [] for side in SIDES})
    peak: dict[str, int] = field(default_factory=dict)
    left: str = ""

    def ratio(self, figures: dict[str, list[float]]) -> float:
        before, after = (statistics.median(figures[side]) for side in SIDES)
        return after / before

    @property
    def judged(self) -> bool:
        return not self.left and max(statistics.median(self.total[side]) for side in SIDES) >= JUDGED

    @property
    def way(self) -> str:
        return f"{self.memory}, {self.recipe}" if self.memory else "in memory"


def same(algorithm: str, before: Any, after: Any) -> bool:
    return bool(np.abs(before - after).sum() <= 2 * TOL if algorithm == "pagerank" else np.array_equal(before, after))


def compare(cell: Cell, trees: dict[str, Path], store: Path, options: dict[str, Any], rounds: int) -> None:
    """Fill a cell: warm up, compare the answers, then run in turns, another tree first every time."""
    workers: dict[str, Worker] = {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            for side, tree in trees.items():
                workers[side] = Worker(side, tree, store, cell.algorithm, options)
                workers[side].run(Path(folder) / f"{side}.npy")
            if not same(cell.algorithm, *(np.load(Path(folder) / f"{side}.npy") for side in SIDES)):
                raise SystemExit(f"{cell.graph}, {cell.algorithm}, {cell.way}: the answers of the two trees differ")
            for turn in range(rounds):
                for side in SIDES if turn % 2 == 0 else SIDES[::-1]:
                    taken = workers[side].run()
                    cell.total[side].append(taken["total"])
                    cell.wall[side].append(taken["wall"])
            cell.peak = {side: worker.peak() for side, worker in workers.items()}
        except Left as reason:
            cell.left = str(reason)
        finally:
            for worker in workers.values():
                worker.close()


def cells_table(cells: list[Cell]) -> list[list[str]]:
    rows = [
        [
            "graph",
            "algorithm",
            "edges",
            "before",
            "after",
            "after ÷ before",
            "by the clock",
            "peak before",
            "peak after",
        ]
    ]
    for cell in cells:
        if cell.left:
            rows.append([cell.graph, cell.algorithm, cell.way, cell.left, *["-"] * 5])
            continue
        seconds = [f"{statistics.median(cell.total[side]):.3f} s" for side in SIDES]
        ratios = [f"{'' if cell.judged else '~'}{cell.ratio(figures):.2f}" for figures in (cell.total, cell.wall)]
        rows.append(
            [
                cell.graph,
                cell.algorithm,
                cell.way,
                *seconds,
                *ratios,
                *(f"{cell.peak[side] / 1e6:.0f} MB" for side in SIDES),
            ]
        )
    return rows


def summary(cells: list[Cell]) -> list[str]:
    """The mean and the worst of the cells that are judged."""
    judged = [cell for cell in cells if cell.judged]
    if not judged:
        return [f"No cell took {JUDGED} s, so none is judged."]
    worst = max(judged, key=lambda cell: cell.ratio(cell.total))
    heaviest = max(judged, key=lambda cell: cell.peak["after"] / cell.peak["before"])
    return [
        f"Geometric mean of after ÷ before over {len(judged)} cells: "
        f"{statistics.geometric_mean(c.ratio(c.total) for c in judged):.3f}",
        f"Worst cell: {worst.ratio(worst.total):.2f} ({worst.graph}, {worst.algorithm}, {worst.way})",
        f"Most memory: {heaviest.peak['after'] / heaviest.peak['before']:.2f} ({heaviest.graph}, "
        f"{heaviest.algorithm}, {heaviest.way})",
    ]


def plan(graph: str, options: argparse.Namespace) -> list[Cell]:
    """A graph's cells: in memory, and from disk where a budget is given."""
    cells = [Cell(graph, algorithm) for algorithm in options.algorithms]
    if options.memory:
        cells += [
            Cell(graph, algorithm, options.memory, recipe)
            for algorithm in options.algorithms
            for recipe in options.recipes
        ]
    return cells


def run_graph(name: str, folder: Path, trees: dict[str, Path], options: argparse.Namespace) -> list[Cell]:
    with make(folder, name) as graph:
        source, store = np.asarray(hub(graph)).item(), graph.path
    assert store is not None
    cells = plan(name, options)
    for cell in cells:
        how = {"source": source, "threads": options.threads}
        if cell.memory:
            how |= {"memory": cell.memory, "policy": cell.recipe}
        compare(cell, trees, store, how, options.rounds)
        print(
            f"{name}, {cell.algorithm}, {cell.way}: {cell.left or f'{cell.ratio(cell.total):.2f}'}",
            file=sys.stderr,
            flush=True,
        )
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="the older tree's src")
    parser.add_argument("--after", type=Path, default=OWN, help="the newer tree's src; default: this one's")
    parser.add_argument("--graphs", "--graph", nargs="+", default=GRAPHS, help="kronSCALE, rmatSCALE or gridSIDE")
    parser.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, default=list(ALGORITHMS))
    parser.add_argument("--memory", help="also from disk, with this budget, such as 10%%")
    parser.add_argument("--recipes", nargs="+", default=["auto"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where graphs are made and stay; default: a temporary folder")
    parser.add_argument("--json", type=Path, help="also write every figure to this file")
    options = parser.parse_args()
    trees = {"before": options.before.resolve(), "after": options.after.resolve()}
    for tree in trees.values():
        if not (tree / "isthmus").is_dir():
            parser.error(f"expected a folder that holds the package isthmus, got {tree}")
    cells: list[Cell] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.graphs:
            cells += run_graph(name, options.folder or Path(folder), trees, options)
            if options.json:  # after every graph, for a run takes long
                options.json.write_text(json.dumps([asdict(cell) for cell in cells], indent=1))
    print(table(cells_table(cells)), *summary(cells), sep="\n\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], sys.argv[3], json.loads(sys.argv[4]))
    else:
        main()
