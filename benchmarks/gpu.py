"""Recipes on a GPU of this machine: answers verified against the processor's, measured seconds beside the modelled
ones.

    python benchmarks/gpu.py [--device cuda:0] [--graphs rmat18 rmat20] [--memory 10%] [--rounds 3] [--folder DIR]

For anyone with a GPU: the output is Markdown, ready to be pasted into an issue. Every answer is compared before its
time counts; a cell that differs says WRONG. Seconds are of the whole run after its set-up. Bytes are those that crossed
the link. "from disk" are runs whose edges stay in their store. Streams change a percent of the edges in every batch;
their answers are compared after each, and seconds are those of a batch. With NUMBA_ENABLE_CUDASIM=1 it runs in
numba-cuda's simulator, on tiny graphs (`--graphs rmat5`), where seconds mean nothing.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from graphs import hub, make
from harness import table

import isthmus as ist
from isthmus.kernels.compile import cuda_module
from isthmus.memory import format_size

RECIPES = ("filter", "subway", "emogi", "emogi:hot", "unified", "grus", "scaph", "hytgraph", "auto")
FROM_DISK = ("filter", "subway", "emogi")  # by copies of partitions, of packed lists, and in place of zero-copy
STREAMS = ("grapin", "grapin-zc", "grapin-page", "auto")
BATCHES = 3
TOL = 1e-6


def algorithms(graph: Any) -> dict[str, Any]:
    source = hub(graph)
    return {
        "bfs": lambda **how: ist.bfs(graph, source, **how),
        "sssp": lambda **how: ist.sssp(graph, source, **how),
        "weakly_connected_components": lambda **how: ist.weakly_connected_components(graph, **how),
        "pagerank": lambda **how: ist.pagerank(graph, tol=TOL, **how),
    }


def same(found: Any, expected: Any) -> bool:
    """Whether two answers agree: exactly, or within the tolerance for ranks."""
    a, b = found.filled(), expected.filled()
    return bool(np.array_equal(a, b)) if a.dtype.kind in "iu" else bool(np.abs(a - b).sum() <= 2 * TOL)


def cell(run: Any, expected: Any, options: argparse.Namespace, **how: Any) -> list[str]:
    seconds, result = [], None
    for _ in range(options.rounds + 1):  # the first compiles
        result = run(device=options.device, **how)
        seconds.append(result.summary()["seconds"]["iterate"])
    facts = result.summary()
    verdict = "" if same(result, expected) else " WRONG"
    return [
        f"{statistics.median(seconds[1:]):.4f}{verdict}",
        f"{facts['seconds']['modelled']:.4f}",
        format_size(facts["transfer"]["bytes"]),
        f"{facts['transfer']['requests']:,}",
        f"{facts['iterations']:,}",
    ]


def ways(memory: str) -> dict[str, dict[str, Any]]:
    """How runs reach their edges, by the name of a row."""
    return {
        "resident": {"policy": "filter", "memory": None},
        **{recipe: {"policy": recipe, "memory": memory} for recipe in RECIPES},
        **{f"{recipe} from disk": {"policy": recipe, "memory": memory, "far": "disk"} for recipe in FROM_DISK},
    }


def streamed(graph: Any, options: argparse.Namespace, updates: Path) -> list[list[str]]:
    """A row for every recipe of streams: shortest paths, kept current while edges change."""
    rows, size, program = [], max(2, graph.edges // 100), ist.SSSP(source=hub(graph))
    ist.make_workload(graph, updates, batches=BATCHES, size=size, seed=1, overwrite=True)
    for policy in STREAMS:
        seconds, right, moved, requests = [], True, 0, 0
        with (
            ist.stream(graph, [program], device=options.device, memory=options.memory, policy=policy) as there,
            ist.stream(graph, [program], device="cpu") as here,
        ):
            for found, _ in zip(there.follow(updates, batch=size), here.follow(updates, batch=size), strict=True):
                seconds.append(found.seconds["total"])
                right = right and same(there["sssp"].result(), here["sssp"].result())
                moved, requests = moved + found.transfer.bytes, requests + found.transfer.requests
        verdict = "" if right else " WRONG"
        rows.append([policy, f"{statistics.median(seconds):.4f}{verdict}", format_size(moved), f"{requests:,}"])
    return rows


def measured(name: str, options: argparse.Namespace, folder: Path) -> bool:
    """Print the tables of a graph; whether all answers were right."""
    graph = make(folder, name)
    head = ["algorithm", "recipe", "seconds", "modelled", "moved", "requests", "iterations"]
    rows = [head]
    for algorithm, run in algorithms(graph).items():
        expected = run()
        for way, how in ways(options.memory).items():
            rows.append([algorithm, way, *cell(run, expected, options, **how)])
    print(
        f"\n## {name}: {graph.vertices:,} vertices, {graph.edges:,} edges, budget {options.memory}\n\n{table(rows)}",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as temporary:
        streams = streamed(graph, options, Path(temporary) / "updates.parquet")
    print(
        f"\nsssp in a stream, {BATCHES} batches\n\n{table([['recipe', 'seconds', 'moved', 'requests'], *streams])}",
        flush=True,
    )
    return not any("WRONG" in row[2] for row in rows) and not any("WRONG" in row[1] for row in streams)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--graphs", nargs="*", default=["rmat18", "rmat20"])
    parser.add_argument("--memory", default="10%")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    gpus, trouble = cuda_module.found()
    if trouble:
        print(f"{options.device}: {trouble}", file=sys.stderr)
        return 2
    print(
        f"Isthmus {ist.__version__}, Python {platform.python_version()}, "
        f"{', '.join(f'cuda:{g.number} {g.name}' for g in gpus)}"
    )
    print(
        "Modelled seconds are those of this GPU if `isthmus calibrate --device` has measured it, else those of an RTX "
        "2080 Ti on PCIe 3."
    )
    with tempfile.TemporaryDirectory() as temporary:
        right = [measured(name, options, options.folder or Path(temporary)) for name in options.graphs]
    print("\nAll answers are those of the processor." if all(right) else "\nSome answers are WRONG.")
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
