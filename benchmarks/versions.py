"""Two versions of Isthmus against each other: seconds and peak memory of this tree beside those of an older one.

    python benchmarks/versions.py --before OLD/src [--after NEW/src] [--only runs streams start] [--graphs kron20 ...]
                                  [--algorithms bfs ...] [--sizes 1000 100000] [--memory 10% [--recipes auto ...]]
                                  [--rounds 3] [--threads 2] [--folder DIR] [--json FILE]

- runs: calls of the algorithms.
- streams: the algorithms are kept current while batches of --sizes changes are applied, half inserts and half deletes.
  A round of small batches applies several, so that it can be judged; shown are seconds of a round.
- start: `isthmus run bfs` in a fresh process on a small graph, its kernels compiled before.

Each is done in memory and, with --memory, also from disk. Every cell has a process per tree. Both read the same store,
do one round to warm up, and their answers are compared; then they are timed in turns, and the answers after the last
round are compared too. Shown are medians of what the runs themselves report as total, medians of the rounds' ratios by
that and by the clock outside, and the highest resident memory of each process (VmHWM). Cells under 0.1 s are shown with
a `~`, and are not judged. Only the public interface is used, so that any two trees can meet (`version_worker.py`).
Prints Markdown.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from graphs import hub, make
from harness import table
from version_sides import Left, Starter, Worker
from version_worker import TITLES, TOL

import isthmus as ist

ALGORITHMS = tuple(TITLES)
KINDS = ("runs", "streams", "start")
GRAPHS = ["kron20", "kron22", "grid4000", "rmat22"]
SMALL = "kron12"  # the graph of a start
SIZES = [1_000, 100_000]  # changes in a batch
CHANGES, BATCHES = 10_000, 10  # in a round of a stream: so many changes, in at most so many batches
JUDGED = 0.1  # seconds: cells that are faster in both trees are shown, not judged
BENCHMARKS = Path(__file__).resolve().parent
SIDES = ("before", "after")


# ---- cells


def both() -> dict[str, list[float]]:
    return {side: [] for side in SIDES}


@dataclass
class Cell:
    """A graph, an algorithm and a way to run it: figures of both trees, or why there are none. `size`: of batches."""

    graph: str
    algorithm: str
    memory: str | None = None
    recipe: str = "auto"
    kind: str = "runs"
    size: int | None = None
    total: dict[str, list[float]] = field(default_factory=both)
    wall: dict[str, list[float]] = field(default_factory=both)
    peak: dict[str, int] = field(default_factory=dict)
    left: str = ""

    def ratio(self, figures: dict[str, list[float]]) -> float:
        return statistics.median(
            after / before for before, after in zip(*(figures[side] for side in SIDES), strict=True)
        )

    @property
    def memory_ratio(self) -> float:
        return self.peak["after"] / self.peak["before"]

    @property
    def judged(self) -> bool:
        return not self.left and max(statistics.median(self.total[side]) for side in SIDES) >= JUDGED

    @property
    def what(self) -> str:
        if self.kind == "start":
            return f"isthmus run {self.algorithm}"
        return f"{self.algorithm}, batches of {self.size:,}" if self.size else self.algorithm

    @property
    def way(self) -> str:
        return f"{self.memory}, {self.recipe}" if self.memory else "in memory"

    def __str__(self) -> str:
        return f"{self.graph}, {self.what}, {self.way}"

    def options(self, threads: int) -> dict[str, Any]:
        """Options of the call, or of the stream."""
        near = {"memory": self.memory, "policy": self.recipe} if self.memory else {}
        return {"threads": threads, **near, **({"on_disk": bool(self.memory)} if self.kind == "streams" else {})}


def same(algorithm: str, before: Any, after: Any) -> bool:
    return bool(np.abs(before - after).sum() <= 2 * TOL if algorithm == "pagerank" else np.array_equal(before, after))


def compare(cell: Cell, trees: dict[str, Path], store: Path, told: dict[str, Any], rounds: int) -> None:
    """Fill a cell: warm up, compare the answers, then run in turns, another tree first every time; compare again."""
    workers: dict[str, Worker | Starter] = {}
    with tempfile.TemporaryDirectory() as folder:
        answers = {side: Path(folder) / f"{side}.npy" for side in SIDES}
        try:
            for side, tree in trees.items():
                workers[side] = warmed(cell, side, tree, store, told, answers[side])
            check_answers(cell, answers)
            for turn in range(rounds):
                for side in SIDES if turn % 2 == 0 else SIDES[::-1]:
                    taken = workers[side].run(answers[side] if turn == rounds - 1 else None)
                    cell.total[side].append(taken["total"])
                    cell.wall[side].append(taken["wall"])
            check_answers(cell, answers)
            cell.peak = {side: worker.peak() for side, worker in workers.items()}
        except Left as reason:
            cell.left = str(reason)
        finally:
            for worker in workers.values():
                worker.close()


def warmed(cell: Cell, side: str, tree: Path, store: Path, told: dict[str, Any], answer: Path) -> Worker | Starter:
    """A process after its first round. One that had to compile kernels is replaced: compiling takes time and memory."""
    for compiled_before in (False, True):
        worker = (Starter if cell.kind == "start" else Worker)(side, tree, store, cell.algorithm, told)
        try:
            worker.run(answer)
            if compiled_before or not worker.compiled():
                break
            worker.run()  # some kernels are needed later only
        except BaseException:
            worker.close()
            raise
        worker.close()
    return worker


def check_answers(cell: Cell, answers: dict[str, Path]) -> None:
    if not same(cell.algorithm, *(np.load(answers[side]) for side in SIDES)):
        raise SystemExit(f"{cell}: the answers of the two trees differ")


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
            rows.append([cell.graph, cell.what, cell.way, cell.left, *["-"] * 5])
            continue
        seconds = [f"{statistics.median(cell.total[side]):.3f} s" for side in SIDES]
        ratios = [f"{'' if cell.judged else '~'}{cell.ratio(figures):.2f}" for figures in (cell.total, cell.wall)]
        rows.append(
            [cell.graph, cell.what, cell.way, *seconds, *ratios, *(f"{cell.peak[side] / 1e6:.0f} MB" for side in SIDES)]
        )
    return rows


def summary(cells: list[Cell]) -> list[str]:
    """The mean and the worst of the cells that are judged: in memory, from disk, and of both."""
    judged = [cell for cell in cells if cell.judged]
    near, far = [cell for cell in judged if not cell.memory], [cell for cell in judged if cell.memory]
    groups = {"In memory": near, "From disk": far, "All": judged if near and far else []}
    lines = [line for name, group in groups.items() if group for line in summed_up(name, group)]
    return lines or [f"No cell took {JUDGED} s, so none is judged."]


def summed_up(name: str, cells: list[Cell]) -> Iterator[str]:
    worst, heaviest = (
        max(cells, key=lambda cell: cell.ratio(cell.total)),
        max(cells, key=lambda cell: cell.memory_ratio),
    )
    mean = statistics.geometric_mean(cell.ratio(cell.total) for cell in cells)
    yield f"{name}: geometric mean of after ÷ before over {len(cells)} cells: {mean:.3f}"
    yield f"{name}: worst cell: {worst.ratio(worst.total):.2f} ({worst})"
    yield f"{name}: most memory: {heaviest.memory_ratio:.2f} ({heaviest})"


# ---- what is compared


def plan(graph: str, options: argparse.Namespace) -> Iterator[Cell]:
    """A graph's cells: in memory, and from disk where a budget is given."""
    for memory, recipes in (None, ["auto"]), (options.memory, options.recipes if options.memory else []):
        for algorithm, recipe in itertools.product(options.algorithms, recipes):
            if "runs" in options.only:
                yield Cell(graph, algorithm, memory, recipe)
            for size in options.sizes if "streams" in options.only else ():
                yield Cell(graph, algorithm, memory, recipe, "streams", size)


