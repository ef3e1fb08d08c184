"""Graphs and results in other processes: pickled by path and contents, never by the numbers of open files.

Tests `graph/graph.py`, `graph/store/store.py` and `runtime/results/result.py`.
"""

from __future__ import annotations

import copy
import functools
import multiprocessing
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import StoreError

MAKE: dict[str, Any] = {
    "dense": lambda path: ist.generate("rmat", path, scale=8, seed=3),
    "hub": lambda path: ist.generate("rmat", path, scale=8, seed=3, order="hub"),
    "names": lambda path: ist.ingest((np.array(["b", "ä", "c"], object), np.array(["ä", "c", "d"], object)), path),
    "sparse": lambda path: ist.ingest((np.array([10**12, 5]), np.array([5, 7])), path),
}


@pytest.fixture(params=list(MAKE))
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with MAKE[request.param](tmp_path / "g.isthmus") as graph:
        yield graph


ELSEWHERE = """
import pickle, sys, isthmus as ist
other = ist.generate("star", sys.argv[1], vertices=9)       # its files get the numbers that the first graph's files had
graph, result = pickle.load(sys.stdin.buffer)
source = result.vertices.tolist()[1]
again = ist.bfs(graph, source)
print(graph.vertices, graph.neighbors(source).tolist(), again.filled().tolist() == result.filled().tolist())
"""


@pytest.mark.parametrize("stored", ["hub", "names"], indirect=True)
def test_in_another_process_it_is_the_same_graph(stored: Any, tmp_path: Path) -> None:
    """By file numbers it was whatever graph these belonged to there."""
    source = stored.ids.natural(1, 2)[0]
    data = pickle.dumps((stored, ist.bfs(stored, source, policy="auto")))
    command = [sys.executable, "-c", ELSEWHERE, str(tmp_path / "star.isthmus")]
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().strip() == f"{stored.vertices} {stored.neighbors(source).tolist()} True"


def test_a_pool_that_spawns(tmp_path: Path) -> None:
    with ist.generate("rmat", tmp_path / "g.isthmus", scale=8, seed=3) as graph:
        expected = [ist.bfs(graph, source).filled().tolist() for source in range(3)]
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found = pool.map(functools.partial(ist.bfs, graph), range(3))
    assert [result.filled().tolist() for result in found] == expected
    assert found[0].summary()["algorithm"] == "bfs"


def test_another_graph_at_the_path_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.isthmus"
    data = pickle.dumps(ist.generate("path", path, vertices=5))
    ist.generate("path", path, vertices=5, directed=True, in_edges=False, overwrite=True)
    with pytest.raises(
        StoreError, match=r"g\.isthmus: holds another graph than when it was pickled; open it with isthmus\.open"
    ):
        pickle.loads(data)
    ist.generate("path", path, vertices=5, overwrite=True)
    assert pickle.loads(data).edges == 4, "the same contents again"
    shutil.rmtree(path)
    with pytest.raises(StoreError, match=r"g\.isthmus: no such store"):
        pickle.loads(data)


def test_a_graph_in_memory_takes_its_arrays_along() -> None:
    graph = ist.generate("rmat", scale=8, seed=3, weights="1:9")
    found = pickle.loads(pickle.dumps(graph))
    assert (repr(found), found.snapshot.identity()) == (repr(graph), graph.snapshot.identity())
    assert ist.sssp(found, 0).filled().tolist() == ist.sssp(graph, 0).filled().tolist()
    assert graph.snapshot.identity() != ist.generate("rmat", scale=8, seed=4, weights="1:9").snapshot.identity()


@pytest.mark.parametrize("algorithm", ["bfs", "minimum_spanning_forest", "weakly_connected_components"])
def test_a_result_needs_no_store(stored: Any, algorithm: str) -> None:
    given = {"source": stored.ids.natural(0, 1)[0], "predecessors": True} if algorithm == "bfs" else {}
    result = getattr(ist, algorithm)(stored, **given)
    data = pickle.dumps(result)
    stored.close()
    shutil.rmtree(stored.path)
    found = pickle.loads(data)
    assert found.to_arrow().equals(result.to_arrow())
    assert found.vertices.tolist() == result.vertices.tolist()
    assert (found.summary(), len(found.trace)) == (result.summary(), len(result.trace))


def test_copies(stored: Any) -> None:
    with copy.deepcopy(stored) as twin:
        stored.close()
        assert twin.neighbors(twin.ids.natural(0, 1)[0]).size
    with pytest.raises(StoreError, match="the store is closed"):
        pickle.dumps(stored)


def test_open_files_and_sessions_say_why_not(tmp_path: Path) -> None:
    with ist.generate("path", tmp_path / "g.isthmus", vertices=5) as graph, graph.session() as session:
        with pytest.raises(TypeError, match=r"out\.offsets: an open file cannot be pickled"):
            pickle.dumps(graph.store.file("out.offsets"))
        with pytest.raises(TypeError, match="a session cannot be pickled, as it has threads; pickle its graph"):
            pickle.dumps(session)


def test_a_store_without_a_name_says_why_not(tmp_path: Path) -> None:
    """A changing graph on disk is frozen into one. The error used to come in the process that unpickled it."""
    ist.generate("path", tmp_path / "g.isthmus", vertices=5).close()
    with (
        ist.stream(tmp_path / "g.isthmus", on_disk=True) as live,
        pytest.raises(StoreError, match="cannot be pickled, as no other"),
    ):
        live.apply(inserts=[(0, 3)])
        pickle.dumps(live.graph)
