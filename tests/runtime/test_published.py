"""The published systems' mechanisms: each does what it is for, so that switching it off shows.

Tests the recipes of `policies/recipes/__init__.py` as `runtime/loop.py` and `devices/model/modelled_clock.py` run
them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.devices.model.managed_memory import ManagedMemory

DEVICE = "model:rtx2080ti"
PUBLISHED = ["filter", "subway", "emogi", "unified", "grus", "scaph", "hytgraph"]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return ist.generate("rmat", tmp_path_factory.mktemp("g") / "g.isthmus", scale=15, seed=3, weights="1:40")


@pytest.fixture(scope="module")
def lattice(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return ist.generate("grid", tmp_path_factory.mktemp("g") / "l.isthmus", rows=120, columns=120, weights="1:9")


def run(
    graph: Any, algorithm: str, policy: str, *off: str, memory: str | None = "20%", device: str = DEVICE, **given: Any
) -> Any:
    given = {"source": 5, **given} if algorithm in ("bfs", "sssp", "php") else given
    given = {"tol": 1e-3, **given} if algorithm in ("pagerank", "php") else given
    return getattr(ist, algorithm)(graph, policy=policy, memory=memory, device=device, without=off, **given)


def ratio(result: Any) -> float:
    return float(result.summary()["transfer"]["ratio"])


def modelled(result: Any) -> float:
    return float(result.summary()["seconds"]["modelled"])


def tasks(result: Any, engine: str) -> int:
    return int(result.summary()["engines"].get(engine, {"tasks": 0})["tasks"])


# HyTGraph


def test_hytgraph_uses_all_three_engines(graph: Any) -> None:
    assert {"filter", "compaction", "zero_copy"} <= set(run(graph, "sssp", "hytgraph").summary()["engines"])


def test_recomputing_a_loaded_task_saves_iterations_and_bytes(graph: Any) -> None:
    twice, once = run(graph, "pagerank", "hytgraph"), run(graph, "pagerank", "hytgraph", "recompute")
    assert len(twice.trace) < 0.8 * len(once.trace)
    assert ratio(twice) < 0.8 * ratio(once)


def test_combination_makes_few_tasks_of_many_partitions(graph: Any) -> None:
    together, apart = run(graph, "pagerank", "hytgraph"), run(graph, "pagerank", "hytgraph", "combine")
    assert tasks(together, "filter") / len(together.trace) < 0.5 * tasks(apart, "filter") / len(apart.trace)
    first = together.trace.iterations[0]
    assert first.engines["filter"]["tasks"] >= first.partitions["filter"] / 4, "at most four partitions in a task"
    assert modelled(together) < modelled(apart)


def test_the_vertex_cache_serves_what_is_used_often(graph: Any) -> None:
    kept, none = run(graph, "sssp", "hytgraph"), run(graph, "sssp", "hytgraph", "cache")
    assert kept.summary()["cache"]["hit_edges"] > 0 == none.summary()["cache"]["hit_edges"]
    assert ratio(kept) < ratio(none)
    assert tasks(run(graph, "bfs", "hytgraph"), "cache") == 0, "a search in steps uses every list once"


def test_in_hub_order_the_vertex_cache_saves_bytes_of_pagerank_too() -> None:
    """The hubs, which it holds, then fill partitions of their own; elsewhere filter brings them with their neighbours
    all the same.
    """
    hubs_first = ist.generate("rmat", scale=15, seed=3, order="hub")
    assert ratio(run(hubs_first, "pagerank", "hytgraph")) < 0.95 * ratio(
        run(hubs_first, "pagerank", "hytgraph", "cache")
    )


@pytest.fixture
def ordered(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, list[Any]]]:
    """The tasks of every iteration as they are ordered, and the loop that orders them."""
    from isthmus.runtime.loop import Loop

    seen: list[tuple[Any, list[Any]]] = []
    order = Loop.ordered

    def spy(self: Any, given: Any, frontier: Any) -> Any:
        found = order(self, given, frontier)
        assert {id(task) for task in found} == {id(task) for task in given}
        names = [task.engine.name for task in found]
        assert self.recipe.order == "plain" or names == sorted(names, key=["filter", "zero_copy", "compaction"].index)
        whole = [task for task in found if task.engine.name == "filter"]
        seen.append(
            (
                [content(self, frontier.rows(*bounds(task))) for task in whole],
                [hubs(self, *bounds(task)) for task in whole],
            )
        )
        return found

    def bounds(task: Any) -> tuple[int, int]:
        parts = task.side.partitions
        return int(parts.first[task.partitions[0]]), int(parts.last[task.partitions[-1]])

    def content(loop: Any, rows: Any) -> float:
        deltas = loop.program.contribution(loop.state)
        return 0.0 if deltas is None else float(deltas[rows].sum())

    def hubs(loop: Any, first: int, last: int) -> float:
        """The mean out-degree x in-degree of its vertices, in an undirected graph."""
        return float(np.mean(loop.facts.lists.degrees()[first:last].astype(float) ** 2))

    monkeypatch.setattr(Loop, "ordered", spy)
    return seen


@pytest.mark.parametrize("algorithm", ["pagerank", "php"])
def test_order_by_contribution_goes_with_the_larger_deltas(graph: Any, ordered: Any, algorithm: str) -> None:
    """The tasks that are fetched are the same, and the first ones bring more."""

    def falling(*off: str) -> float:
        """Of all tasks, how many bring no more than the one before."""
        ordered.clear()
        run(graph, algorithm, "hytgraph", "cache", *off, tol=1e-2)
        return float((np.concatenate([np.diff(deltas) for deltas, _ in ordered]) <= 0).mean())

    assert falling() > 0.95, "hubs that are cut count in each of their partitions"
    assert falling("order") < 0.9


@pytest.mark.parametrize("algorithm", ["sssp", "bfs", "components"])
def test_searches_and_components_run_hubs_first(shuffled: Any, ordered: Any, algorithm: str) -> None:
    """In hub order, whatever the ids; partitions of hubs have the fewest vertices, so counting active ones would run
    them last.
    """

    def correlation(order: str) -> float:
        ordered.clear()
        graph = ist.read(shuffled, directed=False, order=order)
        how: dict[str, Any] = {"policy": "hytgraph", "memory": "25%", "device": DEVICE}
        ist.run(smallest(), graph, **how) if algorithm == "components" else getattr(ist, algorithm)(graph, 5, **how)
        most = max((hubs for _, hubs in ordered), key=len)
        assert len(most) > 20
        ranks = np.argsort(np.argsort(-np.array(most)))
        return float(np.corrcoef(ranks, np.arange(len(most)))[0, 1])

    assert correlation("hub") > 0.9
    assert abs(correlation("natural")) < 0.4


@pytest.fixture(scope="module")
def shuffled() -> Any:
    """Edges of a graph whose ids say nothing about degrees."""
    graph = ist.generate("rmat", scale=14, seed=3)
    ids = np.random.default_rng(1).permutation(graph.vertices)
    degrees = np.diff(np.asarray(graph.store.read("out.offsets")).astype(np.int64))
    sources, targets = (
        np.repeat(np.arange(graph.vertices), degrees),
        np.asarray(graph.store.read("out.targets")).astype(np.int64),
    )
    once = sources < targets
    return ids[sources[once]], ids[targets[once]]


@ist.monotone(initial="vertex", combine="min", column="label")
def smallest(label):  # type: ignore[no-untyped-def]
    return label


def test_natural_order_is_noted_where_hubs_should_come_first(lattice: Any) -> None:
    text = "this graph is in natural order, so hytgraph cannot run hubs first, as published; ingest it with order='hub'"

    def notes(graph: Any = lattice, policy: str = "hytgraph", *off: str) -> list[str]:
        return [note for note in run(graph, "sssp", policy, *off).trace.notes if "hub" in note]

    planned = ist.plan(ist.sssp, lattice, source=5, memory="20%", policy="hytgraph").summary()["notes"]
    assert notes() == [text] and text in planned
    assert notes(ist.generate("grid", rows=40, columns=40, weights="1:9", order="hub")) == []
    assert notes(lattice, "hytgraph", "order") == notes(lattice, "scaph") == notes(lattice, "auto") == []
    assert not any("hub" in note for note in ist.sssp(lattice, 5, policy="hytgraph").trace.notes), (
        "edges that are all near need no order"
    )


@pytest.mark.parametrize("policy", ["hytgraph", "subway"])
def test_php_runs_again_what_was_loaded(graph: Any, policy: str) -> None:
    again, once = run(graph, "php", policy, tol=1e-2), run(graph, "php", policy, "recompute", tol=1e-2)
    assert ratio(again) < 0.8 * ratio(once)


def test_overlap_hides_what_can_be_hidden(graph: Any) -> None:
    assert modelled(run(graph, "pagerank", "filter")) < modelled(run(graph, "pagerank", "filter", "overlap"))


# Scaph


def test_scaph_moves_high_value_whole_and_the_rest_packed(graph: Any) -> None:
    engines = run(graph, "sssp", "scaph").summary()["engines"]
    assert engines["filter"]["bytes"] and engines["compaction"]["bytes"]
    assert set(run(graph, "sssp", "scaph:hvsp").summary()["engines"]) <= {"filter", "cache"}
    assert set(run(graph, "sssp", "scaph:lvsp").summary()["engines"]) == {"compaction"}
    assert set(run(graph, "sssp", "scaph:lbase").summary()["engines"]) <= {"filter", "cache"}


def test_whole_partitions_stay_without_the_queue(graph: Any) -> None:
    stays, goes = (
        run(graph, "sssp", "scaph:lbase", memory="60%"),
        run(graph, "sssp", "scaph:lbase", "cache", memory="60%"),
    )
    assert stays.summary()["cache"]["hit_edges"] > 0 == goes.summary()["cache"]["hit_edges"]
    assert ratio(stays) < ratio(goes)


def test_variants_bring_whole_partitions_one_by_one(graph: Any) -> None:
    """As the queue does, so that switching it off changes nothing else."""
    queued, plain = (
        run(graph, "pagerank", "scaph:hvsp", max_iter=1),
        run(graph, "pagerank", "scaph:lbase", "cache", max_iter=1),
    )
    assert tasks(plain, "filter") >= tasks(queued, "filter") > 4


@pytest.mark.parametrize("device", [DEVICE, "cpu"])
@pytest.mark.parametrize("policy", PUBLISHED)
def test_no_published_system_turns_a_search_round(graph: Any, policy: str, device: str) -> None:
    """Nor does switching a part off make it."""
    edges = {
        run(graph, "bfs", policy, *off, device=device).trace.total("active_edges")
        for off in ((), ("recompute",), ("queue",))
    }
    assert min(edges) >= 0.99 * graph.arcs, edges


@pytest.mark.parametrize("device", [DEVICE, "cpu"])
def test_auto_turns_a_search_round_unless_that_is_switched_off(graph: Any, device: str) -> None:
    turned, plain = (
        run(graph, "bfs", "auto", *off, device=device).trace.total("active_edges") for off in ((), ("bottom_up",))
    )
    assert turned < 0.7 * graph.arcs <= 0.99 * graph.arcs <= plain


@pytest.mark.parametrize("policy", PUBLISHED)
def test_no_published_system_sweeps(graph: Any, policy: str) -> None:
    """From disk they send deltas, with fewer and fewer active vertices, as the papers' PageRank does."""
    last = run(graph, "pagerank", policy, device="cpu").trace.iterations[-1]
    assert last.active_vertices < 0.9 * graph.vertices


