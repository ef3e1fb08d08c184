"""Launches on a modelled device: each reads what it found, and every run counts the same, whatever the threads do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus import sizes
from isthmus.policies.recipes import RECIPES
from isthmus.runtime.loop import Loop

DEVICE = "model:rtx2080ti"
SMALL = {  # so that a small graph has many tasks and pieces, several buffers, sparse and dense frontiers
    "modelled_buffer": 4 << 10,
    "smallest_partition": 2 << 10,
    "piece": 200,
    "alone": 0,
    "smallest_queue": 128,
    "cache_vertices": 100,
}


@ist.monotone(initial="vertex", combine="min", column="label")
def smallest(label):  # type: ignore[no-untyped-def]
    return label


@ist.accumulative(threshold=1e-3)
def spread(delta, degree, alpha=0.8):  # type: ignore[no-untyped-def]
    return alpha * delta / degree


INTEGER: dict[str, Callable[..., Any]] = {
    "bfs": lambda graph, **how: ist.bfs(graph, 5, **how),
    "sssp": lambda graph, **how: ist.sssp(graph, 5, **how),
    "widest path": lambda graph, **how: ist.widest_path(graph, 5, **how),
    "labels": lambda graph, **how: ist.run(smallest, graph, **how),
    "components": ist.weakly_connected_components,
    "strong components": ist.strongly_connected_components,
    "searches": lambda graph, **how: ist.multi_source_bfs(graph, [5, 6, 7], **how),
    "cores": ist.core_number,
    "communities": lambda graph, **how: ist.label_propagation(graph, 3, **how),
    "forest": ist.minimum_spanning_forest,
}
FLOATING: dict[str, Callable[..., Any]] = {
    "pagerank": lambda graph, **how: ist.pagerank(graph, tol=1e-2, **how),
    "katz": lambda graph, **how: ist.katz(graph, alpha=1e-4, tol=1e-3, **how),
    "php": lambda graph, **how: ist.php(graph, 5, tol=1e-2, **how),
    "spread": lambda graph, **how: ist.run(spread, graph, **how),
}


@pytest.fixture(scope="module")
def graph() -> Iterator[Any]:
    with ist.generate("rmat", scale=10, seed=3, weights="1:40", directed=True) as graph:
        yield graph


def counts(result: Any) -> dict[str, Any]:
    """All that a run counts, and the seconds that follow from it."""
    facts = result.summary()
    facts = {
        "modelled": facts["seconds"]["modelled"],
        **{name: facts[name] for name in ("iterations", "transfer", "engines", "cache")},
    }
    return {**facts, "active": [(each.active_vertices, each.active_edges, each.modelled) for each in result.trace]}


@pytest.mark.parametrize("policy", [*RECIPES, "scaph:hbase", "unified:read-mostly"])
@pytest.mark.parametrize("program", INTEGER)
def test_integer_programs_count_the_same_in_every_run(graph: Any, program: str, policy: str) -> None:
    with sizes.using(**SMALL):
        first, *others = (
            counts(INTEGER[program](graph, device=DEVICE, policy=policy, memory="60%", threads=threads))
            for threads in (1, 3, 3)
        )
    assert others == [first] * 2


def test_near_memory_is_split_the_same_for_any_number_of_threads(graph: Any) -> None:
    """The card has one frontier, however many queues the host's threads have."""
    one, three = (
        ist.sssp(graph, 5, device=DEVICE, memory="500KB", policy="hytgraph", threads=threads) for threads in (1, 3)
    )
    assert one.summary()["memory"]["split"] == three.summary()["memory"]["split"]


@pytest.mark.parametrize("policy", ["filter", "subway", "scaph", "hytgraph", "auto"])
@pytest.mark.parametrize("program", FLOATING)
def test_sums_in_floating_point_count_nearly_the_same(graph: Any, program: str, policy: str) -> None:
    """The order of additions differs with two threads, and what is rounded may be above a threshold or below."""
    with sizes.using(**SMALL):
        one, two = (
            FLOATING[program](graph, device=DEVICE, policy=policy, memory="60%", threads=threads).summary()
            for threads in (1, 2)
        )
    assert two["transfer"]["bytes"] == pytest.approx(one["transfer"]["bytes"], rel=0.01)


@pytest.fixture(scope="module")
def grid() -> Iterator[Any]:
    with ist.generate("grid", rows=100, columns=100) as graph:
        yield graph


@pytest.mark.parametrize("policy", ["filter", "emogi", "unified", "grus"])
def test_a_synchronous_iteration_carries_a_label_one_edge_far(grid: Any, policy: str) -> None:
    """From corner to corner it is 198 edges, and the last iteration finds nothing. From a task to a later one a label
    goes on.
    """
    result = ist.run(smallest, grid, device=DEVICE, policy=policy, memory="60%")
    assert len(result.trace) == 199 if policy != "filter" else 190 < len(result.trace) < 199
    assert not result.values.any()


def test_each_task_reads_what_the_tasks_before_it_wrote(graph: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow model of launches, edge by edge, has as many active vertices in every iteration."""
    iterations: list[list[Any]] = []
    ordered = Loop.ordered
    monkeypatch.setattr(
        Loop, "ordered", lambda self, tasks, frontier: iterations.append(tasks) or ordered(self, tasks, frontier)
    )
    with sizes.using(**{**SMALL, "modelled_buffer": 8 << 10}):  # so that each task is one delivery
        trace = ist.run(smallest, graph, device=DEVICE, policy="filter", memory="60%", threads=2).trace
    offsets, targets = graph.store.read("out.offsets").astype(np.int64), graph.store.read("out.targets")
    tails = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    labels, active, seen = np.arange(offsets.size - 1), np.ones(offsets.size - 1, bool), []
    for tasks in iterations:
        seen.append(int(active.sum()))
        before = labels.copy()
        for task in tasks:
            cuts = task.side.partitions.cuts
            arcs = np.concatenate([np.arange(cuts[p], cuts[p + 1]) for p in task.partitions])
            arcs = arcs[active[tails[arcs]]]
            sent = labels[tails[arcs]]  # all of a launch reads before any of it writes
            np.minimum.at(labels, targets[arcs], sent)
        active = labels < before
    assert [each.active_vertices for each in trace] == seen
    assert len(iterations[0]) > 3 and not active.any()
