"""What a run of a tree calls and loads, counted in a process of its own: `--calls` and `--imports` of `tests/house.py`.

Calls: the run is `isthmus.bfs` from the middle of a path of a million vertices, from disk, with the recipe auto and a
tenth of the edges near. Every iteration reads one task, which the trace confirms. Counted are entries into functions of
the package, in all threads (sys.setprofile, threading.setprofile). A generator counts each time it goes on; lambdas,
comprehensions and compiled kernels do not count. One iteration is the difference of two runs whose depth limits differ
by one. The rest of the run (options, session, budget, opening, result) is what remains without its iterations.
Both are medians, after runs that warm up.

Imports: a process searches a small graph on the processor, in memory or from disk. Counted are the loaded modules of
the package with cuda, card or gpu in their full name.
"""

from __future__ import annotations

import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

DEPTH, REPEATS = 4, 5
OF_GPUS = ("cuda", "card", "gpu")
Row = tuple[str, int, list[str]]


# ---- in the process that asks


def calls(src: Path) -> Iterator[Row]:
    found = asked(src, "calls")
    for what in ("iteration", "rest"):
        each = collections.Counter(found[what])
        name = {"iteration": "one iteration", "rest": "the rest of the run"}[what]
        yield f"calls, {name}", each.total(), [f"{count:>4} {place}" for place, count in each.most_common()]
        yield f"different functions, {name}", len(each), []
        yield f"files, {name}", len({place.split(":")[0] for place in each}), []


def imports(src: Path) -> Iterator[Row]:
    for way in ("in memory", "from disk"):
        names = asked(src, "imports", way)
        yield f"modules for GPUs that a search {way} loads", len(names), names


def asked(src: Path, *words: str) -> Any:
    """The answer of a process that uses the package of a tree."""
    command = [sys.executable, __file__, str(src), *words]
    environment = {**os.environ, "PYTHONPATH": str(src)}
    return json.loads(subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout)


# ---- in the process of the tree


class Calls:
    """Counts the functions of a package that work enters, by file and name."""

    def __init__(self, package: Path) -> None:
        self._package, self._entered = f"{package}/", list[Any]()

    def _note(self, frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(self._package) and not code.co_name.startswith("<"):
            self._entered.append(code)

    def of(self, work: Callable[[], Any]) -> tuple[collections.Counter[str], Any]:
        self._entered.clear()
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            result = work()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
        names = (f"{code.co_filename.removeprefix(self._package)}: {code.co_qualname}" for code in self._entered)
        return collections.Counter(names), result


def search(graph: Any, depth: int) -> Any:
    """A search from disk of so many levels."""
    import isthmus as ist

    return ist.bfs(graph, graph.vertices // 2, depth_limit=depth, memory="10%", policy="auto", threads=2)


def iterations(result: Any, depth: int) -> int:
    """How many iterations a search had, after it is clear that each read one task."""
    tasks = [sum(use["tasks"] for use in each.engines.values()) for each in result.trace.iterations]
    assert tasks == [1] * (depth + 1), f"expected {depth + 1} iterations with a task each, got {tasks}"
    return len(tasks)


def count_calls() -> dict[str, dict[str, int]]:
    import isthmus as ist

    counter, found = Calls(Path(ist.__file__).parent), []
    with (
        tempfile.TemporaryDirectory() as folder,
        ist.generate("path", Path(folder) / "path.isthmus", vertices=1_000_000) as graph,
    ):
        for depth in (DEPTH, DEPTH + 1, DEPTH):
            search(graph, depth)
        for _ in range(REPEATS):
            fewer, result = counter.of(lambda: search(graph, DEPTH))
            count = iterations(result, DEPTH)
            more, result = counter.of(lambda: search(graph, DEPTH + 1))
            assert iterations(result, DEPTH + 1) == count + 1
            one = {name: more[name] - fewer[name] for name in more | fewer}
            found.append((one, {name: fewer[name] - count * one[name] for name in one}))
    ones, rests = zip(*found, strict=True)
    return {"iteration": medians(ones), "rest": medians(rests)}


def medians(found: Any) -> dict[str, int]:
    names = sorted(set().union(*found))
    middle = {name: round(statistics.median(each.get(name, 0) for each in found)) for name in names}
    return {name: count for name, count in middle.items() if count > 0}


def loaded(way: str) -> list[str]:
    import isthmus as ist

    with (
        tempfile.TemporaryDirectory() as folder,
        ist.generate("rmat", Path(folder) / "small.isthmus", scale=10) as graph,
    ):
        ist.bfs(graph, 0, device="cpu", **({"memory": "10%"} if way == "from disk" else {}))
    return sorted(name for name in sys.modules if name.startswith("isthmus.") and any(word in name for word in OF_GPUS))


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the budget is below the least that works
    src, what, *more = sys.argv[1:]
    import isthmus

    assert Path(isthmus.__file__).is_relative_to(src), f"expected Isthmus from {src}, got it from {isthmus.__file__}"
    print(json.dumps(count_calls() if what == "calls" else loaded(*more)))
