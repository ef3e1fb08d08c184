"""Mistakes of one line, as they are made in a notebook: the answer is right, or there is one error of ours with the
caller's own words.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import isthmus as ist
from isthmus.errors import GraphFormatError, IsthmusError, OptionError, StoreError
from isthmus.programs.catalogue import ALGORITHMS

ARROWS = (np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3]))
NONE: tuple[Any, Any] = (np.array([], np.int64), np.array([], np.int64))


@pytest.fixture(scope="module")
def graph() -> Any:
    return ist.read(ARROWS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("misuse")
    ist.ingest(ARROWS, path / "g.isthmus").close()
    (path / "edges.txt").write_text("0 1\n1 2\n")
    return path


ARGUMENTS: dict[str, tuple[Any, str]] = {
    "no graph": (lambda g: ist.bfs(), "bfs: expected a graph, got None"),
    "no source": (
        lambda g: ist.bfs(g),
        r"bfs: missing a required argument: 'source'; call bfs\(graph, source, depth_limit=None, predecessors=False\)",
    ),
    "no source in a session": (lambda g: g.session().sssp(), "sssp: missing a required argument: 'source'; call sssp"),
    "no source in a plan": (lambda g: ist.plan("bfs", g), "bfs: missing a required argument: 'source'"),
    "given twice": (lambda g: ist.bfs(g, 0, source=1), "bfs: multiple values for argument 'source'; call bfs"),
    "too many": (
        lambda g: ist.weakly_connected_components(g, 5),
        r"too many positional arguments; call weakly_con\w*\(graph\)",
    ),
    "a word as a flag": (lambda g: ist.bfs(g, 0, predecessors="no"), "predecessors: expected True or False, got 'no'"),
    "another weight": (lambda g: ist.pagerank(g, weight="km"), "weight: expected True or False, got 'km'"),
    "verify": (lambda g: ist.bfs(g, 0, verify="no"), "verify: expected True or False, got 'no'"),
    "without": (
        lambda g: ist.bfs(g, 0, without=None),
        r"without: expected names of parts, such as \('cache',\), got None",
    ),
    "watch": (lambda g: ist.bfs(g, 0, watch=5), "watch: expected a function, got 5"),
    "say": (lambda g: ist.bfs(g, 0, say=True), "say: expected a function, got True"),
    "checkpoint": (lambda g: ist.bfs(g, 0, checkpoint=True), "checkpoint: expected a path, got True"),
    "minutes": (
        lambda g: ist.bfs(g, 0, checkpoint="c", checkpoint_every="x"),
        "checkpoint_every: expected minutes, .* got 'x'",
    ),
    "restart": (lambda g: ist.bfs(g, 0, restart="no"), "restart: expected True or False, got 'no'"),
    "memory of a session": (lambda g: g.session(memory=0.1), r"memory: expected a size .* got 0\.1"),
    "a session": (
        lambda g: ist.bfs(g.session(), 0),
        r"bfs: expected a graph, got <Session on .*>; call session\.bfs\(\.\.\.\)",
    ),
    "run by name": (
        lambda g: ist.run("bfs", g),
        r"run: expected a program, got the algorithm bfs; call isthmus\.bfs\(graph, \.\.\.\)",
    ),
    "run an algorithm": (lambda g: ist.run(ist.bfs, g), "run: expected a program, got the algorithm bfs"),
    "one letter": (lambda g: ist.core_number(g, k=2), "core_number: unknown option k; it has"),
    "shares": (
        lambda g: ist.pagerank(g, personalization={0: -1}),
        "personalization: expected shares of at least 0, got -1 for vertex 0",
    ),
    "no shares": (
        lambda g: ist.pagerank(g, dangling={0: 0}),
        "dangling: expected at least one vertex with a share above 0",
    ),
    "an open graph": (lambda g: ist.open(g), "open: expected a path, got <Graph: .*>, which is open already"),
    "nothing to open": (lambda g: ist.open(None), "open: expected a path, got None"),
    "a table to verify": (
        lambda g: ist.verify(pd.DataFrame()),
        "verify: expected a path, got an object of type DataFrame",
    ),
    "a graph by its class": (lambda g: ist.Graph("g.isthmus"), r"Graph: graphs are made by isthmus\.open"),
    "a number to write": (lambda g: ist.bfs(g, 0).save(5), "save: expected a path, got 5"),
    "no report": (lambda g: ist.bfs(g, 0).report(None), "report: expected a path, got None"),
    "nowhere to ingest": (lambda g: ist.ingest(ARROWS, None), "ingest: expected a path, got None"),
    "calibrate": (lambda g: ist.calibrate(5), "calibrate: expected a path, got 5"),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(graph: Any, name: str) -> None:
    call, message = ARGUMENTS[name]
    with pytest.raises(OptionError, match=message):
        call(graph)


def test_flags_of_numpy_and_words_of_networkx(graph: Any) -> None:
    assert "predecessor" in ist.bfs(graph, 0, predecessors=np.True_).columns
    weighted = ist.read((*ARROWS, np.array([1.0, 9.0, 1.0, 1.0])))
    assert (
        ist.pagerank(weighted, weight="weight").values.tolist() == ist.pagerank(weighted, weight=True).values.tolist()
    )
    assert ist.pagerank(weighted, weight=None).values.tolist() == ist.pagerank(weighted).values.tolist()


def test_series_as_shares(graph: Any) -> None:
    shares = pd.Series([1.0, 2.0])
    assert ist.pagerank(graph, personalization=shares, dangling=shares).values.sum() == pytest.approx(1)


READING: dict[str, tuple[Any, str]] = {
    "directed": ({"directed": "no"}, "directed: expected True or False, got 'no'"),
    "header": ({"header": "yes"}, "header: expected True or False, got 'yes'"),
    "in_edges": ({"in_edges": "no"}, "in_edges: expected True or False, got 'no'"),
    "allow_negative": ({"allow_negative": "no"}, "allow_negative: expected True or False, got 'no'"),
    "progress": ({"progress": True}, "progress: expected an object with the methods stage and advance, got True"),
    "misspelt": ({"headers": True}, r"unknown option headers \(did you mean header\?\); known: "),
}


@pytest.mark.parametrize("name", READING)
def test_options_of_reading(folder: Path, name: str) -> None:
    options, message = READING[name]
    with pytest.raises(OptionError, match=message):
        ist.read(folder / "edges.txt", **options)


def test_overwrite_is_a_flag(folder: Path) -> None:
    with pytest.raises(OptionError, match="overwrite: expected True or False, got 'no'"):
        ist.ingest(ARROWS, folder / "g.isthmus", overwrite="no")


MATRIX = sp.csr_array(np.array([[0, 1], [1, 0]]))
TABLE = pd.DataFrame({"source": [0], "target": [1]})


@pytest.mark.parametrize(
    ("what", "options", "message"),
    [
        (ARROWS, {"header": True}, "header: does not apply to arrays; leave it out"),
        (np.array([[0, 1]]), {"comments": "x"}, "comments: does not apply to arrays"),
        (ARROWS, {"weight": 3}, "weight: expected weights as a third array, or 'none', got 3"),
        (MATRIX, {"vertices": 5}, "vertices: does not apply to a matrix"),
        (MATRIX, {"source": 2}, "source: does not apply to a matrix"),
        (
            MATRIX,
            {"weight": "cost"},
            "weight: the entries of a matrix are its weights; expected 'none' to read none, got 'cost'",
        ),
        (TABLE, {"format": "text"}, "format: does not apply to a table"),
    ],
)
def test_options_for_other_inputs_are_not_ignored(what: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        ist.read(what, **options)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (
            np.zeros((4, 4)),
            r"an adjacency matrix is read as a sparse one: isthmus\.read\(scipy\.sparse\.csr_array\(matrix\)\)",
        ),
        (
            [[0, 1], [1, 2]],
            r"a list of lists could mean rows or columns; give a list of tuples \(source, target\[, weight\]\)",
        ),
    ],
)
def test_objects_that_are_read_otherwise(what: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        ist.read(what)


def test_a_graph_is_no_input(graph: Any) -> None:
    with pytest.raises(OptionError, match="it is a graph already"):
        ist.read(graph)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (
            (np.array([0.0]), np.array([1.0])),
            r"arrays: source holds float64, .* if they are whole numbers, convert them: \.astype\('int64'\)",
        ),
        (
            pd.DataFrame({"a": [1.0, None], "b": [2, 3]}),
            r"column 'a' holds double, .* convert them: \.astype\('int64'\)",
        ),
        (([1], [2], [2**70]), f"arrays: weight: expected numbers that fit 64 bits, got {2**70}"),
        (([1], [2], [1j]), "arrays: weight holds complex128 that cannot be read .*; expected numbers as weights"),
    ],
)
def test_numbers_of_the_wrong_type(what: Any, message: str) -> None:
    with pytest.raises(GraphFormatError, match=message):
        ist.read(what)


@pytest.mark.parametrize("text", ["1 2 9223372036854775809\n", "1 2 9007199254740993\n2 3 0.5\n"])
def test_weights_that_float64_may_round_are_noted(tmp_path: Path, text: str) -> None:
    (tmp_path / "e.txt").write_text(text)
    with pytest.warns(
        ist.IsthmusWarning,
        match=r"weights beyond 2\*\*53 are stored as float64, which rounds whole numbers of that size",
    ):
        assert ist.read(tmp_path / "e.txt", weight=3).info()["weight_type"] == "float64"
    with pytest.warns(ist.IsthmusWarning, match="stored as float64"):
        ist.read((np.array([0]), np.array([1]), np.array([2**63], np.uint64)))


def test_a_word_above_numbers_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("name1,name2,cost\nx,y,5\ny,z,7\n")
    with pytest.warns(
        ist.IsthmusWarning,
        match="'name1,name2,cost' looks like names of columns and is read as an edge; give header=True",
    ):
        ist.read(tmp_path / "e.csv", weight="none")


def test_addresses_are_named_as_they_were_written(graph: Any, folder: Path) -> None:
    with pytest.raises(
        StoreError, match=r"^s3://b/g\.isthmus: is an address, expected a store on this machine; download it first"
    ):
        ist.open("s3://b/g.isthmus")
    with pytest.raises(
        StoreError, match=r"^s3://b/g\.isthmus: is an address; a store can be written to this machine only"
    ):
        ist.ingest(ARROWS, "s3://b/g.isthmus")
    with pytest.raises(StoreError, match=r"^s3://b/r\.csv: is an address; a result can be written"):
        ist.bfs(graph, 0).save("s3://b/r.csv")
    with pytest.raises(StoreError, match=r"^gs://b/c: is an address; checkpoints can be written"):
        ist.bfs(ist.open(folder / "g.isthmus"), 0, checkpoint="gs://b/c")
    with pytest.raises(StoreError, match=r"^https://b/r\.html: is an address; a report can be written"):
        ist.bfs(graph, 0).report("https://b/r.html")


def test_an_open_graph_can_be_verified(folder: Path) -> None:
    assert ist.verify(ist.open(folder / "g.isthmus")).ok


LARGE = 2**62
ODD: dict[str, tuple[Any, dict[str, Any]]] = {
    "nothing": (NONE, {}),
    "no edges": (NONE, {"vertices": 3, "directed": False}),
    "loops": ((np.array([5, 5, 7]), np.array([5, 5, 7]), np.array([0.0, 2.0, 0.0])), {}),
    "large": (
        (np.array([LARGE, -LARGE, 7]), np.array([-LARGE, 7, LARGE]), np.array([2**40, 2**62, 2**62])),
        {"directed": False},
    ),
    "negative": ((np.array([0, 1]), np.array([1, 2]), np.array([-1.5, 2.0])), {"allow_negative": True}),
    "apart": ((np.array([0, 1]), np.array([1, 2]), np.array([1e-300, 1.7e308])), {"directed": False}),
    "one way": (ARROWS, {"in_edges": False}),
}


def given(name: str, graph: Any) -> tuple[Any, ...]:
    """Arguments of an algorithm; vertex 0 where a graph has none."""
    vertices = graph.ids.natural(0, graph.vertices).tolist() or [0]
    several = {"multi_source_bfs", "personalized_pagerank"}
    if name in several:
        return (vertices[:2],)
    if name == "circuit":
        return ({vertices[0]: 1.0, vertices[-1]: 0.0},)
    if name == "nn_inference":
        return (np.ones((2, 1)),)
    return (vertices[0],) if any(each.name == "source" for each in ALGORITHMS[name].parameters) else ()


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", ALGORITHMS.names())
def test_odd_graphs_are_answered_or_refused(name: str, odd: str) -> None:
    edges, options = ODD[odd]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # those of NumPy are none of ours
        warnings.simplefilter("ignore", ist.IsthmusWarning)
        graph = ist.read(edges, **options)
        try:
            result = getattr(ist, name)(graph, *given(name, graph), say=lambda text: None)
        except IsthmusError as error:
            assert "\n" not in str(error)
            return
        values = np.ma.compressed(result.values)
        assert values.dtype == object or not np.isnan(values).any()
        assert result.to_arrow().num_rows == len(result)