def test_auto_sweeps_unless_that_is_switched_off(graph: Any) -> None:
    sweeps, deltas = (run(graph, "pagerank", "auto", *off, device="cpu") for off in ((), ("sweeps",)))
    assert all(each.active_vertices == graph.vertices for each in sweeps.trace)
    assert deltas.trace.iterations[-1].active_vertices < 0.9 * graph.vertices
    assert np.abs(sweeps.values - deltas.values).sum() <= 2e-3


def test_edges_that_are_all_near_have_no_recipe(graph: Any) -> None:
    """PageRank then sweeps under any name, and names a budget for itself where that is too small."""
    near, far = (run(graph, "pagerank", "filter", device="cpu", memory=memory) for memory in (None, "20%"))
    assert near.summary()["policy"] == "resident" and len(near.trace) < 0.7 * len(far.trace)
    with pytest.raises(ist.BudgetError, match="needs at least") as error:
        run(graph, "pagerank", "filter", device="cpu", memory="1KB")
    least = str(error.value).rpartition("memory='")[2].partition("'")[0]
    assert run(graph, "pagerank", "filter", device="cpu", memory=least).summary()["policy"] == "filter"


@pytest.mark.parametrize("policy", ["unified", "grus", "unified:read-mostly"])
@pytest.mark.parametrize("memory", ["1%", "10%", "40%"])
def test_pages_are_part_of_the_budget(graph: Any, monkeypatch: Any, policy: str, memory: str) -> None:
    made: list[int] = []

    class Counted(ManagedMemory):
        def __init__(self, sections: Any, paging: Any, memory: Any) -> None:
            made.append(memory.size)
            super().__init__(sections, paging, memory)

    monkeypatch.setattr("isthmus.devices.model.link.ManagedMemory", Counted)
    facts = run(graph, "sssp", policy, memory=memory).summary()["memory"]
    assert made == [facts["split"]["cache"]] and made[0] >= 4096
    assert facts["near_peak"] <= facts["budget"]


