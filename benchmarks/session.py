"""Ten algorithms on one graph: in one session, and as ten calls, in turns.

    python benchmarks/session.py [--graph kron22] [--folder DIR] [--rounds 3] [--memory SIZE]

Prints seconds of each algorithm both ways, what the session loaded, and the ratio of the sums. Answers are compared
first.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from graphs import hub, make

import isthmus as ist
from isthmus.runtime.results.agreement import difference

CALLS: dict[str, dict[str, Any]] = {
    "bfs": {},
    "sssp": {},
    "weakly_connected_components": {},
    "pagerank": {"tol": 1e-4},
    "strongly_connected_components": {},
    "multi_source_bfs": {"many": True},
    "widest_path": {},
    "label_propagation": {"max_iter": 1},
    "core_number": {},
    "personalized_pagerank": {"many": True, "tol": 1e-1},
}


def arguments(name: str, source: Any) -> dict[str, Any]:
    given = dict(CALLS[name])
    if given.pop("many", False):
        return {"sources": [source], **given}
    return {"source": source, **given} if name in ("bfs", "sssp", "widest_path", "php") else given


def timed(work: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="kron22")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory")
    options = parser.parse_args()
    how = {} if options.memory is None else {"memory": options.memory}
    with tempfile.TemporaryDirectory() as scratch:
        graph = make(options.folder or Path(scratch), options.graph)
        source = hub(graph)
        seconds: dict[str, dict[str, list[float]]] = {name: {"calls": [], "session": []} for name in CALLS}
        loaded: dict[str, int] = {}
        opened = 0.0
        for number in range(options.rounds + 1):  # the first compiles, and compares answers
            alone: dict[str, Any] = {}
            for name in CALLS:
                took, alone[name] = timed(partial(getattr(ist, name), graph, **arguments(name, source), **how))
                seconds[name]["calls"].append(took)
            opened, session = timed(partial(ist.session, graph, **how))
            for name in CALLS:
                took, result = timed(partial(getattr(session, name), **arguments(name, source)))
                seconds[name]["session"].append(took)
                loaded[name] = result.summary()["load"]["bytes"]
                if number == 0 and (where := difference(alone[name], result)):
                    raise SystemExit(f"{name}: {where}")
            session.close()
        show(seconds, loaded, opened)


def show(seconds: dict[str, dict[str, list[float]]], loaded: dict[str, int], opened: float) -> None:
    medians = {
        name: {way: statistics.median(times[1:]) for way, times in ways.items()} for name, ways in seconds.items()
    }
    print("| algorithm | own call | in a session | loaded there |\n|---|---|---|---|")
    for name, ways in medians.items():
        print(f"| {name} | {ways['calls']:.3f} s | {ways['session']:.3f} s | {loaded[name] / 1e6:.0f} MB |")
    total = {way: sum(ways[way] for ways in medians.values()) for way in ("calls", "session")}
    ratio = total["session"] / total["calls"]
    print(
        f"\nAll: {total['calls']:.2f} s, in a session {total['session']:.2f} s ({ratio:.2f}); opened in {opened:.4f} s"
    )


if __name__ == "__main__":
    main()
