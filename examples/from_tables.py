"""From a data frame to a data frame: components of a table of pairs, with string ids."""

import pyarrow as pa

import isthmus as ist


def main() -> None:
    pairs = pa.table({"source": ["ann", "bob", "dan"], "target": ["bob", "cid", "eve"]})
    graph = ist.read(pairs)
    labels = ist.weakly_connected_components(graph).to_arrow()
    for row in labels.to_pylist():
        print(f"{row['vertex']} belongs to {row['labels']}'s group")


if __name__ == "__main__":
    main()
