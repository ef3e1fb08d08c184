"""Streams on a modelled device: every recipe keeps the answers of this machine, and what it reads is counted.

Tests `devices/model/residency.py`, `policies/stream_recipes.py`, `stream/counted_session.py`,
`stream/stream_comparison.py` and `devices/model/lru_pages.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.stream.edits import Model

import isthmus as ist
from isthmus.cache.chunks import Chunked
from isthmus.devices.model.lru_pages import PAGE, LruPages
from isthmus.errors import BudgetError, OptionError
from isthmus.kernels.changing.packed_array import INSERT
from isthmus.policies.stream_recipes import RECIPES
from isthmus.stream.maintain.monotone import MaintainedMonotone

DEVICE = "model:rtx2080ti"


def programs(source: Any) -> list[Any]:
    """All monotone ones, with their sides, weights and levels."""
    return [
        ist.SSSP(source=source),
        ist.BFS(source=source),
        ist.WeaklyConnectedComponents(),
        ist.WidestPath(source=source),
        ist.MultiSourceBFS(sources=[source], name="many"),
    ]


def filled(result: Any) -> Any:
    return (
        np.ma.filled(result.values, -1).tolist()
        if np.ma.isMaskedArray(result.values)
        else np.asarray(result.values).tolist()
    )


@pytest.mark.parametrize("policy", [*RECIPES, "auto:resend", "grapin:resend", "grapin-page:resend"])
@pytest.mark.parametrize(("seed", "memory"), [(1, "10%"), (2, "60%"), (4, "0%"), (6, "200%")])
def test_answers_are_those_of_this_machine(policy: str, seed: int, memory: str) -> None:
    """After every batch, also when vertices come and go."""
    model = Model(seed, 60)
    graph, source = model.graph(), model.source
    with (
        ist.stream(graph, programs(source)) as here,
        ist.stream(graph, programs(source), device=DEVICE, policy=policy, memory=memory) as there,
    ):
        for _ in range(6):
            batch = model.batch()
            here.apply(**batch)
            report = there.apply(**batch)
            for name in here:
                assert filled(here[name]) == filled(there[name]), (policy, name, report.number)
            assert report.transfer is not None and report.transfer.modelled >= 0
        assert there.check() == here.check()


def grown(policy: str, memory: str, threads: int | None = None, batches: int = 6) -> list[Any]:
    """Transfers of some batches on a graph of some thousand edges."""
    draw = np.random.default_rng(5)
    ends = [draw.integers(0, 600, 9000) ** 2 // 600 for _ in range(2)]  # some vertices have many edges
    weights = draw.integers(1, 99, 9000).astype(np.int32)
    graph = ist.read((*ends, weights), directed=False, parallel="min")
    found = []
    with ist.stream(graph, [ist.SSSP(source=0)], device=DEVICE, policy=policy, memory=memory, threads=threads) as live:
        for _ in range(batches):
            chosen = draw.integers(0, 9000, 60)
            inserts = (draw.integers(0, 600, 60), draw.integers(0, 600, 60), draw.integers(1, 99, 60).astype(np.int32))
            found.append(live.apply(inserts=inserts, deletes=(ends[0][chosen], ends[1][chosen])).transfer)
        assert live.check() == {}
    return found


def total(transfers: list[Any], name: str) -> int:
    return sum(getattr(each, name) for each in transfers)


def test_what_each_recipe_saves() -> None:
    moved = {policy: grown(policy, "30%") for policy in RECIPES}
    bytes_of = {policy: total(each, "bytes") for policy, each in moved.items()}
    assert bytes_of["grapin-zc"] < bytes_of["grapin-recompute"] / 3, "only what is affected is read"
    assert bytes_of["auto"] < 0.8 * bytes_of["grapin-zc"], "lists that are read stay near"
    assert bytes_of["grapin-page"] > bytes_of["grapin-zc"], "a page for every list"
    assert total(moved["auto"], "hit_edges") > 0 and total(moved["grapin"], "hit_edges") > 0
    assert total(moved["grapin-zc"], "hit_edges") == total(moved["grapin-recompute"], "hit_edges") == 0
    assert total(moved["grapin"], "upkeep_bytes") > 0 == total(moved["auto"], "upkeep_bytes")
    reads = {policy: total(each, "hit_edges") + total(each, "miss_edges") for policy, each in moved.items()}
    assert reads["grapin-zc"] == reads["grapin-page"], "what is near changes what moves, not what is read"
    for policy in ("auto", "grapin"):  # hits are a launch of their own, whose messages those of the misses see
        assert abs(reads[policy] - reads["grapin-zc"]) < 0.02 * reads["grapin-zc"]
    assert all(each.batch_bytes > 0 for each in moved["auto"]) and total(moved["grapin-recompute"], "batch_bytes") == 0


def test_every_reached_vertex_sends_again() -> None:
    """As in Grapin's release: a batch reads all edges of reached vertices at least once, even one that changes
    nothing.
    """
    graph = ist.read((np.arange(99), np.arange(1, 100)), directed=True)
    with ist.stream(graph, [ist.BFS(source=50)], device=DEVICE, policy="grapin-zc:resend") as live:
        report = live.apply(inserts=([3], [5]))
        assert report.transfer is not None and report.transfer.miss_edges == 49, "of 50 to 98; 0 to 49 are not reached"
        assert live.policy == "grapin-zc:resend"
    moved = {
        policy: grown(policy, "30%")
        for policy in ("grapin-zc", "grapin-zc:resend", "grapin:resend", "grapin-recompute")
    }
    read = {policy: total(each, "hit_edges") + total(each, "miss_edges") for policy, each in moved.items()}
    assert 3 * read["grapin-zc"] < read["grapin-zc:resend"] < read["grapin-recompute"]
    assert total(moved["grapin:resend"], "bytes") < 0.85 * total(moved["grapin-zc:resend"], "bytes"), (
        "hot lists are read in every batch"
    )
    with pytest.raises(OptionError, match="grapin-recompute computes from scratch, so :resend has no meaning"):
        ist.stream(graph, device=DEVICE, policy="grapin-recompute:resend")


def test_counts_repeat() -> None:
    once, again = (grown("auto", "10%") for _ in range(2))
    for first, second in zip(once, again, strict=True):
        assert {**first.as_dict(), "upkeep_seconds": 0} == {**second.as_dict(), "upkeep_seconds": 0}


def test_zero_copy_is_counted_by_requests() -> None:
    """A star whose centre loses one edge: the orphan's list is read, and nothing else but its former parent's
    messages.
    """
    leaves = np.arange(1, 101)
    graph = ist.read((np.zeros(100, np.int64), leaves), directed=True)
    with ist.stream(graph, [ist.BFS(source=0)], device=DEVICE, policy="grapin-zc") as live:
        assert live.opened is not None and live.opened.miss_edges == 100
        report = live.apply(deletes=([0], [7]))
        assert report.transfer is not None
        assert (report.transfer.miss_edges, report.transfer.bytes) == (0, 0), "the orphan has no edges left"
        report = live.apply(inserts=([5], [7]))
        assert report.transfer is not None and report.transfer.bytes == 0, "an inserted arc is part of the batch"
        assert report.transfer.batch_bytes == 8


def test_pages_are_evicted_by_age_and_dropped_when_written() -> None:
    pages = LruPages(2 * PAGE)

    def read(*numbers: int) -> tuple[int, int]:
        return pages.read("out", np.array(numbers) * PAGE + 5, np.full(len(numbers), 9))

    assert read(0, 1) == (2, 1) and read(0, 1) == (0, 0)
    assert read(5) == (1, 1), "0 goes, as it has the lower number among equally old ones"
    assert read(1) == (0, 0) and read(0) == (1, 1) and read(1) == (0, 0) and read(5) == (1, 1)
    assert pages.read("in", np.array([3]), np.array([2 * PAGE])) == (3, 2), "three pages, more than there is room for"
    assert read(7, 9) == (2, 2) and pages.near_bytes == 2 * PAGE
    pages.written("out", np.array([7 * PAGE]), np.array([1]))
    assert read(9) == (0, 0) and read(7) == (1, 1)
    pages.forget("out")
    assert pages.near_bytes == 0 and read(7) == (1, 1)
    assert read(8) == (1, 1) and pages.near_bytes == 2 * PAGE
    pages.limit(PAGE + 1)
    assert pages.near_bytes == PAGE and read(8) == (0, 0) and read(7) == (1, 1), "the older one has gone, and one stays"
    pages.limit(9 * PAGE)
    assert pages.room == 1, "a larger limit changes nothing"
    assert LruPages(0).read("out", np.array([0]), np.array([1])) == (1, 1)


def test_near_memory_is_kept() -> None:
    graph = Model(3, 60).graph()
    with ist.stream(graph, [ist.SSSP(source=0)], device=DEVICE, memory="2MB") as live:
        assert 0 < live.near_peak <= 2_000_000 and (live.device, live.policy) == (DEVICE, "auto")
    with pytest.raises(BudgetError, match=r"the stream needs at least .* near memory .* Give memory="):
        ist.stream(graph, [ist.SSSP(source=0)], device=DEVICE, memory="1kB")


@pytest.mark.parametrize("policy", ["auto", "grapin", "grapin-page", "grapin-zc"])
def test_near_memory_is_kept_when_vertices_are_added(policy: str) -> None:
    """A budget is for all: lists and pages give way to more vertices. A share is for lists only, and vertices come on
    top.
    """
    draw = np.random.default_rng(3)
    graph = ist.read((draw.integers(0, 2000, 40_000), draw.integers(0, 2000, 40_000)), directed=True, parallel="drop")
    budget = 800_000
    for memory in (budget, "50%"):
        with ist.stream(graph, [ist.BFS(source=0)], device=DEVICE, policy=policy, memory=memory) as live:
            assert live.context.residency is not None
            peaks, lists = [live.near_peak], [live.context.residency.near_bytes]
            for k in range(1, 4):
                live.apply(inserts=(draw.integers(0, 2000, 900), np.arange(900) + 900 * k + 1100))
                peaks.append(live.near_peak)
                lists.append(live.context.residency.near_bytes)
                assert live.check() == {}
            if memory == budget:
                assert max(peaks) <= budget
                assert policy == "grapin-zc" or (peaks[0] > 0.9 * budget and lists[-1] < lists[0]), "all of it was used"
            else:
                assert peaks == sorted(peaks) and peaks[-1] > peaks[0]


@pytest.mark.parametrize("policy", ["auto", "grapin"])
@pytest.mark.parametrize("seed", range(8))
def test_near_lists_are_what_far_memory_has(policy: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """After every batch, entry by entry: lists that were patched, lists that moved, and lists that had to find another
    place.

    `auto` patches what it holds: no list has to be read again because it has changed.
    """
    model, held, plain = Model(seed, 40), 0, Chunked.refresh

    def checked(self: Chunked, keys: Any, groups: Any, changes: Any, *given: Any) -> None:
        for key, group in zip(keys.tolist(), groups.tolist(), strict=True):
            assert self.held[key]
            for c in range(changes.cuts[group], changes.cuts[group + 1]):
                if changes.actions[c] != INSERT:
                    assert self.targets[int(self.begins[key]) + changes.positions[c]] == changes.others[c]
        plain(self, keys, groups, changes, *given)

    monkeypatch.setattr(Chunked, "refresh", checked)
    with ist.stream(model.graph(), [ist.SSSP(source=model.source)], device=DEVICE, policy=policy, memory="80%") as live:
        for _ in range(12):
            live.apply(**model.batch())
            assert live.context.residency is not None and live.context.residency.hot is not None
            hot = live.context.residency.hot
            for side in hot.names:
                begins, ends, targets, weights = live.graph.sides[side].arrays()
                for v in np.flatnonzero(hot.marks_of(side, live.graph.vertices)).tolist():
                    at, length = int(hot.chunks.begins[hot.offset(side) + v]), int(ends[v] - begins[v])
                    assert hot.chunks.targets[at : at + length].tolist() == targets[begins[v] : ends[v]].tolist()
                    assert (
                        hot.chunks.weights is None
                        or (hot.chunks.weights[at : at + length] == weights[begins[v] : ends[v]]).all()
                    )
                    held += 1
    assert held > 0


@pytest.mark.parametrize("policy", ["auto", "grapin", "grapin-page"])
def test_a_batch_that_is_undone_leaves_nothing_near(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists that were patched for the failed batch are not what the graph has."""
    model = Model(2, 60)
    with ist.stream(model.graph(), [ist.SSSP(source=model.source)], device=DEVICE, policy=policy, memory="60%") as live:
        live.apply(**model.batch())
        compute = MaintainedMonotone.compute

        def fail(self: Any, change: Any) -> None:
            compute(self, change)
            raise RuntimeError("stopped")

        with monkeypatch.context() as patched:
            patched.setattr(MaintainedMonotone, "compute", fail)
            with pytest.raises(RuntimeError, match="stopped"):
                live.apply(inserts=[(model.source, v, 1) for v in sorted(model.vertices)[1:9]])
        for _ in range(3):
            live.apply(**model.batch())
            assert live.check() == {}


