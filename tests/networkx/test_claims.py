"""Which calls the backend takes, and the reasons for which it leaves others to NetworkX. Also `networkx/backend.py`."""

from __future__ import annotations

import inspect
from typing import Any

import networkx as nx
import numpy as np
import pytest

import isthmus as ist
from isthmus.networkx.backend import BACKEND, FEW_EDGES
from isthmus.networkx.claims import CLAIMS

PATH = nx.path_graph(4)
ONE_WAY = nx.DiGraph([(0, 1)])
PARALLEL = nx.MultiGraph([(0, 1), (0, 1)])


@pytest.mark.parametrize("name", sorted(CLAIMS))
def test_signatures_are_those_of_networkx(name: str) -> None:
    mine = inspect.signature(getattr(BACKEND, name)).parameters.values()
    theirs = inspect.signature(nx.utils.backends._registered_algorithms[name].orig_func).parameters.values()
    assert [(each.name, each.default) for each in mine] == [(each.name, each.default) for each in theirs]


@pytest.mark.parametrize("name", sorted(CLAIMS))
def test_a_call_that_does_not_fit_the_signature_is_refused(name: str) -> None:
    assert "do not fit" in str(BACKEND.can_run(name, (PATH,), {"no_such_argument": 1}))


def cost(u: Any, v: Any, data: Any) -> int:
    return 1


@pytest.mark.parametrize(
    ("name", "args", "given", "reason"),
    [
        ("pagerank", (PATH,), {"nstart": {0: 1}}, "nstart: the answer does not depend on the start"),
        ("pagerank", (PATH,), {"alpha": 1}, "alpha: expected a number above 0 and below 1, got 1"),
        ("pagerank", (PATH,), {"tol": 0}, "tol: expected a number above 0"),
        ("pagerank", (PATH,), {"weight": cost}, "weight: expected the name of an edge attribute, got a function"),
        ("pagerank", (PATH,), {"weight": 3}, "weight: expected the name of an edge attribute, got 3"),
        (
            "pagerank",
            (PATH,),
            {"personalization": {0: -1}},
            "personalization: expected a dictionary of finite numbers of at least 0",
        ),
        ("pagerank", (PATH,), {"dangling": {0: float("nan")}}, "dangling: expected a dictionary of finite numbers"),
        ("pagerank", (PATH,), {"dangling": [1, 2]}, "dangling: expected a dictionary"),
        ("katz_centrality", (PATH,), {"beta": {0: 1, 1: 1, 2: 1, 3: 2}}, "beta: expected a number above 0"),
        ("katz_centrality", (PATH,), {"alpha": 0}, "alpha: expected a number above 0, got 0"),
        ("katz_centrality", (PATH,), {"nstart": {0: 1}}, "nstart"),
        ("katz_centrality", (PARALLEL,), {}, "multigraphs are not supported"),
        ("betweenness_centrality", (PATH,), {"weight": "weight"}, "weighted betweenness"),
        ("betweenness_centrality", (PATH,), {"k": 0}, "a sample of no nodes"),
        ("clustering", (ONE_WAY,), {}, "directed graphs are not supported"),
        ("clustering", (PARALLEL,), {}, "multigraphs are not supported"),
        ("average_clustering", (PATH,), {"weight": "weight"}, "weighted clustering"),
        ("transitivity", (ONE_WAY,), {}, "directed graphs are not supported"),
        ("core_number", (PARALLEL,), {}, "multigraphs are not supported"),
        ("single_source_dijkstra_path_length", (PATH, 0), {"weight": cost}, "got a function"),
        ("shortest_path_length", (PATH, 0), {"weight": cost}, "got a function"),
        ("minimum_spanning_tree", (PATH,), {"algorithm": "prim"}, "only kruskal is supported, got prim"),
        ("louvain_communities", (PATH,), {}, "louvain_communities is not supported"),
    ],
)
def test_refusals_say_why(name: str, args: tuple[Any, ...], given: dict[str, Any], reason: str) -> None:
    said = BACKEND.can_run(name, args, given)
    assert isinstance(said, str)
    assert reason in said


def test_other_calls_are_taken() -> None:
    assert BACKEND.can_run("pagerank", (PATH,), {"weight": None}) is True
    assert BACKEND.can_run("pagerank", (PARALLEL, 0.9), {"personalization": {0: 1}}) is True
    assert BACKEND.can_run("betweenness_centrality", (PARALLEL,), {"k": 1}) is True


def test_a_refused_call_is_an_error_if_the_backend_was_asked_for() -> None:
    with pytest.raises(
        NotImplementedError, match="'pagerank' is not implemented by 'isthmus' backend for the given arguments"
    ):
        nx.pagerank(PATH, nstart={0: 1}, backend="isthmus")


def test_small_graphs_are_left_to_networkx_unless_they_are_here_already() -> None:
    assert "a graph of 3 edges is small" in str(BACKEND.should_run("pagerank", (PATH,), {}))
    assert "is small" in str(BACKEND.should_run("pagerank", (), {"G": PATH}))
    assert BACKEND.should_run("pagerank", (nx.path_graph(FEW_EDGES + 1),), {}) is True
    here = ist.networkx_graph(ist.read((np.array([0]), np.array([1]))))
    assert BACKEND.should_run("pagerank", (here,), {}) is True


def test_members() -> None:
    assert "pagerank" in dir(BACKEND)
    assert not hasattr(BACKEND, "louvain_communities")
