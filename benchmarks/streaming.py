"""Streams: answers kept current against recomputation, against RisGraph, and what a changing graph costs.

    python benchmarks/streaming.py [--graphs kron20 kron22 rmat22] [--real FOLDER ...] [--sizes 1000 10000 100000]
    [--batches 10]
                                   [--only recomputed updates peer single log] [--folder DIR] [--threads 2] [--json
                                   FILE]

- recomputed: seconds of a batch (update, correction, computation, publication) against the update and a run from
  scratch on the same snapshot with our own kernels, edges near. Answers are compared after the last batch.
- updates: edge changes per second without programs; reading all lists against lists without gaps; memory; opening.
- peer: RisGraph's batch programs and GraphBolt's PageRank, if RISGRAPH and GRAPHBOLT name their folders, on a directed
  graph with all arcs of Kronecker 20.
- single: a batch of one edge, SSSP maintained, from `apply` to the published result.
- log: what a log costs, on the first graph (`logs.py`): latency of a batch with and without it, threads that share
  syncs, checkpoints and recovery.

Medians over the batches. Half of the changes are inserts and half are deletes; `windows.py` says how they are drawn.
Prints Markdown.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import graphbolt
import logs
import numpy as np
import risgraph
from graphs import make
from harness import table, verdict
from windows import Window, window

import isthmus as ist
from isthmus.kernels.compile.kernel import kernel
from isthmus.runtime.results.agreement import difference

PROGRAMS = ("bfs", "sssp", "weakly_connected_components", "pagerank")
TOL = 1e-4
FASTER = {
    1_000: {"bfs": 10, "sssp": 10, "weakly_connected_components": 10, "pagerank": 3},
    100_000: dict.fromkeys(PROGRAMS[:3], 3),
}
MOST = {1_000: 2.0, 10_000: 1.0, 100_000: 1.0}  # of RisGraph's seconds
KINDS = {"bfs": "none", "sssp": "sums", "weakly_connected_components": "none"}  # weights, as RisGraph has them
WAYS = ("updates", "single", "log", "recomputed", "peer")


def wanted(name: str, source: int) -> Any:
    if name == "pagerank":
        return ist.PageRank(tol=TOL)
    return (
        ist.WeaklyConnectedComponents()
        if name == "weakly_connected_components"
        else getattr(ist, name.upper())(source=source)
    )


def options_of(name: str, source: int) -> dict[str, Any]:
    return {"tol": TOL} if name == "pagerank" else {"source": source} if name in ("bfs", "sssp") else {}


def busiest(cut: Window) -> int:
    return int(np.bincount(cut.sources[: cut.kept]).argmax())


def timed_batches(live: Any, cut: Window, batches: int, size: int) -> Iterator[dict[str, float]]:
    for number in range(batches):
        inserts, deletes = cut.batch(number, size)
        start = time.perf_counter()
        report = live.apply(inserts=inserts, deletes=deletes)
        yield {**report.seconds, "wall": time.perf_counter() - start}


def recomputed(name: str, cut: Window, batches: int, size: int, threads: int) -> dict[str, float]:
    """Median seconds of a batch, and of an update with a run from scratch behind it."""
    source = busiest(cut)
    ours, again = [], []
    with ist.stream(cut.graph(), [wanted(name, source)], threads=threads) as live:
        for seconds in timed_batches(live, cut, batches, size):
            with ist.session(live.graph, threads=threads) as session:  # edges are near already: a run loads nothing
                start = time.perf_counter()
                result = getattr(session, name)(**options_of(name, source))
                again.append(seconds["update"] + time.perf_counter() - start)
            ours.append(seconds["wall"])
        if where := difference(result, live[name].result()):
            raise SystemExit(f"{name}, {size}: {where}")
    return {"ours": statistics.median(ours[1:]), "again": statistics.median(again[1:])}


@kernel
def read_lists(begins: Any, ends: Any, targets: Any) -> Any:
    """A sum over all edges, list by list, as a pass over the graph reads them."""
    total = np.uint64(0)
    for v in range(begins.size):
        for e in range(np.uint64(begins[v]), np.uint64(ends[v])):
            total += np.uint64(targets[e])
    return total


def updates(cut: Window, batches: int, threads: int) -> dict[str, float]:
    """Changes per second at 100,000; reading, memory and opening, against lists without gaps."""
    graph = cut.graph()
    start = time.perf_counter()
    live = ist.stream(graph, threads=threads)
    found = {"open": time.perf_counter() - start}
    with live:
        update = [seconds["update"] for seconds in timed_batches(live, cut, batches, 100_000)]
        found["changes"] = 100_000 / statistics.median(update[1:])
        frozen = live.graph.frozen()
        ways = {}
        for name, each in {"changing": live.graph, "frozen": frozen}.items():
            snapshot = each.snapshot
            ways[name] = (*snapshot.lists("out").arrays, snapshot.whole(snapshot.far("out", False)[0]))
        if read_lists(*ways["changing"]) != read_lists(*ways["frozen"]):
            raise SystemExit("the lists of the changing graph and of its frozen copy differ")
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(7):
            for name, arrays in ways.items():
                start = time.perf_counter()
                read_lists(*arrays)
                seconds[name].append(time.perf_counter() - start)
        found["reading"] = statistics.median(seconds["frozen"]) / statistics.median(seconds["changing"])
        kinds = ("out.offsets", "out.targets", "out.weights", "in.offsets", "in.targets", "in.weights")
        plain = sum(frozen.store.read(kind).nbytes for kind in kinds if kind in frozen.store.manifest.sections)
        found["memory"] = live.graph.info()["store_bytes"] / plain
    return found


def single(cut: Window, threads: int, count: int = 200) -> dict[str, float]:
    """Milliseconds of a batch of one edge, every other one a delete, with SSSP maintained."""
    with ist.stream(cut.graph(), [ist.SSSP(source=busiest(cut))], threads=threads) as live:
        taken = []
        for number in range(count):
            inserts, deletes = cut.batch(number, 2)
            start = time.perf_counter()
            live.apply(inserts=inserts) if number % 2 else live.apply(deletes=deletes)
            assert live["sssp"].number == number + 1
            taken.append(1e3 * (time.perf_counter() - start))
    return {"median": statistics.median(taken[10:]), "p99": float(np.quantile(taken[10:], 0.99))}


# ---- against RisGraph: each run is a process of its own, so that peaks of memory are comparable


def serve(path: str, name: str, kept: int, directed: bool, source: int, batches: int, size: int, threads: int) -> None:
    """The process of our side: prints what RisGraph prints."""
    columns = np.load(path, mmap_mode="r")  # only the rows of the batches are read
    cut = Window(columns[0], columns[1], columns[2] if columns.shape[0] > 2 else None, kept, directed, 0)
    store = Path(path).with_suffix(".isthmus")
    start = time.perf_counter()
    with ist.stream(store, [wanted(name, source)], threads=threads) as live:
        opened = time.perf_counter() - start
        seconds = [each["wall"] for each in timed_batches(live, cut, batches, size)]
        values = live[name].values
        count = len(np.unique(values)) if name == "weakly_connected_components" else int(np.ma.count(values))
    peak = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024
    print(json.dumps({"seconds": statistics.mean(seconds[1:]), "load": opened, "reached": count, "peak": peak}))


def peer(graph: ist.Graph, sizes: list[int], batches: int, folder: Path, threads: int) -> list[list[str]]:
    rows = [
        ["program", "batch", "Isthmus", "RisGraph", "ratio", "at most", "peak", "its peak", "opening", "its loading"]
    ]
    binaries = risgraph.folder()
    assert binaries is not None
    for name, weights in KINDS.items():
        cut = window(graph, 2 * batches * max(sizes), both_ways=name != "weakly_connected_components", weights=weights)
        source, edges = busiest(cut), folder / f"{name}.npy"
        np.save(
            edges,
            np.stack([column for column in (cut.sources, cut.targets, cut.weights) if column is not None]).astype(
                np.int64
            ),
        )
        save(cut, edges)
        for size in sizes:
            told = [str(edges), name, cut.kept, int(cut.directed), source, batches, size, threads]
            command = [sys.executable, __file__, "--serve", *map(str, told)]
            ours = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            theirs = risgraph.run(binaries, name, cut, source, batches, size, folder, threads)
            if ours["reached"] != theirs.reached:
                raise SystemExit(f"{name}, {size}: ours has {ours['reached']}, RisGraph {theirs.reached}")
            ratio = ours["seconds"] / theirs.seconds
            rows.append(
                [
                    name,
                    f"{size:,}",
                    f"{1e3 * ours['seconds']:.1f} ms",
                    f"{1e3 * theirs.seconds:.1f} ms",
                    f"{ratio:.2f}",
                    f"{MOST[size]:.1f} {verdict(ratio, MOST[size])}" if size in MOST else "-",
                    f"{ours['peak'] / 1e6:.0f} MB",
                    f"{theirs.peak / 1e6:.0f} MB",
                    f"{ours['load']:.2f} s",
                    f"{theirs.load:.2f} s",
                ]
            )
            print(*rows[-1], file=sys.stderr, flush=True)
    return rows


def ranks_peer(graph: ist.Graph, batches: int, folder: Path, threads: int, size: int = 1_000) -> str:
    """PageRank beside GraphBolt's."""
    binaries = graphbolt.folder()
    assert binaries is not None
    cut = window(graph, batches * size, both_ways=True, weights="none")
    with ist.stream(cut.graph(), [ist.PageRank(tol=TOL)], threads=threads) as live:
        ours = statistics.median(seconds["wall"] for seconds in timed_batches(live, cut, batches, size))
        ranks, degrees = np.asarray(live["pagerank"].values), live.graph.snapshot.out_degrees()
    theirs = graphbolt.run(binaries, cut, batches, size, folder, threads)
    apart = graphbolt.distance(theirs.ranks, ranks, degrees)
    if apart > graphbolt.ALIKE:
        raise SystemExit(f"PageRank: GraphBolt's ranks are {apart:.3f} from ours")
    faster = theirs.seconds / ours
    return (
        f"PageRank, {size:,} changes: {1e3 * ours:.1f} ms, GraphBolt {1e3 * theirs.seconds:.0f} ms: {faster:.1f} "
        f"times faster "
        f"(at least 5: {verdict(faster, 5, at_most=False)}); L1 distance of the ranks {apart:.4f}"
    )


