"""PageRank on a graph whose edges stay on disk, in a tenth of the memory they take."""

import tempfile
from pathlib import Path

import isthmus as ist


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        graph = ist.generate("rmat", Path(folder) / "web.isthmus", scale=16, seed=1)
        result = ist.pagerank(graph, tol=1e-6, memory="10%")
        summary = result.summary()
        top = result.values.argsort()[-3:][::-1]
        print("highest ranks:", ", ".join(f"{result.vertices[v]} ({result.values[v]:.2e})" for v in top))
        print(
            f"error at most {summary['result']['error_bound']:.1e}; read the edges "
            f"{summary['transfer']['ratio']:.1f} times"
        )


if __name__ == "__main__":
    main()
