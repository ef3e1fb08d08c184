"""What the loop decides between iterations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.devices import cpu
from isthmus.runtime.loop import Loop
from isthmus.runtime.trace.iteration import Iteration
from isthmus.runtime.trace.trace import Trace


@pytest.mark.parametrize(("edges", "bound"), [(10, True), (49, True), (51, False), (10**6, False)])
def test_a_small_iteration_that_waited_says_little_of_a_large_one(edges: int, bound: bool) -> None:
    """It waited five times as long as it worked: true of five times its edges at most."""
    loop = object.__new__(Loop)
    loop.trace = Trace()
    assert not loop.link_bound(edges)
    loop.trace.append(Iteration(0, 1, 10, 0.06, wait=0.05, kernel=0.01))
    assert loop.link_bound(edges) == bound


def test_a_run_does_not_see_the_activity_of_the_run_before(tmp_path: Path, sized: Any) -> None:
    """Scaph asks whether the useful edges of a partition have grown; before the first iteration there were none."""
    sized(smallest_partition=4096)
    hub, others = np.zeros(400, np.int64), np.repeat(np.arange(1, 61), 10)
    edges = (np.concatenate([hub, others, np.arange(2000)]), np.arange(3000) % 2000)
    how: dict[str, Any] = {"device": "model:rtx2080ti", "policy": "scaph", "memory": "50%", "threads": 1}
    with ist.ingest(edges, tmp_path / "g.isthmus") as graph, ist.session(graph, **how) as session:
        first, second = (session.bfs(0, depth_limit=1).summary()["engines"] for _ in range(2))
        assert set(first) == {"filter"}, "40 % of the partition, and growing"
        assert second == first


def test_a_single_pass_keeps_no_partitions(tmp_path: Path, sized: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sized(least_buffer=16 << 10)
    monkeypatch.setattr(cpu, "ENOUGH", 16 << 10)
    graph = ist.generate("rmat", tmp_path / "g.isthmus", scale=15, seed=1)
    once, often = ist.weakly_connected_components(graph, memory="90%"), ist.pagerank(graph, memory="90%", tol=1e-2)
    assert once.summary()["memory"]["split"]["cache"] == 0
    assert often.summary()["memory"]["split"]["cache"] > 0