def test_a_budget_that_keeps_nothing_says_so(graph: Any) -> None:
    notes = run(graph, "sssp", "scaph", memory="1%").summary()["notes"]
    assert any("no room to keep edges near" in note for note in notes) and any(
        "no room for two whole partitions" in note for note in notes
    )


def test_evictions_of_a_prefetch_go_back(graph: Any) -> None:
    facts = run(graph, "sssp", "unified:prefetch+accessed-by", memory="30%").summary()
    assert facts["transfer"]["back_bytes"] > 0.3 * facts["graph"]["edge_bytes"]


def test_packing_moves_fewer_bytes(graph: Any) -> None:
    assert ratio(run(graph, "sssp", "scaph:lvsp")) < 0.6 * ratio(run(graph, "sssp", "scaph:lbase"))


@pytest.mark.parametrize("algorithm", ["pagerank", "php"])
def test_the_queue_runs_partitions_again_while_others_come(graph: Any, tmp_path: Any, algorithm: str) -> None:
    """A slow link leaves time for it."""
    slow = tmp_path / "slow.toml"
    slow.write_text("""
base = "rtx2080ti"
name = "slow"
[link]
bandwidth = { value = 1e9, source = "made up" }
direct = { value = [1e9, 1e9, 1e9, 1e9], source = "made up" }
""")
    given = {"device": f"model:{slow}", "tol": 1e-2 if algorithm == "pagerank" else 0.1}
    again, once = (run(graph, algorithm, "scaph:hvsp", *off, **given) for off in ((), ("queue",)))
    assert tasks(again, "cache") > 5 * tasks(once, "cache")
    assert len(again.trace) < len(once.trace)
    assert ratio(again) < ratio(once)


