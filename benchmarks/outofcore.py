"""From disk under a budget: time against what the link and the processor allow, memory against the promise.

    python benchmarks/outofcore.py [--folder DIR] [--graphs rmat22 rmat24 grid4000] [--budgets 5% 25%] [--rounds 3]

For each graph, algorithm and budget the run from disk is compared with the larger of (a) the same run in memory
and (b) what the link needs for the bytes and requests that the run made, at rates measured in this very run.
Answers are compared before times. Prints Markdown; needs about 6 GB of disk in DIR, where the graphs stay.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from graphs import make, warm
from harness import child, isthmus, table, verdict

import isthmus as ist
from isthmus.graph.far import FarArray
from isthmus.graph.store.files import BLOCK, aligned_empty
from isthmus.kernels.store.aio import Ring
from isthmus.link.link import Extents
from isthmus.link.profile.measurement import measure_stored
from isthmus.link.ssd import GUESS, SsdLink

COMMANDS = (
    ["pagerank", "--tol", "1e-2"],
    ["bfs", "--source", "0"],
    ["sssp", "--source", "0"],
    ["weakly_connected_components"],
)
STEPS = 1000  # levels of the grid that are walked one at a time, for what one costs outside reads and kernels
JUDGED = 0.1  # seconds: shorter cells are shown, not judged


def run(graph: ist.Graph, algorithm: str, **how: Any) -> Any:
    if algorithm == "pagerank":
        return ist.pagerank(graph, tol=1e-4, **how)
    return getattr(ist, algorithm)(graph, source=0, **how)


def agree(algorithm: str, a: Any, b: Any) -> bool:
    return bool(
        np.abs(a.filled() - b.filled()).sum() <= 2e-4
        if algorithm == "pagerank"
        else np.array_equal(a.filled(), b.filled())
    )


def link_seconds(summary: dict[str, Any], bandwidth: float, rate: float) -> float:
    """What the link needs: bulk bytes at the bandwidth, single blocks at the request rate."""
    engines = summary["engines"]
    bulk = engines.get("filter", {"bytes": 0})["bytes"]
    blocks = engines.get("zero_copy", {"bytes": 0})["bytes"] / BLOCK
    return bulk / bandwidth + blocks / rate


def targets(graph: ist.Graph) -> FarArray:
    """The targets of all out-edges, where they lie."""
    return graph.snapshot.far("out", weights=False)[0]


def cell(graph: ist.Graph, algorithm: str, budget: str, policy: str, rounds: int) -> dict[str, float]:
    """Medians of runs in memory and from disk, in turns."""
    first = run(graph, algorithm)
    assert agree(algorithm, first, run(graph, algorithm, memory=budget, policy=policy))
    near, far, limits = [], [], []
    for _ in range(rounds):
        profile = measure_stored(targets(graph), 3).profile("this disk")
        near.append(run(graph, algorithm).summary()["seconds"]["iterate"])
        summary = run(graph, algorithm, memory=budget, policy=policy).summary()
        far.append(summary["seconds"]["iterate"])
        limits.append(link_seconds(summary, profile.bandwidth, profile.request_rate))
    return {
        "near": statistics.median(near),
        "far": statistics.median(far),
        "link": statistics.median(limits),
        "ratio": summary["transfer"]["ratio"],
        "iterations": summary["iterations"],
    }


def times(graphs: dict[str, ist.Graph], budgets: list[str], rounds: int) -> list[list[str]]:
    rows = [
        [
            "graph",
            "algorithm, recipe",
            "budget",
            "in memory",
            "link alone",
            "from disk",
            "÷ larger",
            "edges moved",
            "iterations",
            "",
        ]
    ]
    for name, graph in graphs.items():
        for algorithm, policy in (("pagerank", "auto"), ("bfs", "auto"), ("sssp", "auto")):
            for budget in budgets:
                c = cell(graph, algorithm, budget, policy, rounds)
                limit = max(c["near"], c["link"])
                ratio = c["far"] / limit
                judged = verdict(ratio, 1.3) if c["far"] >= JUDGED else "shown"
                rows.append(
                    [
                        name,
                        f"{algorithm}, {policy}",
                        budget,
                        f"{c['near']:.2f} s",
                        f"{c['link']:.2f} s",
                        f"{c['far']:.2f} s",
                        f"{ratio:.2f}",
                        f"{c['ratio']:.1f} x",
                        f"{c['iterations']:.0f}",
                        judged,
                    ]
                )
                if name.startswith("grid") and algorithm == "bfs":
                    steps = ist.bfs(graph, source=0, memory=budget, depth_limit=STEPS, without=("settle",)).trace
                    per = statistics.mean(step.overhead for step in steps) * 1e3
                    what = "bfs: ms per iteration outside reads and kernels"
                    rows.append([name, what, budget, "", "", f"{per:.3f}", "", "", "", verdict(per, 1.0)])
                print(" | ".join(rows[-1]), flush=True)
    return rows


def disk(array: FarArray) -> list[list[str]]:
    """Bulk reads against dd, single blocks against the ring at depth 32."""
    path, size = array.open_file().path, array.blocks * BLOCK
    link = SsdLink([array], GUESS)
    buffer = aligned_empty(96 << 20, np.uint8)
    bulk, raw, singles, depth32 = [], [], [], []
    random = np.random.default_rng(1)
    ring = Ring(32)
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run(["dd", f"if={path}", "of=/dev/null", "bs=4M", "iflag=direct"], check=True, capture_output=True)
        raw.append(path.stat().st_size / (time.perf_counter() - start))
        start = time.perf_counter()
        for at in range(0, size, buffer.size):
            length = min(buffer.size, size - at)
            link.move(Extents(np.zeros(1, np.int64), np.array([at]), np.array([length]), np.zeros(1, np.int64)), buffer)
        bulk.append(size / (time.perf_counter() - start))
        count = 16384
        offsets = random.integers(0, size // BLOCK, count) * BLOCK
        places = np.arange(count) * BLOCK % buffer.size
        extents = Extents(np.zeros(count, np.int64), offsets, np.full(count, BLOCK), places)
        start = time.perf_counter()
        link.move(extents, buffer)
        singles.append(count / (time.perf_counter() - start))
        files = np.full(count, link._descriptors[0])
        start = time.perf_counter()
        ring.read(files, offsets, extents.lengths, places + buffer.ctypes.data, BLOCK)
        depth32.append(count / (time.perf_counter() - start))
    ring.close()
    link.close()
    ours, dd, single, deep = (statistics.median(values) for values in (bulk, raw, singles, depth32))
    in_bulk = f"{ours / 1e9:.2f} ÷ {dd / 1e9:.2f} GB/s = {ours / dd:.2f}"
    one_by_one = f"{single:,.0f} ÷ {deep:,.0f} /s = {single / deep:.2f}"
    return [
        ["bulk reads ÷ dd iflag=direct bs=4M", in_bulk, "≥ 0.85", verdict(ours / dd, 0.85, False)],
        ["single 4 KB reads ÷ the disk's rate at depth 32", one_by_one, "≥ 0.80", verdict(single / deep, 0.8, False)],
    ]


def memory(graphs: dict[str, ist.Graph], budgets: list[str]) -> list[list[str]]:
    """Peak RSS of whole processes, beyond the budget."""
    rows = []
    for name, graph in graphs.items():
        worst = 0.0
        which = ""
        for budget in budgets:
            for words in COMMANDS:
                # Thousands of iterations where partitions do not settle.
                far = name.startswith("grid") and words[0] in ("bfs", "sssp")
                for policy in ("auto",) if far else ("filter", "emogi", "auto"):
                    how = ["--memory", budget, "--policy", policy, "--json"]
                    done = child(isthmus("run", words[0], str(graph.path), *words[1:], *how))
                    beyond = (done.peak_rss - json.loads(done.output)["memory"]["budget"]) / 1e6
                    if beyond > worst:
                        worst, which = beyond, f"{words[0]}, {policy}, {budget}"
        what = f"{name}: peak RSS beyond the budget, worst of all runs"
        rows.append([what, f"{worst:.0f} MB ({which})", "≤ 250 MB", verdict(worst, 250)])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--graphs", nargs="*", default=["rmat22", "rmat24", "grid4000"])
    parser.add_argument("--budgets", nargs="*", default=["5%", "25%"])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        graphs = {graph: make(options.folder or Path(name), graph) for graph in options.graphs}
        for graph in graphs.values():
            warm(graph)
        largest = max(graphs.values(), key=lambda g: g.edge_bytes)
        print(table(times(graphs, options.budgets, options.rounds)), "\n", flush=True)
        facts = [["what", "measured", "target", ""], *disk(targets(largest)), *memory(graphs, options.budgets)]
        print(table(facts))


if __name__ == "__main__":
    main()
