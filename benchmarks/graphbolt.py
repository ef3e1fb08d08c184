"""GraphBolt's PageRank as a contestant, on its own file format, by its own clock.

`GRAPHBOLT` names the folder with PageRank. Its ranks are not normalised, lose what reaches vertices without out-edges,
and are those of ten iterations, so answers are compared loosely: the L1 distance of both, normalised, over the vertices
that have out-edges.
"""

from __future__ import annotations

import os
import re
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from harness import child
from windows import Window

ALIKE = 0.05  # L1 distance of two normalised vectors; ten iterations leave more than our tolerance does


def folder() -> Path | None:
    """Where the program is, if anywhere."""
    where = os.environ.get("GRAPHBOLT")
    return Path(where) if where and (Path(where) / "PageRank").is_file() else None


@dataclass
class Run:
    seconds: float  # of a batch: edges and ranks, the median
    ranks: Any  # after the last batch
    peak: int


def export(cut: Window, path: Path) -> None:
    """The graph at the beginning as an adjacency graph in text."""
    order = np.argsort(cut.sources[: cut.kept], kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(cut.sources[: cut.kept], minlength=cut.vertices))[:-1]])
    with path.open("w") as file:
        file.write(f"AdjacencyGraph\n{cut.vertices}\n{cut.kept}\n")
        for column in (offsets, cut.targets[: cut.kept][order]):
            for first in range(0, column.size, 1 << 20):
                file.write("\n".join(map(str, column[first : first + (1 << 20)].tolist())) + "\n")


def run(binaries: Path, cut: Window, batches: int, size: int, scratch: Path, threads: int) -> Run:
    graph, changes, output = scratch / "graph.adj", scratch / "changes.txt", scratch / "ranks"
    export(cut, graph)
    with changes.open("w") as file:
        for number in range(batches):
            inserts, deletes = cut.batch(number, size)
            for letter, (sources, targets, *_) in (("a", inserts), ("d", deletes)):
                file.writelines(f"{letter} {u} {v}\n" for u, v in zip(sources.tolist(), targets.tolist(), strict=True))
    words = ["-numberOfUpdateBatches", batches, "-nEdges", size, "-streamPath", changes, "-outputFile", output, graph]
    ran = child([str(binaries / "PageRank"), *map(str, words)], OMP_NUM_THREADS=str(threads))
    parts = [
        [float(found) for found in re.findall(rf"^{what} : ([\d.]+)", ran.output, re.MULTILINE)]
        for what in ("Edge deletion time", "Edge addition time", "Finished batch")
    ]
    if {len(part) for part in parts} != {batches}:
        raise SystemExit(f"GraphBolt: expected the times of {batches} batches, got\n{ran.output[-800:]}")
    ranks = np.loadtxt(Path(f"{output}{batches}"), usecols=3)
    return Run(statistics.median(map(sum, zip(*parts, strict=True))), ranks, ran.peak_rss)


def distance(theirs: Any, ours: Any, degrees: Any) -> float:
    """The L1 distance of both, normalised, over the vertices that have out-edges."""
    chosen = degrees > 0
    a, b = theirs[chosen], ours[chosen]
    return float(np.abs(a / a.sum() - b / b.sum()).sum())
