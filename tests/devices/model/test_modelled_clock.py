"""Runs on a modelled device: what is counted, and what the clock makes of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.devices.model import costs
from isthmus.devices.model.figures import find
from isthmus.devices.model.link import ModelLink
from isthmus.devices.model.modelled_clock import ModelledClock
from isthmus.link.link import CHANNELS
from isthmus.policies.recipes import recipe

DEVICE = "model:rtx2080ti"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return ist.generate("rmat", tmp_path_factory.mktemp("g") / "g.isthmus", scale=14, seed=3, weights="1:40")


def components(graph: Any, **how: Any) -> Any:
    """One iteration over all edges, each once."""
    return ist.weakly_connected_components(graph, device=DEVICE, memory="30%", **how).summary()


def test_filter_moves_every_byte_in_full_requests(graph: Any) -> None:
    facts = components(graph, policy="filter")
    size = facts["graph"]["edge_bytes"]
    assert size <= facts["transfer"]["bytes"] <= size + 128 * 2 * facts["engines"]["filter"]["tasks"]
    assert facts["transfer"]["requests"] == -(-facts["transfer"]["bytes"] // 128)


def test_zero_copy_counts_the_requests_of_every_list(graph: Any) -> None:
    facts = components(graph, policy="emogi")
    offsets = graph.store.read("out.offsets").astype(np.int64)
    begins, ends = offsets[:-1] * 4, offsets[1:] * 4
    lists = ends > begins
    lines = (ends[lists] - 1) // 128 - begins[lists] // 128 + 1
    assert facts["transfer"]["requests"] == lines.sum()


def test_compaction_moves_lists_and_their_index(graph: Any) -> None:
    facts = components(graph, policy="subway")
    active = int((np.diff(graph.store.read("out.offsets")) > 0).sum())
    pieces = facts["transfer"]["bytes"] - facts["graph"]["edge_bytes"] - 8 * active
    assert 0 <= pieces <= 8 * 100, "a list that spans two buffers has an entry in each"


def test_managed_memory_moves_whole_pages(graph: Any) -> None:
    facts = components(graph, policy="unified")
    assert facts["transfer"]["bytes"] == -(-facts["graph"]["edge_bytes"] // 4096) * 4096


def device(path: Path, **figures: float) -> str:
    """An RTX 2080 Ti with some figures changed."""
    text = 'base = "rtx2080ti"\nname = "another"\n'
    for name, value in figures.items():
        table, _, key = name.partition("_")
        text += f'{table}.{key} = {{ value = {value!r}, source = "a test" }}\n'
    path.write_text(text)
    return f"model:{path}"


def test_policies_see_the_requests_of_every_list(graph: Any, tmp_path: Path) -> None:
    """Short lists share blocks on a disk, so all of a partition costs zero-copy no more than filter; not so over
    PCIe.
    """
    free = device(tmp_path / "free.toml", near_launch_seconds=1e-12, link_transfer_seconds=1e-12)
    facts = ist.weakly_connected_components(graph, device=free, memory="30%").summary()
    assert set(facts["engines"]) == {"filter"}


def test_auto_minds_what_a_copy_and_a_launch_cost(graph: Any, tmp_path: Path) -> None:
    """One kernel that reads far memory, instead of a copy and a kernel for every small buffer."""
    dear = device(tmp_path / "dear.toml", near_launch_seconds=1e-3)
    facts = ist.weakly_connected_components(graph, device=dear, memory="30%").summary()
    assert set(facts["engines"]) == {"zero_copy"}
    assert (
        facts["seconds"]["modelled"]
        < ist.weakly_connected_components(graph, device=dear, memory="30%", policy="filter").summary()["seconds"][
            "modelled"
        ]
    )


def test_further_rounds_must_be_worth_it(graph: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []
    worked = ModelledClock.worked
    counted = lambda self, delivery, *rest: (runs.append(delivery.further_runs), worked(self, delivery, *rest))  # noqa: E731
    monkeypatch.setattr(ModelledClock, "worked", counted)
    expected = ist.sssp(graph, 5).values

    def most(**figures: float) -> int:
        runs.clear()
        found = ist.sssp(
            graph, 5, device=device(tmp_path / "card.toml", link_transfer_seconds=1e-12, **figures), memory="30%"
        )
        assert np.array_equal(found.values, expected)
        return max(runs)

    assert most(near_launch_seconds=1e-12) > 1, "until nothing changes"
    assert most(near_launch_seconds=1e-12, near_bandwidth=1e9) == 1, "the device has more to do than the link"
    assert most(near_launch_seconds=1e-2) == 0, "no round moves as much as a link could in that time"


@pytest.mark.parametrize(("lists", "cores"), [(4000, 1), (6000, 10)])
def test_few_active_vertices_are_packed_by_one_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lists: int, cores: int
) -> None:
    """HyTGraph's rule counts all active vertices, however few of them a buffer holds."""
    used = []
    pack = ModelLink.pack
    monkeypatch.setattr(ModelLink, "pack", lambda self, *rest: (used.append(rest[-1]), pack(self, *rest))[1])
    ring = np.arange(lists)
    graph = ist.read((ring, (ring + 1) % lists))
    ist.weakly_connected_components(graph, device=DEVICE, policy="subway", memory="30%")
    assert used and set(used) == {1 if cores == 1 else None}


