"""Hub order: who comes first, and that nothing but the numbering changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import StoreError
from isthmus.graph.graph import Graph
from isthmus.graph.order import degrees, hub_order
from isthmus.graph.store.store import Store
from isthmus.graph.store.verify import verify


def arrays(graph: Graph) -> dict[str, bytes]:
    return {name: graph.store.read(name).tobytes() for name in graph.store.manifest.sections}


def product(graph: Graph) -> Any:
    out, into = degrees(graph.store)
    return out * into


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("in_edges", [False, True])
def test_the_top_eight_percent_come_first(directed: bool, in_edges: bool) -> None:
    graph = ist.generate("rmat", scale=10, directed=directed, in_edges=in_edges, permute=True)
    order = hub_order(graph.store)
    assert sorted(order.tolist()) == list(range(1024))
    scores = product(graph)[order]
    hubs = 82  # 8 % of 1,024, rounded up
    assert (np.diff(scores[:hubs]) <= 0).all()
    assert scores[hubs - 1] >= scores[hubs:].max()
    assert (np.diff(order[hubs:]) > 0).all()
    ties = np.diff(scores[:hubs]) == 0
    assert (np.diff(order[:hubs])[ties] > 0).all()


def test_in_degrees_are_counted_where_they_are_not_stored() -> None:
    with_in, without = (ist.generate("rmat", scale=8, directed=True, in_edges=in_edges) for in_edges in (True, False))
    for one, other in zip(degrees(with_in.store), degrees(without.store), strict=True):
        assert np.array_equal(one, other)


def test_wide_targets_count_too(forge: Callable[..., Store]) -> None:
    store = forge("g", {"out.offsets": np.array([0, 2, 3, 3]), "out.targets": np.array([1, 2, 2], np.uint64)})
    assert degrees(store)[1].tolist() == [0, 1, 2]


@pytest.mark.parametrize("vertices", [0, 1, 2, 12, 13])
def test_small_graphs(vertices: int) -> None:
    order = hub_order(ist.generate("star", vertices=vertices).store)
    assert order.tolist() == list(range(vertices))  # the hub of a star is vertex 0 already


def test_a_product_beyond_64_bits(forge: Callable[..., Store], monkeypatch: pytest.MonkeyPatch) -> None:
    store = forge("g", {"out.offsets": np.array([0, 0, 0]), "out.targets": np.zeros(0, np.uint32)})
    huge = np.array([2**31, 2**40]), np.array([2**31, 2**40])
    monkeypatch.setattr("isthmus.graph.order.degrees", lambda store: huge)
    assert hub_order(store).tolist() == [1, 0]


OPTIONS: list[dict[str, Any]] = [
    {"directed": False},
    {"directed": True, "weights": "1:100"},
    {"directed": True, "in_edges": False},
    {"directed": False, "weights": "0.0:1.0", "parallel": "keep", "self_loops": "keep"},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_users_see_no_difference(tmp_path: Path, options: dict[str, Any]) -> None:
    natural = ist.generate("rmat", scale=7, edge_factor=4, **options)
    hub = ist.generate("rmat", tmp_path / "hub.isthmus", scale=7, edge_factor=4, order="hub", **options)
    assert (hub.order, natural.order) == ("hub", "natural")
    assert (hub.edges, hub.arcs, hub.edge_bytes) == (natural.edges, natural.arcs, natural.edge_bytes)
    assert verify(tmp_path / "hub.isthmus").ok
    assert hub.store.manifest.parallel == natural.store.manifest.parallel
    for v in range(128):
        assert hub.neighbors(v).tolist() == natural.neighbors(v).tolist()
        assert hub.out_degree(v) == natural.out_degree(v)
        for u in natural.neighbors(v):
            assert sorted(hub.edge_weights(v, u)) == sorted(natural.edge_weights(v, u))
        if natural.has_in_edges:
            assert hub.predecessors(v).tolist() == natural.predecessors(v).tolist()
    numbers = np.array([hub.ids.number(v) for v in range(128)])
    assert hub.ids.users(numbers).tolist() == list(range(128))
    scores = product(hub)
    assert (np.diff(scores[:11]) <= 0).all()
    assert scores[10] >= scores[11:].max()


@pytest.mark.parametrize("options", OPTIONS[:3])
@pytest.mark.parametrize("memory", [None, "3MB"])
def test_there_and_back_again(tmp_path: Path, options: dict[str, Any], memory: str | None) -> None:
    """Converting a store to hub order later is the same as at once; converting back restores every byte."""
    first = ist.generate("rmat", tmp_path / "natural.isthmus", scale=9, **options)
    at_once = ist.generate("rmat", tmp_path / "at_once.isthmus", scale=9, order="hub", **options)
    keep = {"in_edges": options.get("in_edges", True), "memory": memory}
    later = ist.ingest(tmp_path / "natural.isthmus", tmp_path / "later.isthmus", order="hub", **keep)
    back = ist.ingest(tmp_path / "later.isthmus", tmp_path / "back.isthmus", **keep)
    again = ist.ingest(tmp_path / "later.isthmus", tmp_path / "again.isthmus", order="hub", **keep)
    assert arrays(later) == arrays(at_once) == arrays(again)
    assert arrays(back) == arrays(first)
    assert back.store.manifest == first.store.manifest


def test_ids_travel_with_the_order(tmp_path: Path) -> None:
    edges = np.array([[10, 30], [20, 30], [30, 40], [40, 30], [30, -7]])
    natural = ist.ingest(edges, tmp_path / "natural.isthmus")
    hub = ist.ingest(tmp_path / "natural.isthmus", tmp_path / "hub.isthmus", order="hub")
    assert hub.ids.number(30) == 0
    assert natural.ids.number(30) == 3
    for graph in (natural, hub):
        assert graph.neighbors(30).tolist() == [-7, 40]
        assert graph.predecessors(30).tolist() == [10, 20, 40]
    back = ist.ingest(tmp_path / "hub.isthmus", tmp_path / "back.isthmus")
    assert arrays(back) == arrays(natural)


def test_in_place(tmp_path: Path) -> None:
    path = tmp_path / "g.isthmus"
    natural = ist.generate("rmat", path, scale=8)
    hub = ist.ingest(path, path, order="hub", overwrite=True)
    assert hub.order == "hub"
    assert arrays(ist.ingest(path, path, overwrite=True)) == arrays(natural)
    assert [entry.name for entry in tmp_path.iterdir()] == ["g.isthmus"]


def test_cleaning_comes_before_ordering(tmp_path: Path) -> None:
    """A vertex full of self loops is no hub once they are dropped."""
    edges = np.array([[0, 0]] * 50 + [[1, 2], [2, 3], [3, 1], [2, 1], [4, 2]])
    ist.ingest(edges, tmp_path / "loops.isthmus").close()
    kept = ist.ingest(tmp_path / "loops.isthmus", tmp_path / "kept.isthmus", order="hub")
    dropped = ist.ingest(
        tmp_path / "loops.isthmus", tmp_path / "dropped.isthmus", order="hub", self_loops="drop", parallel="drop"
    )
    assert kept.ids.number(0) == 0
    assert dropped.ids.number(2) == 0
    assert verify(tmp_path / "dropped.isthmus").ok


@pytest.mark.parametrize(
    "offsets", [[0, 3, 2, 4], [1, 2, 3, 4], [0, 1, 2, 3], [0, 1, 2, -(2**63)], [0, -1, 2, 4], [0, 9, 2, 4]]
)
def test_degrees_from_offsets_that_do_not_ascend(forge: Callable[..., Store], offsets: list[int]) -> None:
    store = forge("g", {"out.offsets": np.array(offsets), "out.targets": np.zeros(4, np.uint32)})
    for read in (Graph(store).snapshot.out_degrees, Graph(store).busiest, lambda: hub_order(store)):
        with pytest.raises(StoreError, match=r"section out\.offsets does not ascend from 0 to 4; run isthmus verify"):
            read()
