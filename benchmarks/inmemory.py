"""In memory: Isthmus against the graph libraries of PyPI and the GAP Benchmark Suite.

    python benchmarks/inmemory.py [--graphs kron20 ...] [--algorithms bfs ...] [--peers networkit ...] [--rounds 5]
                                  [--limit 60] [--folder DIR] [--json FILE]

The libraries come with pip install -e '.[bench]'; those that are missing are left out. GAPBS=DIR names the folder with
the suite's binaries. Every contestant has two threads and a process of its own; answers are verified, then Isthmus
and each peer are timed in turns, a round per source. Timed is the algorithm alone: no building, loading or compiling.
Prints Markdown. The default graphs need about 12 GB of disk in DIR and 16 GB of memory.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import re
import statistics
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import gapbs
import graphs
import numpy as np
import pyarrow.csv as pc
from contest import ERROR, OURS, Contestant, Left, Pair, Peer, TooLarge, Truth, alternate
from harness import child, isthmus, table, verdict
from libraries import LIBRARIES, THREADS
from own import own_programs

import isthmus as ist

GRAPHS = ["kron20", "kron22", "kron24", "grid4000", "cnr-2000", "npm-deps-2016"]
ALGORITHMS = {"bfs": "bfs", "sssp": "sssp", "wcc": "weakly_connected_components", "pagerank": "pagerank"}
PYPI = [name for name in LIBRARIES if name != OURS]
DATA = Path(os.environ.get("ISTHMUS_DATA", Path(__file__).parent.parent.parent / "shared" / "data"))
JUDGED = 0.1  # seconds: pairs of which both are faster are shown, not judged
AGAINST_GAPBS = {"bfs": 1.2, "sssp": 1.0, "wcc": 1.0, "pagerank": 1.0}
WORST = 1.2  # ours to the best library, in any cell
OWN_SCALE = 20  # programs of one's own are timed on Kronecker graphs up to this size


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def make(name: str, folder: Path) -> ist.Graph:
    """A graph by name, with weights from 1 to 255: kronSCALE as the GAP Benchmark Suite has it, gridSIDE, or real
    data.
    """
    path = folder / f"{name}.isthmus"
    if path.exists():
        return ist.open(path)
    if name.rstrip("0123456789") in ("kron", "grid"):
        return graphs.make(folder, name)
    file = DATA / name / "edges.txt.gz"
    if not file.exists():
        raise Left(f"no {file}; ISTHMUS_DATA names the folder of the real graphs")
    options = pc.ReadOptions(autogenerate_column_names=True), pc.ParseOptions(delimiter="\t")
    sources, targets = (column.to_numpy() for column in pc.read_csv(file, *options).columns[:2])
    weights = np.random.default_rng(1).integers(1, 256, sources.size, dtype=np.int32)
    return ist.ingest((sources, targets, weights), path, directed=True, self_loops="drop", parallel="drop")


def pick_sources(graph: ist.Graph, count: int) -> list[int]:
    """Vertices that have an edge, drawn evenly."""
    able = np.flatnonzero(np.diff(graph.store.read("out.offsets")))
    return np.random.default_rng(1).choice(able, count, replace=count > able.size).tolist()


@dataclass
class Cell:
    """An algorithm on a graph: seconds in turns with each peer, or why there are none; notes of the contestants."""

    graph: str
    algorithm: str
    ours: list[float] = field(default_factory=list)
    pairs: dict[str, Pair] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    peaks: tuple[int, int] | None = None  # bytes: ours, GAPBS's

    def judged(self, peer: str) -> bool:
        return peer in self.pairs and max(self.pairs[peer].seconds) >= JUDGED

    def best(self) -> str | None:
        """The fastest library that can be judged."""
        names = [name for name in PYPI if self.judged(name)]
        return min(names, key=lambda name: self.pairs[name].seconds[1]) if names else None


class Contest:
    """All cells of a run."""

    def __init__(self, peers: list[str], rounds: int, limit: float) -> None:
        self.peers, self._rounds, self._limit = peers, rounds, limit
        self._too_large: dict[str, int] = {}  # arcs at which a library gave up building
        self.cells: list[Cell] = []

    def run(self, name: str, graph: ist.Graph, algorithm: str, folder: Path) -> None:
        cell = Cell(name, algorithm)
        self.cells.append(cell)
        sources = pick_sources(graph, self._rounds)
        say(f"{name}, {algorithm}: proving the answers")
        truth = Truth(graph, algorithm, sources, folder)
        ours = Peer(OURS, truth, math.inf)
        try:
            ours.settle(sources[0])
            cell.notes[OURS] = ours.note
            if not self.peers:
                cell.ours += alternate(ours, None, sources).ours
            for peer in self.peers:
                self._meet(cell, ours, peer, truth, sources)
        finally:
            ours.close()

    def _meet(self, cell: Cell, ours: Peer, name: str, truth: Truth, sources: list[int]) -> None:
        peer: Contestant | None = None
        try:
            peer = self._start(name, truth)
            peer.settle(sources[0])
            cell.notes[name] = peer.note
            cell.pairs[name] = alternate(ours, peer, sources)
            cell.ours += cell.pairs[name].ours
            say(f"{cell.graph}, {cell.algorithm}, {name}: {cell.pairs[name].ratio:.2f} of its time")
            if isinstance(peer, gapbs.Gapbs):
                cell.peaks = our_peak(truth, sources[0]), peer.peak(sources[0])
        except Left as reason:
            if isinstance(reason, TooLarge):
                self._too_large[name] = min(truth.graph.arcs, self._too_large.get(name, truth.graph.arcs))
            cell.left[name] = str(reason)
            say(f"{cell.graph}, {cell.algorithm}, {name}: {reason}")
        finally:
            if peer is not None:
                peer.close()

    def _start(self, name: str, truth: Truth) -> Contestant:
        if name == gapbs.Gapbs.name:
            binaries = gapbs.folder()
            if binaries is None:
                raise Left("absent")
            return gapbs.Gapbs(binaries, truth, self._limit)
        if not importlib.util.find_spec(LIBRARIES[name].module):
            raise Left("absent")
        if not hasattr(LIBRARIES[name], truth.algorithm):
            raise Left("not offered")
        if truth.graph.arcs >= self._too_large.get(name, sys.maxsize):
            raise Left("too large before")
        return Peer(name, truth, self._limit)


def our_peak(truth: Truth, source: int) -> int:
    """Peak memory of a whole `isthmus run`."""
    words = ["run", ALGORITHMS[truth.algorithm], str(truth.graph.path), "--threads", str(THREADS), "--json"]
    if truth.algorithm in ("bfs", "sssp"):
        words += ["--source", str(truth.graph.ids.users(np.array([source]))[0])]
    if truth.algorithm == "pagerank":
        words += ["--tol", str(ERROR)]
    return child(isthmus(*words)).peak_rss


def seconds_table(contest: Contest) -> list[list[str]]:
    rows = [["graph", "algorithm", OURS, *contest.peers]]
    for cell in contest.cells:
        row = [cell.graph, cell.algorithm, f"{statistics.median(cell.ours):.3f} s" if cell.ours else "-"]
        for peer in contest.peers:
            if peer in cell.left:
                row.append(cell.left[peer])
            else:
                pair = cell.pairs[peer]
                row.append(f"{pair.seconds[1]:.3f} s ({'' if cell.judged(peer) else '~'}{pair.ratio:.2f})")
        rows.append(row)
    return rows


def notes_table(contest: Contest) -> list[list[str]]:
    """The L1 errors that PageRank reached, and settings that were picked."""
    rows = [["graph", "algorithm", OURS, *contest.peers]]
    for cell in contest.cells:
        if any(cell.notes.values()):
            rows.append([cell.graph, cell.algorithm, *(cell.notes.get(name) or "-" for name in (OURS, *contest.peers))])
    return rows


def memory_table(contest: Contest) -> list[list[str]]:
    rows = [["graph", "algorithm", "isthmus run", "GAPBS", "1.3 x GAPBS + 250 MB", ""]]
    for cell in contest.cells:
        if cell.peaks:
            ours, theirs = (peak / 1e6 for peak in cell.peaks)
            allowed = 1.3 * theirs + 250
            rows.append(
                [cell.graph, cell.algorithm, *(f"{x:.0f} MB" for x in (ours, theirs, allowed)), verdict(ours, allowed)]
            )
    return rows


def mean_ratio(cells: list[Cell], peer: str) -> tuple[float, int]:
    """The geometric mean of ours ÷ theirs over the cells that are judged, and their number."""
    ratios = [cell.pairs[peer].ratio for cell in cells if cell.judged(peer)]
    return (statistics.geometric_mean(ratios), len(ratios)) if ratios else (math.nan, 0)


def verdicts(contest: Contest) -> list[list[str]]:
    rows = [["what", "measured", "target", ""]]
    for algorithm in ALGORITHMS:
        cells = [cell for cell in contest.cells if cell.algorithm == algorithm]
        for peer in contest.peers:
            target = AGAINST_GAPBS[algorithm] if peer == gapbs.Gapbs.name else 1.0
            mean, count = mean_ratio(cells, peer)
            if count:
                what = f"{algorithm}: ours ÷ {peer}, geometric mean over {count} graphs"
                rows.append([what, f"{mean:.2f}", f"≤ {target:.1f}", verdict(mean, target)])
    ratios = [(cell.pairs[best].ratio, cell, best) for cell in contest.cells if (best := cell.best())]
    if ratios:
        ratio, cell, peer = max(ratios, key=lambda entry: entry[0])
        what = f"worst cell, ours ÷ best library ({cell.graph}, {cell.algorithm}, {peer})"
        rows.append([what, f"{ratio:.2f}", f"≤ {WORST}", verdict(ratio, WORST)])
    return rows


def as_dict(cell: Cell) -> dict[str, Any]:
    pairs = {name: {"ours": pair.ours, "theirs": pair.theirs, "ratio": pair.ratio} for name, pair in cell.pairs.items()}
    return {**asdict(cell), "pairs": pairs}


def small_kronecker(name: str) -> bool:
    match = re.fullmatch(r"kron(\d+)", name)
    return match is not None and int(match[1]) <= OWN_SCALE


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--graphs", nargs="+", default=GRAPHS, help="kronSCALE, gridSIDE, or a folder of the real graphs"
    )
    parser.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, default=list(ALGORITHMS))
    parser.add_argument("--peers", nargs="*", choices=[*PYPI, gapbs.Gapbs.name], default=[*PYPI, gapbs.Gapbs.name])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=float, default=60, help="seconds that one run of a peer may take")
    parser.add_argument("--folder", type=Path, help="where graphs are made and stay; default: a temporary folder")
    parser.add_argument("--json", type=Path, help="also write every figure to this file")
    options = parser.parse_args()
    own = [["graph", "algorithm", "edges", "a user's own", "built-in", "÷", "limit", ""]]
    skipped: list[str] = []
    contest = Contest(options.peers, options.rounds, options.limit)
    for name in options.graphs:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            try:
                graph = make(name, options.folder or Path(folder))
            except Left as reason:
                skipped.append(f"{name}: {reason}")
                continue
            for algorithm in options.algorithms:
                contest.run(name, graph, algorithm, Path(folder))
            if small_kronecker(name):
                own += own_programs(name, graph, options.rounds, JUDGED)
        if options.json:  # after every graph, for a run takes hours
            cells = [as_dict(cell) for cell in contest.cells]
            options.json.write_text(json.dumps({"cells": cells, "own": own, "skipped": skipped}, indent=1))
    tables: dict[str, list[list[str]]] = {
        "seconds, and ours ÷ theirs": seconds_table(contest),
        "errors and settings": notes_table(contest),
        "verdicts": verdicts(contest),
        "peak memory": memory_table(contest),
        "a user's own program ÷ the built-in": own,
    }
    for title, rows in tables.items():
        if len(rows) > 1:
            print(f"### {title.capitalize()}\n\n{table(rows)}\n")
    for what in skipped:
        print(f"Skipped {what}")


if __name__ == "__main__":
    main()
