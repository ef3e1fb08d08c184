"""Label propagation against LDBC's outputs and its definition in plain Python."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.naive import clean
from tests.programs.ways import HOW, SETTINGS, build, graphs, hows, orders, skewed, tight_ways

import isthmus as ist
from isthmus.errors import OptionError
from isthmus.programs.algorithms import label_propagation


def propagated(edges, n, directed, rounds):
    oracle = clean(edges, range(n), directed=directed)
    labels = list(range(n))
    for _ in range(rounds):
        fresh = []
        for v in range(n):
            around = [u for u, _ in oracle.out[v]] + ([u for u, _ in oracle.into[v]] if directed else [])
            counts = Counter(labels[u] for u in around)
            fresh.append(min(counts, key=lambda label: (-counts[label], label)) if counts else labels[v])
        labels = fresh
    return labels


@SETTINGS
@given(graphs(), hows, orders, st.integers(0, 6))
def test_the_definition(graph, how, order, rounds):
    edges, n, directed = graph
    result = ist.label_propagation(build(edges, n, directed, order=order), rounds, **how)
    assert result.values.tolist() == propagated(edges, n, directed, rounds)
    assert result.summary()["result"]["rounds"] <= rounds


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("least", [1, 1 << 12])
def test_every_way(tmp_path, sized, directed, least):
    """Also with a table so small that the hub's list does not fit and there are many runs."""
    sized(least_table=least, sorted_piece=100)
    edges = skewed()
    answer = propagated(edges, 420, directed, 4)
    most = 0
    for graph, how in tight_ways(edges, 420, directed, tmp_path, sized):
        result = ist.label_propagation(graph, 4, **how)
        assert result.values.tolist() == answer, how
        most = max(most, len(result.trace))
    assert most > 10 if least == 1 else most <= 12


def test_a_hub_larger_than_the_table_is_counted(monkeypatch, sized):
    sized(least_table=1)
    counted = []
    count = label_propagation.LabelPropagation._count
    monkeypatch.setattr(
        label_propagation.LabelPropagation, "_count", lambda self, *a: counted.append(a[-1]) or count(self, *a)
    )
    edges = [(0, 1 + i % 20, None) for i in range(90)] + [(0, 7, None)]
    result = ist.label_propagation(build(edges, 30, False), 1, policy="filter", memory="1%", far="ram", threads=2)
    assert counted == [0]
    assert result.values[0] == 7, "7 has six edges, like 1 to 10, and then one more"


LDBC = [
    ("example", "example-directed", True),
    ("example", "example-undirected", False),
    ("cdlp", "dir", True),
    ("cdlp", "undir", False),
]


@pytest.mark.parametrize(("folder", "name", "directed"), LDBC)
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("order", ["natural", "hub"])
def test_ldbc(data, folder, name, directed, how, order):
    root = data / "graphalytics" / folder
    example = folder == "example"
    ids, edges = set(), []
    if example:
        ids = {int(line) for line in (root / f"{name}.v").read_text().split()}
        edges = [tuple(map(int, line.split()[:2])) for line in (root / f"{name}.e").read_text().splitlines()]
    else:
        for line in (root / f"{name}-input").read_text().splitlines():
            source, *targets = map(int, line.split())
            ids.add(source)
            edges += [(source, target) for target in targets]
    if not directed:
        edges = sorted({(min(edge), max(edge)) for edge in edges})  # lists name an undirected edge at both ends
    sources, targets = np.array(edges).T
    assert ids == {*sources.tolist(), *targets.tolist()}
    result = ist.label_propagation(
        ist.read((sources, targets), directed=directed, order=order), 2 if example else 5, **how
    )
    text = (root / (f"{name}-CDLP" if example else f"{name}-output")).read_text()
    expected = {int(v): int(label) for v, label in (line.split() for line in text.splitlines())}
    assert dict(zip(result.vertices.tolist(), result.values.tolist(), strict=True)) == expected


def test_labels_are_ids():
    graph = ist.read((np.array(["b", "c", "d"], object), np.array(["c", "d", "b"], object)), directed=False)
    result = ist.label_propagation(graph, 1)
    assert result["labels"].tolist() == ["c", "b", "b"]
    assert result.summary()["result"] == {"communities": 2, "largest": 2, "rounds": 1}


def test_it_stops_when_nothing_changes():
    assert ist.label_propagation(build([], 4, True), 50).summary()["result"]["rounds"] == 1


def test_no_vertex():
    none = np.empty(0, np.int64)
    assert ist.label_propagation(ist.read((none, none))).values.size == 0


def test_bad_parameters():
    graph = build([(0, 1, None)], 2, True)
    for rounds in (-1, 2.5):
        with pytest.raises(OptionError, match=rf"max_iter: expected (a whole number|at least 0), got {rounds!r}"):
            ist.label_propagation(graph, rounds)
    with pytest.raises(ist.StoreError, match=r"label_propagation follows in-edges, and .* was stored without them"):
        ist.label_propagation(build([(0, 1, None)], 2, True, in_edges=False))
