"""Who belongs together: communities, dense cores, clustering and the skeleton of a graph, from disk in little
memory.
"""

import tempfile
from pathlib import Path

import isthmus as ist


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        graph = ist.generate("rmat", Path(folder) / "g.isthmus", scale=14, weights="1:100", seed=5)
        small = {"memory": "10%", "policy": "filter"}
        labels = ist.label_propagation(graph, max_iter=10, **small).summary()["result"]
        print(f"{labels['communities']} communities, the largest of {labels['largest']} vertices")
        cores = ist.core_number(graph, **small).summary()["result"]
        print(
            f"the densest core has {cores['in_largest']} vertices with {cores['largest']} edges each among themselves"
        )
        triangles = ist.triangle_count(graph, **small).summary()["result"]["triangles"]
        clustering = ist.local_clustering_coefficient(graph, **small).summary()["result"]["average"]
        print(f"{triangles} triangles; {clustering:.1%} of a vertex's neighbours are joined on average")
        forest = ist.minimum_spanning_forest(graph, **small)
        print(f"{len(forest)} edges of total weight {forest.summary()['result']['total_weight']} hold it together")
        distances = ist.multi_source_bfs(graph, sources=[0, 1, 2, 3], **small)
        print(f"four searches in {distances.summary()['transfer']['ratio']:.1f} readings of the edges")
        graph.close()


if __name__ == "__main__":
    main()
