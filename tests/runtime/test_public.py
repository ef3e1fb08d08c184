"""What a caller sees who gives something else than was expected: one sentence that says what to give instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import isthmus as ist
from isthmus.errors import OptionError, UnknownVertexError


@pytest.fixture(scope="module")
def graph() -> Any:
    return ist.generate("path", vertices=6)


@pytest.fixture(scope="module")
def named() -> Any:
    return ist.read((np.array(["5", "b"], object), np.array(["b", "c"], object)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("g.isthmus", r"bfs: expected a graph, got the path 'g\.isthmus'; open it with isthmus\.open\('g\.isthmus'\)"),
        (
            Path("edges.csv"),
            r"bfs: expected a graph, got the path 'edges\.csv'; read it with isthmus\.read\('edges\.csv'\)",
        ),
        (None, r"bfs: expected a graph, got None; open a store with isthmus\.open, or read edges with isthmus\.read"),
        (nx.path_graph(3), r"got a NetworkX Graph; make one with isthmus\.from_networkx\(graph\)$"),
        (nx.DiGraph([(0, 1)]), r"got a NetworkX DiGraph; make one with isthmus\.from_networkx\(graph\)$"),
        (
            pd.DataFrame({"source": [1]}),
            r"got an object of type DataFrame; if it holds edges, make a graph of them with isthmus\.read",
        ),
    ],
)
def test_no_graph(given: Any, message: str) -> None:
    for call in (lambda: ist.bfs(given, 0), lambda: ist.compare(ist.bfs, given, 0), lambda: ist.plan("bfs", given, 0)):
        with pytest.raises(OptionError, match=message):
            call()


def test_the_advice_for_networkx_works() -> None:
    other = nx.karate_club_graph()
    graph = ist.from_networkx(other)
    assert (graph.vertices, graph.edges) == (34, other.number_of_edges())


NEAREST = {"damping": "alpha", "max_iterations": "max_iter", "policies": "policy", "pers": "personalization"}


@pytest.mark.parametrize(("word", "meant"), list(NEAREST.items()))
def test_an_unknown_option_gets_the_nearest(graph: Any, word: str, meant: str) -> None:
    with pytest.raises(
        OptionError, match=rf"pagerank: unknown option {word} \(did you mean {meant}\?\); it has alpha, .*policy"
    ):
        ist.pagerank(graph, **{word: 1})


def test_an_option_like_no_other(graph: Any) -> None:
    with pytest.raises(OptionError, match=r"bfs: unknown option zzz; it has source, "):
        ist.bfs(graph, 0, zzz=1)
    with pytest.raises(OptionError, match=r"run: unknown option polcy \(did you mean policy\?\)"):
        ist.run(steps(source=0), graph, polcy="auto")


@ist.monotone(initial=2**40, start=0)
def steps(value):  # type: ignore[no-untyped-def]
    return value + 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": "2"}, "threads: expected a whole number, got '2'"),
        ({"memory": 0.1}, r"memory: expected a size such as 512MB.* got 0\.1; write 10% for that share of the edges"),
        ({"memory": "0.25"}, r"got '0\.25'; write 25% for that share"),
        ({"without": "cache"}, r"without: expected several names, such as \('cache',\), got 'cache'"),
    ],
)
def test_values_of_options(graph: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        ist.bfs(graph, 0, **options)


@pytest.mark.parametrize(
    ("which", "source", "message"),
    [
        ("graph", "5", r"no vertex '5' in the graph; its ids are integers: give 5$"),
        ("graph", "x", r"no vertex 'x' in the graph; its ids are integers$"),
        ("graph", 5.0, r"no vertex 5\.0 in the graph; its ids are integers: give 5$"),
        ("graph", 77, r"no vertex 77 in the graph$"),
        ("named", 5, r"no vertex 5 in the graph; its ids are strings: give '5'$"),
        ("named", 6, r"no vertex 6 in the graph; its ids are strings$"),
        (
            "graph",
            [0] * 1000,
            r"no vertex \[0, 0, 0, 0, 0, 0, \.\.\.\] in the graph; expected one vertex, so call it for each",
        ),
    ],
)
def test_vertices(request: pytest.FixtureRequest, which: str, source: Any, message: str) -> None:
    with pytest.raises(UnknownVertexError, match=message):
        ist.bfs(request.getfixturevalue(which), source)


def test_algorithms_by_name(graph: Any) -> None:
    found = ist.compare("bfs", graph, 0, rounds=1, policies=["auto"])
    assert found.summary()["runs"][0]["algorithm"] == "bfs"
    assert ist.plan("bfs", graph, 0).algorithm == "bfs"
    for wrong in ("bsf", 3):
        with pytest.raises(
            OptionError, match=rf"compare: expected an algorithm such as isthmus\.bfs, or one of bfs, .*, got {wrong!r}"
        ):
            ist.compare(wrong, graph, 0)
