"""The process of one source tree, for `versions.py`: runs a cell whenever it is asked to, and reports seconds.

    python benchmarks/version_worker.py STORE ALGORITHM OPTIONS

OPTIONS is JSON: `source` and `options` of a call, and for streams `updates` (a file of changes), `size` (changes per
batch) and `batches` (per round). Each line of standard input, {"keep": FILE or null}, is one round; the answer goes to
the file. Only the public interface is used.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import isthmus as ist

TOL = 1e-4  # of PageRank
PAUSE = 0.05  # seconds
TITLES = {
    "bfs": "BFS",
    "sssp": "SSSP",
    "weakly_connected_components": "WeaklyConnectedComponents",
    "pagerank": "PageRank",
    "core_number": "CoreNumber",
    "triangle_count": "TriangleCount",
}
Round = tuple[float, float, Any]  # seconds as reported, seconds by the clock, values


def arguments(algorithm: str, source: int) -> dict[str, Any]:
    if algorithm in ("bfs", "sssp"):
        return {"source": source}
    return {"tol": TOL} if algorithm == "pagerank" else {}


def runs(store: str, algorithm: str, cell: dict[str, Any]) -> Iterator[Round]:
    """A call of the algorithm per round."""
    with ist.open(store) as graph:
        while True:
            start = time.perf_counter()
            result = getattr(ist, algorithm)(graph, **arguments(algorithm, cell["source"]), **cell["options"])
            wall = time.perf_counter() - start
            yield result.summary()["seconds"]["total"], wall, result.values


def batches(store: str, algorithm: str, cell: dict[str, Any]) -> Iterator[Round]:
    """The next batches of a stream per round."""
    program = getattr(ist, TITLES[algorithm])(**arguments(algorithm, cell["source"]))
    with ist.stream(store, [program], **cell["options"]) as live:
        reports = live.follow(cell["updates"], batch=cell["size"])
        while True:
            start = time.perf_counter()
            total = sum(next(reports).seconds["total"] for _ in range(cell["batches"]))
            wall = time.perf_counter() - start
            yield total, wall, live[algorithm].values


def wait_until_idle() -> None:
    """Wait for threads that go on after a round, such as a merge of changes: they would slow down the other tree."""
    used = -math.inf
    while time.process_time() - used > PAUSE / 10:
        used = time.process_time()
        time.sleep(PAUSE)


def main() -> None:
    store, algorithm, cell = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    print(json.dumps({"tree": str(Path(ist.__file__).parent.parent)}), flush=True)
    rounds = (batches if "updates" in cell else runs)(store, algorithm, cell)
    for line in sys.stdin:
        total, wall, values = next(rounds)
        if keep := json.loads(line)["keep"]:
            np.save(keep, np.ma.filled(values))
        wait_until_idle()
        print(json.dumps({"total": total, "wall": wall}), flush=True)


if __name__ == "__main__":
    main()