def starts(options: argparse.Namespace) -> Iterator[Cell]:
    for memory in [None, options.memory] if options.memory else [None]:
        yield Cell(SMALL, "bfs", memory, kind="start")


def run_graph(name: str, cells: list[Cell], folder: Path, trees: dict[str, Path], options: argparse.Namespace) -> None:
    with make(folder, name) as graph, tempfile.TemporaryDirectory() as scratch:
        source, store = np.asarray(hub(graph)).item(), graph.path
        assert store is not None
        for cell in cells:
            told = {"source": source, "options": cell.options(options.threads)}
            try:
                if cell.size:
                    told |= changes(graph, cell.size, options.rounds, Path(scratch))
                compare(cell, trees, store, told, options.rounds)
            except ist.OptionError as error:
                cell.left = str(error)
            print(f"{cell}: {cell.left or f'{cell.ratio(cell.total):.2f}'}", file=sys.stderr, flush=True)


def changes(graph: ist.Graph, size: int, rounds: int, folder: Path) -> dict[str, Any]:
    """A file of changes for all rounds of a stream, and how they are applied."""
    path, batches = folder / f"{size}.parquet", min(BATCHES, max(1, CHANGES // size))
    if not path.exists():
        ist.make_workload(graph, path, batches=(rounds + 1) * batches, size=size, seed=1)
    return {"updates": str(path), "size": size, "batches": batches}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="the older tree's src")
    parser.add_argument(
        "--after", type=Path, default=BENCHMARKS.parent / "src", help="the newer tree's src; default: this one's"
    )
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--graphs", "--graph", nargs="+", default=GRAPHS, help="kronSCALE, rmatSCALE or gridSIDE")
    parser.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, default=list(ALGORITHMS))
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="changes in a batch of a stream")
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
    done: list[Cell] = []
    with tempfile.TemporaryDirectory() as folder:
        planned = [
            (name, list(plan(name, options))) for name in options.graphs if set(options.only) & {"runs", "streams"}
        ]
        planned += [(SMALL, list(starts(options)))] if "start" in options.only else []
        for name, cells in planned:
            run_graph(name, cells, options.folder or Path(folder), trees, options)
            done += cells
            if options.json:  # after every graph, for a run takes long
                options.json.write_text(json.dumps([asdict(cell) for cell in done], indent=1))
    print(table(cells_table(done)), *summary(done), sep="\n\n")


if __name__ == "__main__":
    main()