def test_a_comparison(tmp_path: Any) -> None:
    graph = Model(3, 60).graph()
    updates = tmp_path / "u.csv"
    updates.write_text("op,source,target,weight\n" + "".join(f"insert,{7 * k},{7 * k + 7},1\n" for k in range(40)))
    found = ist.compare_streams(graph, [ist.SSSP(source=0), ist.BFS(source=0)], updates, device=DEVICE, batch=10)
    assert list(found.runs) == list(RECIPES) and {run.batches for run in found.runs.values()} == {4}
    rows = {run["recipe"]: run for run in found.summary()["runs"]}
    assert found.summary()["fastest"] in rows and rows["grapin-zc"]["hits"] == 0
    assert rows["grapin-recompute"]["transfer"]["bytes"] > rows["grapin-zc"]["transfer"]["bytes"]
    assert all(run["near_peak"] > 0 and run["ratio"] > 0 and run["opening"]["bytes"] > 0 for run in rows.values())
    for wrong, message in (
        ({"device": "cpu"}, "device: expected a modelled device"),
        ({"policies": ["emogi"]}, "policy: expected one of"),
        ({"policies": []}, "policies: expected at least one"),
    ):
        with pytest.raises(OptionError, match=message):
            ist.compare_streams(graph, [], updates, **{"device": DEVICE, **wrong})
    with pytest.raises(OptionError, match="updates: expected a file"):
        ist.compare_streams(graph, [], "-", device=DEVICE)


def test_misuse() -> None:
    graph = Model(3, 60).graph()
    with pytest.raises(OptionError, match=r"policy: expected one of auto, grapin, .*, got 'emogi'"):
        ist.stream(graph, device=DEVICE, policy="emogi")
    with pytest.raises(OptionError, match="policy: recipes are for streams on disk, on a modelled device or on a GPU"):
        ist.stream(graph, policy="grapin")
    with pytest.raises(OptionError, match="core_number is not kept current on a device"):
        ist.stream(graph, [ist.CoreNumber()], device=DEVICE)
    with pytest.raises(OptionError, match="device: expected one of"):
        ist.stream(graph, device="gpu")
