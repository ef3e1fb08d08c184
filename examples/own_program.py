"""A program of your own: widest paths, the best bottleneck from a source."""

import isthmus as ist


@ist.monotone(initial=0, combine="max", start=2**31, column="capacity")
def widest_path(capacity, weight):
    return min(capacity, weight)


def main() -> None:
    graph = ist.generate("rmat", scale=12, weights="1:1000", seed=3)
    result = ist.run(widest_path(source=0), graph)
    reached = result.values > 0
    print(
        f"{reached.sum()} of {len(result)} vertices reached; the narrowest of their best paths carries "
        f"{result.values[reached].min()}"
    )


if __name__ == "__main__":
    main()
