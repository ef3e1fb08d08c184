"""Kronecker 23 with 1 GB of memory beside GridGraph and Blaze, which also leave the edges on the disk.

    GRIDGRAPH=DIR BLAZE=DIR python benchmarks/systems.py [--folder DIR] [--scale 23] [--memory 1] [--rounds 3]

GRIDGRAPH names the folder with bfs, wcc, pagerank and preprocess, BLAZE the one with bfs, wcc and pagerank. A system
that is not given counts with the seconds of a machine like this one (two cores, an SSD). All read the disk directly, by
two threads. The others are timed by their own clocks, without what they load before; of Isthmus the whole call is.
Contestants take turns; medians of the rounds. Answers are checked before a time counts: how many vertices a search
reaches, how many components there are or how many vertices are in the largest, all ranks or the highest twenty. Prints
Markdown.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from graphs import hub, make, warm
from harness import child, table, verdict

import isthmus as ist
from isthmus.kernels.compile.kernel import kernel

ITERATIONS = 5
TARGETS = {"bfs": 1.5, "wcc": 3.0, "pagerank": 2.0}
# Seconds on Kronecker 23 with 1 GB on such a machine.
ELSEWHERE = {
    "GridGraph": {"bfs": 4.9, "wcc": 7.4, "pagerank": 17.5},
    "Blaze": {"bfs": 3.3, "wcc": 12.5, "pagerank": 13.8},
}
THREADS = 2
AT_ONCE = 1 << 24
PARTITIONS = 32  # of GridGraph: of 4, 8, 16 and 32 on Kronecker 23 the fastest
LIKE = 1e-3  # relative: single precision


class Truth:
    """What the answers must be."""

    def __init__(self, graph: ist.Graph, source: Any) -> None:
        self.graph, self.source, self.start = graph, source, graph.ids.number(source)  # by its name, by its number
        self.offsets = graph.store.read("out.offsets").astype(np.int64)
        labels = ist.weakly_connected_components(graph).values
        sizes = np.bincount(np.unique(labels, return_inverse=True)[1])
        self.components, self.largest = sizes.size, int(sizes.max())
        self.reached = ist.bfs(graph, source).summary()["result"]["reached"]
        self._ranks: Any = None

    @property
    def ranks(self) -> Any:
        """After the iterations, from 1 everywhere, where the rank of a vertex without edges goes nowhere."""
        if self._ranks is None:
            targets, degrees = self.graph.store.read("out.targets"), np.diff(self.offsets)
            ranks = np.ones(self.graph.vertices)
            for _ in range(ITERATIONS):
                shares = np.divide(ranks, degrees, out=np.zeros_like(ranks), where=degrees > 0)
                ranks = 0.15 + 0.85 * gathered(self.offsets, targets, shares)
            self._ranks = ranks
        return self._ranks


@kernel
def gathered(offsets: Any, targets: Any, shares: Any) -> Any:
    sums = np.zeros(shares.size)
    for v in range(shares.size):
        for e in range(offsets[v], offsets[v + 1]):
            sums[v] += shares[targets[e]]
    return sums


def number(pattern: str, output: str) -> float:
    found = re.search(pattern, output)
    if found is None:
        raise SystemExit(f"expected {pattern!r} in:\n{output}")
    return float(found[1])


def expect(what: str, found: float, expected: float) -> None:
    if found != expected:
        raise SystemExit(f"{what}: {found:g} instead of {expected:g}")


class GridGraph:
    name = "GridGraph"

    def __init__(self, binaries: Path, truth: Truth, folder: Path, gigabytes: int) -> None:
        self._binaries, self._truth, self._gigabytes = binaries, truth, str(gigabytes)
        self._grid = folder / f"{truth.graph.path.stem}.grid"
        if not self._grid.exists():
            self._prepare(folder / "edges.bin")

    def _prepare(self, edges: Path) -> None:
        """Arcs as pairs, which its own program sorts into a grid."""
        graph, offsets = self._truth.graph, self._truth.offsets
        with edges.open("wb") as file:
            for first in range(0, graph.arcs, AT_ONCE):
                last = min(first + AT_ONCE, graph.arcs)
                sources = np.searchsorted(offsets, np.arange(first, last), "right") - 1
                np.stack(
                    [sources.astype(np.int32), graph.store.read("out.targets", first, last).astype(np.int32)], axis=1
                ).tofile(file)
        words = ["-i", str(edges), "-o", str(self._grid), "-v", str(graph.vertices), "-p", str(PARTITIONS), "-t", "0"]
        child([str(self._binaries / "preprocess"), *words])
        edges.unlink()

    def _run(self, program: str, *words: str) -> str:
        return child(
            [str(self._binaries / program), str(self._grid), *words, self._gigabytes], OMP_NUM_THREADS=str(THREADS)
        ).output

    def bfs(self) -> float:
        output = self._run("bfs", str(self._truth.start))
        expect("GridGraph's search reaches", number(r"discovered (\d+) vertices", output), self._truth.reached)
        return number(r"in ([0-9.]+) seconds", output)

    def wcc(self) -> float:
        output = self._run("wcc")
        expect("GridGraph's components", number(r"(\d+) components", output), self._truth.components)
        return number(r"in ([0-9.]+) seconds", output)

    def pagerank(self) -> float:
        output = self._run("pagerank", str(ITERATIONS))
        if not np.allclose(np.fromfile(self._grid / "pagerank", np.float32), self._truth.ranks, rtol=LIKE):
            raise SystemExit("GridGraph's PageRank is wrong")
        return number(r"took ([0-9.]+) seconds", output)


class Blaze:
    name = "Blaze"

    def __init__(self, binaries: Path, truth: Truth, folder: Path, gigabytes: int) -> None:
        self._binaries, self._truth = binaries, truth
        self._index, self._lists = (folder / f"{truth.graph.path.stem}.{what}" for what in ("index", "adj"))
        if not self._lists.exists():
            self._prepare()

    def _prepare(self) -> None:
        """Its two files: a header, where every 16th list begins, and degrees; all targets, in whole pages."""
        graph, offsets = self._truth.graph, self._truth.offsets
        head = np.concatenate([[0, 0, graph.vertices, graph.arcs], offsets[:-1:16]]).astype(np.uint64).tobytes()
        degrees = np.diff(offsets).astype(np.uint32).tobytes()
        self._index.write_bytes(head + bytes(-len(head) % 64) + degrees + bytes(-len(degrees) % 64))
        with self._lists.open("wb") as file:
            for first in range(0, graph.arcs, AT_ONCE):
                graph.store.read("out.targets", first, min(first + AT_ONCE, graph.arcs)).astype(np.uint32).tofile(file)
            file.write(bytes(-file.tell() % 4096))

    def _run(self, program: str, *words: str) -> tuple[str, float]:
        files = [str(self._index), str(self._lists)]
        output = child([str(self._binaries / program), f"-computeWorkers={THREADS}", *words, *files]).output
        return output, number(r"_MAIN, Time, \w+, (\d+)", output) / 1e3

    def bfs(self) -> float:
        output, taken = self._run("bfs", f"-startNode={self._truth.start}")
        levels = [int(count) for count in re.findall(r"EDGEMAP\s+\d+ :\s+(\d+) nodes", output)]
        expect("Blaze's search reaches", sum(levels), self._truth.reached)
        return taken

    def wcc(self) -> float:
        output, taken = self._run("wcc", f"-inIndexFilename={self._index}", f"-inAdjFilenames={self._lists}")
        expect("Blaze's largest component", number(r"largest component: \d+, size: (\d+)", output), self._truth.largest)
        return taken

    def pagerank(self) -> float:
        output, taken = self._run("pagerank", f"-maxIterations={ITERATIONS}")
        shown = [int(vertex) for vertex in re.findall(r"^\s*\d+:\s+[0-9.]+\s+(\d+)$", output, re.MULTILINE)]
        highest = set(np.argsort(self._truth.ranks)[-len(shown) :].tolist())
        if len(shown) < 20 or len(highest & set(shown)) < 0.9 * len(shown):
            raise SystemExit("Blaze's PageRank is wrong")
        return taken


class Isthmus:
    name = "Isthmus"

    def __init__(self, truth: Truth, gigabytes: int) -> None:
        self._truth, self._memory = truth, f"{gigabytes}GB"

    def bfs(self) -> float:
        found = ist.bfs(self._truth.graph, self._truth.source, memory=self._memory)
        expect("our search reaches", found.summary()["result"]["reached"], self._truth.reached)
        return seconds(found)

    def wcc(self) -> float:
        found = ist.weakly_connected_components(self._truth.graph, memory=self._memory)
        expect("our components", np.unique(found.values).size, self._truth.components)
        return seconds(found)

    def pagerank(self) -> float:
        return seconds(ist.pagerank(self._truth.graph, iterations=ITERATIONS, memory=self._memory))


def seconds(found: Any) -> float:
    return float(found.summary()["seconds"]["total"])


def contestants(truth: Truth, folder: Path, gigabytes: int) -> list[Any]:
    """Isthmus, and the systems whose programs are here."""
    found: list[Any] = [Isthmus(truth, gigabytes)]
    for kind in (GridGraph, Blaze):
        where = os.environ.get(kind.name.upper())
        if where:
            found.append(kind(Path(where), truth, folder, gigabytes))
    return found


def measured(graph: ist.Graph, folder: Path, gigabytes: int, rounds: int) -> list[list[str]]:
    truth = Truth(graph, hub(graph))
    present = contestants(truth, folder, gigabytes)
    elsewhere = [name for name in ELSEWHERE if name not in {each.name for each in present}]
    names = [*(f"{each.name} s" for each in present), *(f"{name} s, elsewhere" for name in elsewhere)]
    rows = [["algorithm", *names, "better ÷ ours", "target", ""]]
    for algorithm, target in TARGETS.items():
        taken: dict[str, list[float]] = {}
        for turn in range(rounds + 1):  # the first is to get warm
            for each in present:
                seconds = getattr(each, algorithm)()
                if turn:
                    taken.setdefault(each.name, []).append(seconds)
        ours, *others = (statistics.median(values) for values in taken.values())
        others += [ELSEWHERE[name][algorithm] for name in elsewhere]
        gain = min(others) / ours
        shown = [f"{seconds:.2f}" for seconds in (ours, *others)]
        rows.append([algorithm, *shown, f"{gain:.1f}", f"≥ {target:g}", verdict(gain, target, False)])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where graphs lie or are made; default: a temporary folder")
    parser.add_argument("--scale", type=int, default=23)
    parser.add_argument("--memory", type=int, default=1, help="GB")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        with make(folder, f"kron{options.scale}") as graph:
            warm(graph)
            print(table(measured(graph, folder, options.memory, options.rounds)))


if __name__ == "__main__":
    main()
