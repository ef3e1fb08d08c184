"""Built-in algorithms written again: a program of your own is compiled into the same loops, so it takes the same time.

Where the edges are all in memory some built-ins have kernels of their own besides (BFS, shortest paths, components);
`benchmarks/inmemory.py` shows what those are worth.
"""

import statistics
import tempfile

import numpy as np

import isthmus as ist


@ist.monotone(initial=np.inf, combine="min", column="distance")
def shortest(distance, weight):
    return distance + weight


@ist.monotone(initial=-np.inf, combine="max", start=np.inf, column="width")
def widest(width, weight):
    return min(width, weight)


@ist.monotone(initial=np.inf, combine="min", column="distance")
def hops(distance):
    return distance + 1


@ist.monotone(initial="vertex", combine="min", column="labels")
def smallest(label):
    return label


@ist.accumulative(initial=0.15, threshold=1e-6, column="pagerank")
def rank(delta, degree, alpha=0.85):
    return alpha * delta / degree


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        graph = ist.generate("rmat", f"{folder}/graph.isthmus", scale=15, weights="1:255", seed=3)
        for name, mine, builtin, memory in (
            ("widest paths, in memory", widest, ist.widest_path, None),
            ("shortest paths, from disk", shortest, ist.sssp, "25%"),
        ):
            seconds: list[list[float]] = [[], []]
            for _ in range(6):
                results = [ist.run(mine(source=0), graph, memory=memory), builtin(graph, source=0, memory=memory)]
                assert np.array_equal(results[0].values, results[1].values)
                for taken, result in zip(seconds, results, strict=True):
                    taken.append(result.summary()["seconds"]["iterate"])
            own, theirs = (statistics.median(taken[1:]) * 1e3 for taken in seconds)
            print(f"{name}: mine {own:.1f} ms, built-in {theirs:.1f} ms, equal answers")


if __name__ == "__main__":
    main()
