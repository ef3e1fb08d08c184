"""Which vertices come first, and how large groups are."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import OptionError
from isthmus.programs.column import Column
from isthmus.runtime.results.top import first_rows

STAR = (np.array(["b", "c", "d", "x"], object), np.array(["hub", "hub", "hub", "y"], object))


@pytest.mark.parametrize("dtype", [np.int64, np.uint32, np.float64])
@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize("count", [0, 1, 7, 1000])
def test_the_first_rows_are_those_of_a_stable_sort(dtype: Any, ascending: bool, count: int, sized: Any) -> None:
    sized(result_rows=13)
    values = np.random.default_rng(1).integers(0, 40, 300).astype(dtype)
    values[[5, 77]] = np.inf if dtype is np.float64 else np.iinfo(dtype).max
    rows = first_rows(lambda a, b: values[a:b], values.size, Column("x"), count, ascending)
    known = [at for at in range(values.size) if at not in (5, 77)]
    assert rows.tolist() == sorted(known, key=lambda at: values[at] if ascending else -float(values[at]))[:count]


@pytest.mark.parametrize("order", ["natural", "hub"])
def test_the_top_has_the_users_ids(order: str) -> None:
    graph = ist.read(STAR, order=order)
    assert ist.pagerank(graph).top(1)[0][0] == "hub"
    result = ist.bfs(graph, "c")
    assert result.top() == [("hub", 1), ("c", 0)]
    assert result.top(1, ascending=True) == [("c", 0)]
    assert result.top(0) == []
    assert [type(part) for part in result.top(1)[0]] == [str, int]


def test_other_columns() -> None:
    result = ist.sssp(ist.generate("path", vertices=4), 0, predecessors=True)
    assert result.top(1, "distance") == [(3, 3)]
    with pytest.raises(OptionError, match="top: expected a column of numbers, got predecessor, which names vertices"):
        result.top(1, "predecessor")
    with pytest.raises(OptionError, match="top: sssp has no column 'far'; it has distance, predecessor"):
        result.top(1, "far")
    with pytest.raises(OptionError, match="count: expected at least 0, got -1"):
        result.top(-1)
    many = ist.multi_source_bfs(ist.generate("path", vertices=4), [0, 3])
    assert many.top(1, many.columns[1]) == [(0, 3)]


@pytest.mark.parametrize("order", ["natural", "hub"])
def test_sizes_of_components(order: str) -> None:
    graph = ist.read((np.array([10, 11, 20, 30, 41]), np.array([11, 12, 21, 31, 41])), order=order)
    result = ist.weakly_connected_components(graph)
    assert result.sizes() == {3: 1, 2: 2, 1: 1}
    assert list(result.sizes()) == [3, 2, 1]
    assert result.largest(3) == [(10, 3), (20, 2), (30, 2)]
    assert result.largest() == [(10, 3), (20, 2), (30, 2), (41, 1)]
    with pytest.raises(OptionError, match=r"got labels, which names vertices; largest\(\) has the largest groups"):
        result.top()
    with pytest.raises(
        OptionError, match=r"sizes: expected components or communities, got bfs; top\(\) has its largest values"
    ):
        ist.bfs(graph, 10).sizes()


def test_sizes_of_a_larger_graph() -> None:
    graph = ist.generate("uniform", vertices=3000, edges=1500, seed=5)
    result = ist.weakly_connected_components(graph)
    members = Counter(dict(result).values())
    assert result.sizes() == Counter(members.values())
    assert sum(size * count for size, count in result.sizes().items()) == 3000
    assert result.largest(5) == sorted(members.items(), key=lambda each: (-each[1], each[0]))[:5]


def test_no_vertices() -> None:
    none = np.empty(0, np.int64)
    empty = ist.read((none, none))
    assert ist.weakly_connected_components(empty).sizes() == {}
    assert ist.weakly_connected_components(empty).largest() == []
    assert ist.pagerank(empty).top() == []


@pytest.mark.parametrize(
    ("name", "options", "row", "words"),
    [
        ("pagerank", {}, "highest", r"0\.\d+ \(vertex hub\)"),
        ("bfs", {"source": "b"}, "depth", r"1 \(vertex hub\)"),
        ("sssp", {"source": "b"}, "farthest", r"1 \(vertex hub\)"),
        ("weakly_connected_components", {}, "largest", r"4 \(that of vertex b\)"),
        ("core_number", {}, "largest", r"1 \(vertex b\)"),
    ],
)
def test_the_printout_names_the_vertex(name: str, options: dict[str, Any], row: str, words: str) -> None:
    result = getattr(ist, name)(ist.read(STAR), **options)
    assert re.fullmatch(words, dict(result.describe())[row])
