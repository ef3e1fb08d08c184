"""Who connects a network, and who is near to whom: many sources share each reading of the edges, from disk in little
memory.
"""

import tempfile
from pathlib import Path

import numpy as np

import isthmus as ist


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        graph = ist.generate("rmat", Path(folder) / "g.isthmus", scale=13, seed=5)
        small = {"memory": "10%", "policy": "filter"}
        between = ist.betweenness_centrality(graph, k=32, **small)
        top = np.argsort(between.values)[::-1][:4].tolist()
        print("most shortest paths lead through", ", ".join(f"{v} ({between.values[v]:.1%})" for v in top))
        print(f"32 sources took {between.summary()['transfer']['ratio']:.0f} readings of the edges")
        ranks = ist.personalized_pagerank(graph, sources=top, **small)
        for source in top:
            order = np.argsort(ranks[f"pagerank_{source}"])[::-1]
            print(f"nearest to {source}:", *[v for v in order[:5].tolist() if v != source][:4])
        print(f"{len(top)} sources took {ranks.summary()['transfer']['ratio']:.0f} readings of the edges")
        graph.close()


if __name__ == "__main__":
    main()
