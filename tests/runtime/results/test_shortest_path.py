"""A path between two vertices: as short as NetworkX finds it, along edges that exist, from memory and from disk."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import NoPathError, OptionError, UnknownVertexError


def random_graph(directed: bool, reals: bool) -> tuple[Any, Any]:
    """The same random graph here and in NetworkX, with ids that are not numbers from 0."""
    draw = np.random.default_rng(4)
    ends = draw.integers(0, 400, (2, 900)) * 7 + 5
    weights = draw.random(900) if reals else draw.integers(0, 9, 900)
    theirs = nx.DiGraph() if directed else nx.Graph()
    for u, v, w in zip(*ends.tolist(), weights.tolist(), strict=True):
        if not theirs.has_edge(u, v) or theirs[u][v]["weight"] > w:
            theirs.add_edge(u, v, weight=w)
    return (ends[0], ends[1], weights), theirs


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("reals", [False, True])
def test_paths_are_as_short_as_networkx_finds_them(
    directed: bool, weight: str | None, far: bool, reals: bool, tmp_path: Path
) -> None:
    edges, theirs = random_graph(directed, reals)
    options: dict[str, Any] = {"memory": "10%", "policy": "emogi"} if far else {}
    nodes = sorted(theirs)
    pairs = np.random.default_rng(5).choice(nodes, (12, 2)).tolist()
    order = "hub" if reals else "natural"
    with (
        ist.ingest(edges, tmp_path / "g.isthmus", directed=directed, order=order) as graph,
        graph.session(**options) as session,
    ):
        for a, b in pairs:
            if not nx.has_path(theirs, a, b):
                with pytest.raises(NoPathError, match=f"no path from vertex {a} to vertex {b}"):
                    session.shortest_path(a, b, weight)
                continue
            path = session.shortest_path(a, b, weight)
            assert (path[0], path[-1]) == (a, b)
            assert all(theirs.has_edge(u, v) for u, v in itertools.pairwise(path))
            length = nx.path_weight(theirs, path, "weight") if weight else len(path) - 1
            assert length == pytest.approx(nx.shortest_path_length(theirs, a, b, weight))


@pytest.mark.parametrize("policy", ["auto", "filter", "subway", "scaph", "hytgraph", "unified", "grus"])
def test_every_recipe_finds_one(policy: str, tmp_path: Path) -> None:
    with ist.generate("grid", tmp_path / "g.isthmus", rows=40, columns=40) as graph:
        path = ist.shortest_path(graph, 0, 1599, memory="20%", policy=policy)
    assert len(path) == 79 and path[0] == 0 and path[-1] == 1599


def test_a_search_ends_at_its_target(tmp_path: Path, sized: Any) -> None:
    sized(few_arcs=0, search_levels=4)
    with ist.generate("path", tmp_path / "p.isthmus", vertices=5000) as graph:
        from isthmus.runtime.results.shortest_path import found_path

        for options in ({}, {"memory": "10%", "policy": "filter"}, {"memory": "10%", "policy": "emogi"}):
            with graph.session(**options) as session:
                found = found_path(session, 0, 20)
                assert found.vertices == list(range(21)) and found.length == 20
                assert found.result.summary()["iterations"] < 100
                assert session.shortest_path(0, 4999) == list(range(5000))


@pytest.mark.parametrize(
    "options",
    [{}, {"memory": "10%", "policy": "filter"}, {"memory": "10%"}, {"memory": "10%", "device": "model:a5000"}],
)
@pytest.mark.parametrize("weights", ["1:9", "0.5:9.0"])
def test_a_search_by_weight_follows_few_edges_beyond_its_target(
    options: dict[str, Any], weights: str, tmp_path: Path
) -> None:
    """Distances are found for a part of the grid; a search without a target finds all."""
    from isthmus.runtime.results.shortest_path import found_path

    with ist.generate("grid", tmp_path / "g.isthmus", rows=120, columns=120, weights=weights, seed=3) as graph:
        source, target, far = 60 * 120 + 60, 60 * 120 + 66, 0
        with graph.session(**options) as session:
            everything = session.sssp(source)
            found = found_path(session, source, target, "weight")
            assert found.length == pytest.approx(everything[target])
            assert (found.vertices[0], found.vertices[-1]) == (source, target)
            followed = sum(record.active_edges for record in found.result.trace.iterations)
            assert 0 < followed < sum(record.active_edges for record in everything.trace.iterations) / 4
            assert found_path(session, source, far, "weight").length == pytest.approx(everything[far])


def test_words_and_mistakes() -> None:
    graph = ist.read(
        (
            np.array(["a", "b", "a", "z"], object),
            np.array(["b", "c", "c", "a"], object),
            np.array([1, 1, 5])[[0, 1, 2, 0]],
        )
    )
    assert ist.shortest_path(graph, "a", "c") == ["a", "c"]
    assert (
        ist.shortest_path(graph, "a", "c", weight="weight")
        == ist.shortest_path(graph, "a", "c", True)
        == ["a", "b", "c"]
    )
    assert ist.shortest_path(graph, "a", "a") == ist.shortest_path(graph, "a", "a", "weight") == ["a"]
    with pytest.raises(
        NoPathError, match="no path from vertex 'c' to vertex 'a'; edges are followed in their direction only"
    ):
        ist.shortest_path(graph, "c", "a")
    with pytest.raises(UnknownVertexError, match="no vertex 'q' in the graph"):
        ist.shortest_path(graph, "a", "q")
    with pytest.raises(OptionError, match="weight: expected None, or 'weight' for the graph's weights, got 'cost'"):
        ist.shortest_path(graph, "a", "c", weight="cost")
    with pytest.raises(OptionError, match="shortest_path: unknown option memry"):
        ist.shortest_path(graph, "a", "c", memry=1)
    with pytest.raises(OptionError, match=r"shortest_path: expected a graph, got the path 'x\.isthmus'"):
        ist.shortest_path("x.isthmus", 1, 2)
    negative = ist.read((np.array([0]), np.array([1]), np.array([-1])), allow_negative=True)
    with pytest.raises(OptionError, match="shortest_path needs weights of at least 0"):
        ist.shortest_path(negative, 0, 1, "weight")
    assert ist.shortest_path(negative, 0, 1) == [0, 1]
