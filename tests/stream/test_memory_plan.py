"""The memory budget of a stream (`stream/memory_plan.py`): what programs hold is counted, and a process stays within
it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.faults.memory import BESIDE, MEASURING
from tests.stream.answers import cases
from tests.stream.maintain.test_residuals import by_all, by_place

import isthmus as ist

SCALE = 18  # of the graph whose peak is measured: 262,144 vertices, four times as many edges


def arrays_in(thing: Any, seen: dict[int, int], depth: int = 0) -> dict[int, int]:
    """Bytes of all arrays that can be reached from an object's attributes, by where they lie; those of the graph are
    known before.
    """
    if isinstance(thing, np.ndarray):
        whole = thing
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        seen.setdefault(whole.__array_interface__["data"][0], whole.nbytes)
    elif isinstance(thing, list | tuple | dict):
        for each in thing.values() if isinstance(thing, dict) else thing:
            arrays_in(each, seen, depth)
    elif depth < 4 and type(thing).__module__.startswith("isthmus.") and "graph" not in type(thing).__module__:
        for name, each in vars(thing).items() if hasattr(thing, "__dict__") else ():
            if name not in ("session", "graph", "team"):
                arrays_in(each, seen, depth + 1)
    return seen


def titles() -> list[str]:
    return [case.title for case in cases(0)] + ["by_all", "by_place"]


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("title", titles())
def test_all_arrays_are_counted(title: str, directed: bool) -> None:
    """After batches that change most values, with an older result in use."""
    graph = ist.generate("rmat", scale=11, weights="1:9", seed=5, directed=directed)
    own = {"by_all": by_all(), "by_place": by_place()}
    wanted = own.get(title) or next(case for case in cases(graph.busiest(), alpha=1e-5) if case.title == title).wanted()
    draw = np.random.default_rng(1)
    with ist.stream(graph, [wanted], threads=2) as live:
        held = []
        for _ in range(3):
            held.append(live[title])
            ends = draw.integers(0, graph.vertices, (2, 2000))
            live.apply(inserts=(*ends, draw.integers(1, 9, 2000).astype(np.int32)))
        program, publication = live.batches.programs[title], live.batches.publications[title]
        known = arrays_in([side.arrays() for side in live.graph.sides.values()], {})
        found = arrays_in([program, publication.current, publication._replaced], dict(known))
        counted = program.near_bytes(live.graph.vertices)
        assert 0.2 * counted < sum(found.values()) - sum(known.values()) <= counted


def refused(graph: Any, wanted: list[Any], memory: str) -> str:
    with pytest.raises(ist.BudgetError) as found:
        ist.stream(graph, wanted, memory=memory, threads=2)
    return str(found.value)


def test_the_least_budget_works_and_less_does_not() -> None:
    graph = ist.generate("rmat", scale=14, edge_factor=4, seed=1)
    sets: list[list[Any]] = [
        [ist.BFS(source=0)],
        [ist.PageRank(), ist.CoreNumber()],
        [ist.PersonalizedPageRank([0, 1, 2]), ist.WeaklyConnectedComponents()],
    ]
    least = []
    for wanted in sets:
        said = refused(graph, wanted, "1500kB")
        assert re.search(
            r"a stream on .* needs at least .* near memory \(edges .*, programs and ids .*\); got 1.5 MB. Give "
            r"memory='\d+MB' or",
            said,
        )
        least.append(int(re.findall(r"memory='(\d+)MB'", said)[0]))
        with ist.stream(graph, wanted, memory=f"{least[-1]}MB", threads=2) as live:
            live.apply(inserts=[(0, 1), (1, 2)], add_vertices=[10**6])
            assert live.check() == {}
        assert f"memory='{least[-1]}MB'" in refused(graph, wanted, f"{least[-1] - 1}MB")
    assert least[0] < least[1] < least[2]


STREAMING = """
import sys
import numpy as np
import isthmus as ist
programs = [ist.PageRank(tol=1e-4), ist.WeaklyConnectedComponents(), ist.CoreNumber()]
with ist.stream(sys.argv[1], programs, memory=sys.argv[2], threads=2) as live:
    draw = np.random.default_rng(1)
    for number in range(3):
        inserts = tuple(draw.integers(0, live.graph.vertices, (2, 1000)))
        live.apply(inserts=inserts, add_vertices=[10**8] if number == 2 else None)
"""


def test_the_peak_of_a_process(tmp_path: Path) -> None:
    """With the least budget, whose largest part is what programs hold."""
    store = tmp_path / "large.isthmus"
    ist.generate("rmat", store, scale=SCALE, edge_factor=4, seed=1).close()
    wanted = [ist.PageRank(tol=1e-4), ist.WeaklyConnectedComponents(), ist.CoreNumber()]
    said = refused(ist.open(store), wanted, "40MB")
    least = int(re.findall(r"memory='(\d+)MB'", said)[0])
    assert least > 100, said
    words = [sys.executable, "-c", STREAMING, str(store), f"{least}MB"]
    for _ in range(2):
        command = [sys.executable, "-I", "-S", "-c", MEASURING, str(tmp_path / "peak"), *words]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
        if "compiling" not in done.stdout:  # which takes memory of its own
            break
    code, peak = (tmp_path / "peak").read_text().split()
    assert code == "0", done.stdout
    assert int(peak) * 1024 <= least * 10**6 + BESIDE, (peak, least)