@pytest.mark.parametrize("policy", ["filter", "subway", "emogi", "unified", "auto"])
def test_seconds_are_modelled_per_iteration(graph: Any, policy: str) -> None:
    device = find(DEVICE)
    result = ist.sssp(graph, 5, device=DEVICE, policy=policy, memory="30%")
    facts = result.summary()
    assert facts["device"] == DEVICE
    assert facts["seconds"]["modelled"] == pytest.approx(sum(iteration.modelled for iteration in result.trace))
    assert any("modelled" in note for note in facts["notes"])
    for iteration in result.trace:
        bulk, kernel = costs.bulk(device, iteration.bytes, 0), costs.kernel(device, iteration.active_edges, 8, 0)
        assert iteration.modelled >= max(bulk, kernel) + device.link.copy_seconds
        if policy == "subway":
            assert iteration.modelled >= bulk + kernel, "Subway packs, copies and computes one after the other"


def test_a_kernel_that_faults_stands_still(graph: Any) -> None:
    """One that reads mapped memory works while its requests are under way."""
    card = find(DEVICE)
    for policy, stalls in (("unified", True), ("emogi", False)):
        facts = components(graph, policy=policy)
        link = facts["transfer"]["bytes"] / card.link.bandwidth
        kernel = float(costs.kernel(card, facts["cache"]["miss_edges"], 4))
        both = facts["transfer"]["bytes"] / (card.managed.peak_share * card.link.bandwidth) + kernel
        assert (facts["seconds"]["modelled"] >= both) == stalls
        assert facts["seconds"]["modelled"] >= max(link, kernel)


def test_a_faster_link_takes_less_modelled_time(graph: Any) -> None:
    slow, fast = (
        ist.bfs(graph, 5, device=f"model:{name}", policy="filter", memory="30%").summary()
        for name in ("gtx1080", "h100")
    )
    assert slow["transfer"] == fast["transfer"]
    assert fast["seconds"]["modelled"] < slow["seconds"]["modelled"]


def test_the_same_run_counts_the_same(graph: Any) -> None:
    first, second = (
        ist.bfs(graph, 5, device=DEVICE, policy="emogi", memory="30%", threads=2).summary() for _ in range(2)
    )
    assert first["transfer"] == second["transfer"]
    assert first["seconds"]["modelled"] == second["seconds"]["modelled"]


def test_edges_that_fit_are_copied_once(graph: Any) -> None:
    facts = ist.bfs(graph, 5, device=DEVICE).summary()
    assert facts["policy"] == "resident"
    assert facts["seconds"]["modelled"] > costs.bulk(find(DEVICE), facts["graph"]["edge_bytes"])


