"""Follow a stream of changes, and print which vertices rose most in PageRank.

    python examples/follow_stream.py [EDGES_WITH_TIMES]

The argument (or the variable ISTHMUS_STREAM) names a list of edges with times, such as SNAP's sx-mathoverflow: `source
target time`, or `op source target time`. Without one, the example makes a small stream of its own, in which one vertex
becomes popular.
"""

import os
import sys
import tempfile
from pathlib import Path

import numpy as np

import isthmus as ist


def own_stream(path: Path) -> None:
    """Links between 500 pages, one per second; in the last third, half of them lead to page 7."""
    draw = np.random.default_rng(1)
    sources, targets = draw.zipf(1.6, 6000) % 500, draw.zipf(1.6, 6000) % 500
    late = np.arange(6000) > 4000
    targets[late & (draw.random(6000) < 0.5)] = 7
    path.write_text(
        "".join(f"{u} {v} {second}\n" for second, (u, v) in enumerate(zip(sources, targets, strict=True)) if u != v)
    )


def main() -> None:
    given = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("ISTHMUS_STREAM")
    with tempfile.TemporaryDirectory() as folder:
        edges, before, workload = (Path(folder) / name for name in ("edges.txt", "before.isthmus", "latest.parquet"))
        if given is None:
            own_stream(edges)
        figures = ist.make_workload(given or edges, workload, batches=5, size=300, initial=before)
        print(f"{figures['earlier']:,} earlier changes, {figures['changes']:,} to follow")
        with ist.stream(before, [ist.PageRank(tol=1e-6)]) as live:
            start = dict(zip(live["pagerank"].vertices.tolist(), live["pagerank"].values.tolist(), strict=True))
            for report in live.follow(workload):
                result = live["pagerank"]
                changes = result.changes()
                gain = changes["new"] - changes["old"]
                most = int(np.argmax(gain))
                print(
                    f"batch {report.number}: {report.counts['inserted']} new edges, {report.counts['deleted']} gone, "
                    f"{1e3 * report.seconds['total']:.1f} ms; {changes['vertex'][most]} rose most, by {gain[most]:.2g}"
                )
            now = dict(zip(result.vertices.tolist(), result.values.tolist(), strict=True))
            risen = sorted(now, key=lambda vertex: now[vertex] - start.get(vertex, 0.0), reverse=True)[:5]
            print(
                "rose most in all:",
                ", ".join(f"{vertex} ({start.get(vertex, 0):.2g} -> {now[vertex]:.2g})" for vertex in risen),
            )
            print("as from scratch:", live.check() == {})


if __name__ == "__main__":
    main()