def save(cut: Window, edges: Path) -> None:
    with ist.stream(cut.graph()) as live:
        live.save(edges.with_suffix(".isthmus"), overwrite=True)


# ---- all of it


def compared(cuts: dict[str, Window], sizes: list[int], batches: int, threads: int) -> list[list[str]]:
    rows = [["graph", "program", "batch", "kept current", "from scratch", "times faster", "at least"]]
    for graph, cut in cuts.items():
        for name in PROGRAMS:
            for size in sizes:
                found = recomputed(name, cut, batches, size, threads)
                faster, least = found["again"] / found["ours"], FASTER.get(size, {}).get(name)
                judged = f"{least} {verdict(faster, least, at_most=False)}" if least else "-"
                seconds = [f"{1e3 * found[way]:.1f} ms" for way in ("ours", "again")]
                rows.append([graph, name, f"{size:,}", *seconds, f"{faster:.1f}", judged])
                print(*rows[-1], file=sys.stderr, flush=True)
    return rows


def real(folder: Path, held: int) -> Window:
    with ist.read(next(folder.glob("edges*.gz")), directed=True, parallel="drop", weight="none") as graph:
        return window(graph, min(held, graph.edges // 2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="*", default=["kron20", "kron22", "rmat22"])
    parser.add_argument("--real", nargs="*", type=Path, default=[], help="folders with edges*.gz")
    parser.add_argument("--sizes", nargs="+", type=int, default=[1_000, 10_000, 100_000])
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--only", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--folder", type=Path, help="where graphs are made and stay; default: a temporary folder")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        held = options.batches * max(options.sizes)
        cuts = {}
        for name in options.graphs:
            with make(folder, name) as graph:
                cuts[name] = window(graph, held)
        cuts |= {each.name: real(each, held) for each in options.real}
        if "updates" in options.only:
            rows = [
                [
                    "graph",
                    "changes a second, 100,000 at a time",
                    "reading, of lists without gaps",
                    "memory, of theirs",
                    "opening",
                ]
            ]
            for name, cut in cuts.items():
                found = updates(cut, options.batches, options.threads)
                shown = [
                    f"{found['changes'] / 1e6:.2f} M",
                    f"{found['reading']:.2f}",
                    f"{found['memory']:.2f}",
                    f"{found['open']:.2f} s",
                ]
                rows.append([name, *shown])
            print(table(rows), "", sep="\n", flush=True)
        if "single" in options.only:
            rows = [["graph", "one edge, SSSP: median", "99th percentile"]]
            for name, cut in cuts.items():
                found = single(cut, options.threads)
                rows.append([name, f"{found['median']:.2f} ms", f"{found['p99']:.2f} ms"])
            print(table(rows), "", sep="\n", flush=True)
        if "log" in options.only:
            cut = next(iter(cuts.values()))
            costs = logs.report(
                cut, busiest(cut), options.sizes, options.batches, options.threads, Path(scratch) / "logs"
            )
            print(costs, "", sep="\n", flush=True)
        if "recomputed" in options.only:
            print(table(compared(cuts, options.sizes, options.batches, options.threads)), "", sep="\n", flush=True)
        if "peer" in options.only and risgraph.folder() is None:
            print("RisGraph: left out, as RISGRAPH names no folder with its programs.\n")
        elif "peer" in options.only:
            with make(folder, "kron20") as graph:
                print(
                    table(peer(graph, options.sizes, options.batches, Path(scratch), options.threads)),
                    "",
                    sep="\n",
                    flush=True,
                )
        if "peer" in options.only and graphbolt.folder() is None:
            print("GraphBolt: left out, as GRAPHBOLT names no folder with its programs.")
        elif "peer" in options.only:
            with make(folder, "kron20") as graph:
                print(ranks_peer(graph, min(options.batches, 4), Path(scratch), options.threads))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        store, name, *numbers = sys.argv[2:]
        kept, directed, source, batches, size, threads = map(int, numbers)
        serve(store, name, kept, bool(directed), source, batches, size, threads)
    else:
        main()