def test_low_and_high_value_work_at_the_same_time(graph: Any) -> None:
    """The host packs while whole partitions move; without overlap one waits for the other."""
    together, apart = run(graph, "sssp", "scaph"), run(graph, "sssp", "scaph", "overlap")
    assert modelled(together) < 0.95 * modelled(apart)


@pytest.mark.parametrize("algorithm", ["minimum_spanning_forest", "pagerank"])
def test_partitions_of_programs_that_need_an_order_stay_near_too(graph: Any, algorithm: str, monkeypatch: Any) -> None:
    """They run once in an iteration, and need no second transfer."""
    given: dict[str, Any] = {"max_iter": 5} if algorithm == "pagerank" else {}
    how: dict[str, Any] = {"policy": "scaph", "device": DEVICE, "memory": "40%", **given}
    stays, goes = (getattr(ist, algorithm)(graph, without=off, **how) for off in ((), ("cache",)))
    assert tasks(stays, "cache") > tasks(goes, "cache") == 0
    assert ratio(stays) < 0.9 * ratio(goes)


def test_high_value_partitions_stay(graph: Any) -> None:
    stays, goes = run(graph, "sssp", "scaph"), run(graph, "sssp", "scaph", "cache")
    assert stays.summary()["cache"]["hit_edges"] > goes.summary()["cache"]["hit_edges"]
    assert ratio(stays) < ratio(goes)


def test_running_twice_at_once_saves_iterations(graph: Any) -> None:
    assert len(run(graph, "pagerank", "scaph:hbase").trace) < len(
        run(graph, "pagerank", "scaph:hbase", "recompute").trace
    )


# Grus, and hints of unified memory


def test_the_prefetched_region_saves_requests(tmp_path: Any) -> None:
    lattice = ist.generate("grid", tmp_path / "g.isthmus", rows=300, columns=300, weights="1:9")
    there, empty = (run(lattice, "sssp", "grus", *off, source=45150, threads=1) for off in ((), ("prefetch",)))
    assert there.trace.iterations[0].bytes > 5 * empty.trace.iterations[0].bytes
    assert sum(i.requests for i in there.trace.iterations[1:20]) < sum(i.requests for i in empty.trace.iterations[1:20])


