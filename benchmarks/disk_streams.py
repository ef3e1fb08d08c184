"""Streams whose edges stay on disk: batches against runs from scratch on the same snapshot, and peak memory, merges
included.

    python benchmarks/disk_streams.py [--graph rmat24] [--memory 10%] [--size 100000] [--batches 6] [--programs sssp
    pagerank]
                                      [--folder DIR] [--threads 2]

Half of the changes delete edges, half insert new ones (`isthmus stream make-workload`). After the first two batches,
each is followed by a run from scratch by `auto`, with the same memory, on the graph as it is then, and the answers are
compared. Shown are medians. A second process for each program only applies the batches and merges the changes; its
highest resident memory (VmHWM) is compared with the budget. Prints Markdown.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from graphs import hub, make, warm
from harness import table, verdict

import isthmus as ist
from isthmus.memory import peak_rss
from isthmus.runtime.results.agreement import difference

TOL = 1e-4
FASTER = 3.0  # times, at least
BESIDE = 250e6  # bytes beside the budget, at most
WARM_UP = 2  # batches


def trial(path: str, updates: str, name: str, memory: str, size: int, threads: int, alone: bool) -> dict[str, Any]:
    """Figures of one program. `alone`: without runs from scratch."""
    with ist.open(path) as graph:
        given = {"tol": TOL} if name == "pagerank" else {"source": hub(graph)} if name in ("bfs", "sssp") else {}
        start = time.perf_counter()
        live = ist.stream(graph, [getattr(ist, PROGRAMS[name])(**given)], memory=memory, threads=threads, on_disk=True)
    opened, rows = time.perf_counter() - start, list[dict[str, Any]]()
    with live:
        for number, report in enumerate(live.follow(updates, batch=size)):
            row = {**report.seconds, "edges_read": next(iter(report.programs.values()))["edges_read"]}
            if number >= WARM_UP and not alone:
                start = time.perf_counter()
                again = getattr(ist, name)(live.graph, memory=memory, threads=threads, **given)
                row["scratch"] = time.perf_counter() - start
                wrong = difference(again, live[name].result())
                if wrong is not None:
                    raise SystemExit(f"{name}: {wrong}")
                del again
                rows.append(row)
        start = time.perf_counter()
        live.merge()
        merged = time.perf_counter() - start
        return {
            "open": opened,
            "rows": rows,
            "merge": merged,
            "budget": live.budget,
            "peak": peak_rss(),
            "arcs": live.graph.arcs,
        }


PROGRAMS = {
    "sssp": "SSSP",
    "pagerank": "PageRank",
    "bfs": "BFS",
    "weakly_connected_components": "WeaklyConnectedComponents",
}


def median(rows: list[dict[str, Any]], name: str) -> float:
    return statistics.median(row[name] for row in rows)


def shown(name: str, found: dict[str, Any], alone: dict[str, Any]) -> list[str]:
    rows, beside = found["rows"], alone["peak"] - alone["budget"]
    faster = statistics.median(row["scratch"] / row["total"] for row in rows)
    return [
        name,
        f"{found['open']:.1f} s",
        f"{median(rows, 'total'):.2f} s",
        f"{median(rows, 'update'):.2f} s",
        f"{median(rows, 'edges_read') / found['arcs']:.3f}",
        f"{median(rows, 'scratch'):.2f} s",
        f"{faster:.1f} ({verdict(faster, FASTER, False)})",
        f"{alone['merge']:.1f} s",
        f"{alone['budget'] / 1e6:,.0f} MB",
        f"{beside / 1e6:+,.0f} MB ({verdict(beside, BESIDE)})",
    ]


HEAD = [
    "program",
    "opening",
    "batch",
    "of which update",
    "edges read, of all",
    "from scratch",
    f"times faster (≥ {FASTER:g})",
    "merge",
    "budget",
    f"peak beside it (≤ {BESIDE / 1e6:.0f} MB)",
]


def of_process(path: str, updates: Path, name: str, how: str, options: argparse.Namespace) -> dict[str, Any]:
    command = [
        sys.executable,
        "-W",
        "ignore",
        __file__,
        "--one",
        path,
        str(updates),
        name,
        how,
        "--memory",
        options.memory,
    ]
    command += ["--size", str(options.size), "--threads", str(options.threads)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="rmat24")
    parser.add_argument("--memory", default="10%")
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--batches", type=int, default=6)
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=["sssp", "pagerank"])
    parser.add_argument("--folder", type=Path, help="where the graph is made and stays; default: a temporary folder")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        path, updates, name, alone = options.one
        print(json.dumps(trial(path, updates, name, options.memory, options.size, options.threads, alone == "alone")))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        updates = Path(scratch) / "updates.parquet"
        with make(folder, options.graph) as graph:
            warm(graph)
            ist.make_workload(graph, updates, batches=options.batches, size=options.size, seed=1)
            path = str(graph.path)
        rows = [HEAD]
        for name in options.programs:
            rows.append(shown(name, *(of_process(path, updates, name, how, options) for how in ("compared", "alone"))))
        print(f"{options.graph}, {options.memory} near, batches of {options.size:,}\n\n{table(rows)}")


if __name__ == "__main__":
    main()
