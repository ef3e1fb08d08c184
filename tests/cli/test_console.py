"""What people see while they wait."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.cli import console
from isthmus.cli.console import Watch, progress
from isthmus.runtime.trace.iteration import Iteration


def test_share_and_time_left() -> None:
    assert progress(None, 7.0) == ""
    assert progress(0.0, 7.0) == "0 % done, "
    assert progress(0.25, 30.0) == "25 % done, 0:01:30 left, "
    assert progress(1.0, 30.0) == "100 % done, 0:00:00 left, "


class Status:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def update(self, line: str) -> None:
        self.lines.append(line)


def test_a_live_line(monkeypatch: pytest.MonkeyPatch) -> None:
    status, clock = Status(), iter([0.0, 10.0, 20.0, 30.0, 34.0])
    monkeypatch.setattr(console.time, "perf_counter", lambda: next(clock))
    watch = Watch("betweenness_centrality")
    watch._status = status
    for number, done in ((0, 0.25), (1, 0.5), (2, None), (0, 0.5)):
        watch.seen(Iteration(number, 5, 1000, done=done))
    assert [line.split(", iteration")[0] for line in status.lines] == [
        "betweenness_centrality: 25 % done, 0:00:30 left",
        "betweenness_centrality: 50 % done, 0:00:20 left",
        "betweenness_centrality: iteration 3, 5 active, 100 edges/s, 0 B moved, 30 s",
        "betweenness_centrality: 50 % done, 0:00:04 left",  # another pass
    ]


RUNS: dict[str, Any] = {
    "betweenness_centrality": {"sources": list(range(40))},
    "pagerank": {"iterations": 5},
    "label_propagation": {"max_iter": 4},
    "triangle_count": {},
    "local_clustering_coefficient": {},
}


@pytest.mark.parametrize("name", list(RUNS))
def test_programs_that_know_their_work_say_how_much_is_done(name: str, sized: Any) -> None:
    sized(least_table=1, betweenness_batches=(8,), least_buffer=1 << 12)
    seen: list[Any] = []
    ends = np.random.default_rng(1).integers(0, 60, (2, 400))
    graph = ist.read(tuple(ends), directed=False, vertices=60)
    getattr(ist, name)(graph, **RUNS[name], policy="filter", memory="1%", far="ram", watch=seen.append)
    shares = [iteration.done for iteration in seen if iteration.done is not None]
    assert len(shares) >= len(seen) - 1 and len(set(shares)) > 2
    assert shares == sorted(shares)
    assert 0 <= shares[0] < 0.6 and 0.5 < shares[-1] <= 1