def test_a_graph_in_memory_is_far_too() -> None:
    graph = ist.generate("rmat", scale=13, seed=3)
    far = ist.bfs(graph, 5, device=DEVICE, memory="10%", policy="emogi")
    assert far.summary()["transfer"]["bytes"] > 0
    assert np.array_equal(far.values, ist.bfs(graph, 5).values)


def test_a_device_of_ones_own(graph: Any, tmp_path: Any) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('base = "a100"\nname = "mine"\n')
    assert ist.bfs(graph, 5, device=f"model:{mine}", memory="10%").summary()["device"] == "model:mine"


def test_more_than_the_device_has_is_said(graph: Any) -> None:
    notes = ist.bfs(graph, 5, device=DEVICE, memory="20GB", policy="filter").summary()["notes"]
    assert any("the budget is more than the" in note for note in notes)


@pytest.mark.parametrize("device", ["gpu", "model:none"])
def test_unknown_devices(graph: Any, device: str) -> None:
    with pytest.raises(ist.OptionError, match=r"device: .*expected one of"):
        ist.bfs(graph, 5, device=device)


def test_pages_of_all_edges_fit_a_budget_that_has_room_for_them() -> None:
    """A page less than the edges take, and pages that are used in turns would all come again each time."""
    graph = ist.generate("rmat", scale=13, seed=3)
    facts = ist.pagerank(graph, tol=0.1, device=DEVICE, policy="unified", memory="900%").summary()
    assert facts["iterations"] > 4
    assert facts["transfer"]["bytes"] == -(-facts["graph"]["edge_bytes"] // 4096) * 4096
    assert facts["memory"]["near_peak"] <= facts["memory"]["budget"]


def test_edges_that_stay_near_have_crossed_the_link(graph: Any) -> None:
    facts = ist.sssp(graph, 5, device=DEVICE).summary()
    assert facts["policy"] == "resident"
    assert facts["transfer"]["bytes"] == facts["graph"]["edge_bytes"] == facts["engines"]["resident"]["bytes"]


@pytest.mark.parametrize("name", ["rtx2080ti", "h100"])
def test_few_lists_are_not_packed_by_one_of_many_cores(tmp_path: Path, name: str) -> None:
    """Frontiers of a grid are small: one core would pack them, one copy each bring them. (It took three times emogi's
    time on an H100.)

    Not less than emogi's: hundreds of times the host has to see the frontier before it decides.
    """
    grid = ist.generate("grid", tmp_path / "grid.isthmus", rows=60, columns=500, weights="1:9")
    auto, emogi = (
        ist.sssp(grid, 0, device=f"model:{name}", memory="10%", policy=policy, threads=1).summary()["seconds"][
            "modelled"
        ]
        for policy in ("auto", "emogi")
    )
    assert auto <= 1.2 * emogi


def test_betweenness_fits_where_its_smallest_batch_does(graph: Any, tmp_path: Path) -> None:
    """It plans for the device: its buffers are smaller, and its memory is the default budget."""
    sources = [0, 1, 2]
    expected = ist.betweenness_centrality(graph, sources=sources).values
    with pytest.raises(ist.BudgetError) as least:
        ist.betweenness_centrality(graph, sources=sources, device=DEVICE, memory="100KB")
    memory = re.search(r"memory='(\d+MB)'", str(least.value))
    assert memory
    small = device(tmp_path / "small.toml", near_bytes=int(memory[1].removesuffix("MB")) * 10**6)
    for how in ({"device": DEVICE, "memory": memory[1]}, {"device": small}):
        assert np.allclose(ist.betweenness_centrality(graph, sources=sources, **how).values, expected)


def test_a_copy_back_takes_no_channel_from_a_reader() -> None:
    """A reader may hold any channel while an iteration ends, and what it moved is counted there."""
    link = ModelLink([np.zeros(4096, np.uint8)], find("rtx2080ti"))
    modelled = ModelledClock(link, recipe("filter"), 100, 1)
    with link.lend():
        pass
    with link.lend(), link.lend() as reader:
        assert reader == CHANNELS - 1
        link.whole(0, reader)
        assert modelled.iteration() > 0
        assert link.take(reader).bytes == 4096