def test_what_is_prefetched_is_all_that_comes_near(graph: Any) -> None:
    """Over PCIe mapped pages stay far; so tau, the share that is prefetched, decides how much is read again and
    again.
    """
    there, empty = (run(graph, "pagerank", "grus", *off, memory="60%") for off in ((), ("prefetch",)))
    assert ratio(there) < 0.8 * ratio(empty) and modelled(there) < 0.9 * modelled(empty)
    first, second = (iteration.bytes for iteration in empty.trace.iterations[:2])
    assert second > 0.99 * first
    counted = run(graph, "pagerank", "grus", "prefetch", memory="60%", device="model:gh200").trace.iterations
    assert counted[1].bytes < 0.9 * counted[0].bytes, "there, requests are counted and pages migrate"


def test_grus_evicts_nothing(graph: Any) -> None:
    """So bytes that are near stay, and later iterations of a loop over everything move the same."""
    moved = [iteration.bytes for iteration in run(graph, "pagerank", "grus").trace][2:8]
    assert max(moved) <= 1.01 * min(moved)
    assert run(graph, "pagerank", "grus").summary()["transfer"]["back_bytes"] < 1e6


def test_hints_say_what_becomes_of_pages(graph: Any) -> None:
    none, read_mostly, accessed_by, prefetched = (
        run(graph, "sssp", policy).summary()
        for policy in ("unified", "unified:read-mostly", "unified:accessed-by", "unified:prefetch")
    )
    assert read_mostly["transfer"]["back_bytes"] < none["transfer"]["back_bytes"] / 100, "read-only copies are dropped"
    assert read_mostly["seconds"]["modelled"] < none["seconds"]["modelled"]
    assert accessed_by["transfer"]["bytes"] < none["transfer"]["bytes"], (
        "single requests instead of pages that come and go"
    )
    assert prefetched["transfer"]["bytes"] > none["transfer"]["bytes"], "all edges once, though they do not fit"


@pytest.mark.parametrize(
    "policy",
    [
        "scaph:hvsp",
        "scaph:lvsp",
        "scaph:hbase",
        "scaph:lbase",
        "unified:prefetch",
        "unified:accessed-by",
        "unified:preferred-location",
        "unified:read-mostly",
        "unified:prefetch+accessed-by",
        "emogi:hot",
    ],
)
@pytest.mark.parametrize("device", [DEVICE, "cpu"])
def test_variants_give_the_same_answers(graph: Any, policy: str, device: str) -> None:
    for memory in ("10%", "60%"):
        found = run(graph, "sssp", policy, memory=memory, device=device, threads=2)
        assert found.summary()["policy"] == policy
        assert np.array_equal(found.values, ist.sssp(graph, 5).values)


def test_a_hot_subgraph_saves_transfers(graph: Any) -> None:
    """And has hits; programs that follow each vertex once have no use for it."""
    plain, kept = (run(graph, "sssp", policy, memory="30%").summary() for policy in ("emogi", "emogi:hot"))
    assert kept["cache"]["hit_edges"] > 0 and kept["transfer"]["bytes"] < plain["transfer"]["bytes"]
    assert run(graph, "bfs", "emogi:hot", memory="30%").summary()["cache"]["hit_edges"] == 0


@pytest.mark.parametrize("policy", ["hytgraph", "scaph", "grus"])
@pytest.mark.parametrize("device", [DEVICE, "cpu"])
@pytest.mark.parametrize("part", ["cache", "recompute", "combine", "order", "queue", "prefetch", "overlap"])
def test_without_a_part_the_answer_is_the_same(lattice: Any, policy: str, device: str, part: str) -> None:
    found = run(lattice, "sssp", policy, part, memory="40%", device=device)
    assert np.array_equal(found.values, ist.sssp(lattice, 5).values)


# Ours


def test_auto_moves_hardly_more_than_the_best_recipe(graph: Any) -> None:
    """In bytes, on average; it would not without its cache, nor if it did not use up what came."""
    others = ("filter", "subway", "emogi", "unified", "grus", "scaph", "hytgraph")
    cells = [(graph, algorithm) for algorithm in ("pagerank", "sssp", "bfs")]
    best = [min(ratio(run(*cell, policy)) for policy in others) for cell in cells]

    def over(*off: str) -> float:
        return float(
            np.exp(
                np.mean(
                    [np.log(ratio(run(*cell, "auto", *off)) / least) for cell, least in zip(cells, best, strict=True)]
                )
            )
        )

    assert over() < 1.1
    assert over("cache", "recompute") > 1.1 * over()
