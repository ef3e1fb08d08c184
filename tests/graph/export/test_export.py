"""Export: every format is read back as it was written, atomically, within a budget. Blocks come from
`graph/export/outgoing.py`.
"""

from __future__ import annotations

import io
import warnings

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.io

import isthmus as ist
from isthmus.errors import BudgetError, OptionError, StoreError
from isthmus.graph.export.outgoing import Outgoing

USERS = ("a.tsv", "a.csv", "a.txt.gz", "a.csv.zst", "a.parquet", "a.arrow", "a.arrows", "a.feather", "a.graphml")
NUMBERED = (
    "a.mtx",
    "a.mtx.gz",
    "a.sg",
    "a.wsg",
    "a.bcsr",
    "a.bwcsr",
    "a.ligra",
    "a.gr:galois",
    "a.gr:dimacs",
    "a.graph",
    "a.metis",
)
BASE_1 = ("a.mtx", "a.mtx.gz", "a.gr:dimacs", "a.graph", "a.metis")
UNWEIGHTED = ("a.sg", "a.bcsr", "a.el")
BOTH_WAYS = ("a.bcsr", "a.bwcsr", "a.ligra", "a.gr:galois", "a.gr:dimacs")  # do not say that a graph is undirected


def edges_of(graph):
    table = graph.to_arrow()
    return sorted(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))


def quietly(call, *given, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ist.IsthmusWarning)
        return call(*given, **options)


def made(kind, weighted, directed, order, n=40):
    random = np.random.default_rng(5)
    u, v = random.integers(0, n, (2, 300))
    u, v = np.append(u[u != v], np.arange(n)), np.append(v[u != v], (np.arange(n) + 1) % n)  # a ring: all ids occur
    w = random.integers(1, 1000, u.size)
    name = {
        "dense": lambda x: x,
        "sparse": lambda x: x * 7 - 50,
        "string": lambda x: np.char.add("v #", x.astype(str)),
    }[kind]
    return ist.read(
        (name(u), name(v), w) if weighted else (name(u), name(v)), directed=directed, parallel="drop", order=order
    )


@pytest.mark.parametrize("kind", ["dense", "sparse", "string"])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("order", ["natural", "hub"])
def test_what_is_written_is_read_back(tmp_path, sized, kind, weighted, directed, order):
    sized(block_edges=64, list_vertices=16, degree_vertices=16, result_bytes=200)
    graph = made(kind, weighted, directed, order)
    for file in (*USERS, *(() if kind == "string" else ("a.el", "a.wel"))):
        quietly(graph.export, tmp_path / file, memory=1)
        reading = {"header": True} if ".csv" in file else {}
        reading.update({"weight": 3} if weighted and file in ("a.tsv", "a.txt.gz") else {})
        reading.update({} if file == "a.graphml" else {"directed": directed})
        back = quietly(ist.read, tmp_path / file, **reading)
        expected = edges_of(graph)
        if file == "a.wel" and not weighted:
            expected = [(*edge, 1) for edge in expected]
        elif file in UNWEIGHTED:
            expected = [edge[:2] for edge in expected]
        assert edges_of(back) == expected, file
        assert back.directed == directed


@pytest.mark.parametrize("kind", ["dense", "string"])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("order", ["natural", "hub"])
def test_numbers_follow_the_order_of_the_ids(tmp_path, sized, kind, weighted, directed, order):
    sized(block_edges=64, list_vertices=16, degree_vertices=16, verified_arcs=10)
    graph = made(kind, weighted, directed, order)
    number = {user: place for place, user in enumerate(graph.ids.natural(0, graph.vertices).tolist())}
    for given in NUMBERED:
        file, _, format = given.partition(":")
        if file in ("a.graph", "a.metis") and directed:
            with pytest.raises(OptionError, match="is directed; a METIS graph is undirected"):
                graph.export(tmp_path / file)
            continue
        quietly(graph.export, tmp_path / file, format or None, memory="1MB")
        back = quietly(ist.read, tmp_path / file)
        base = 1 if given in BASE_1 else 0
        has_weights = (weighted and given not in UNWEIGHTED) or given in ("a.wsg", "a.bwcsr", "a.gr:dimacs")
        ends = [
            (number[edge[0]] + base, number[edge[1]] + base, edge[2] if weighted else 1) for edge in edges_of(graph)
        ]
        if not directed and given in BOTH_WAYS:
            ends += [(v, u, w) for u, v, w in ends]
        elif not directed:
            ends = [(min(u, v), max(u, v), w) for u, v, w in ends]
        assert edges_of(back) == sorted(edge if has_weights else edge[:2] for edge in ends), given
        assert back.vertices == graph.vertices


def test_scipy_reads_the_matrix(tmp_path):
    graph = made("dense", True, False, "natural")
    graph.export(tmp_path / "a.mtx")
    assert (scipy.io.mmread(tmp_path / "a.mtx").toarray() == graph.to_scipy().toarray()).all()


def test_notes_say_what_is_lost_or_made_up(tmp_path):
    lonely = ist.read(([1, 5], [5, 1], [2, 3]), directed=True)
    for file, message in [
        ("a.el", "the weights are not written; a name that ends in .wel keeps them"),
        ("a.sg", "the format has no ids; vertices are numbered from 0 in ascending order of their ids"),
    ]:
        with pytest.warns(ist.IsthmusWarning, match=message):
            lonely.export(tmp_path / file)
    plain = ist.read(([0, 1], [1, 0]), vertices=5)
    with pytest.warns(ist.IsthmusWarning, match="3 vertices without edges cannot be written to a list of edges"):
        plain.export(tmp_path / "a.parquet")
    with pytest.warns(ist.IsthmusWarning, match="has no weights, so every weight in the file is 1"):
        plain.export(tmp_path / "a.wel")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain.export(tmp_path / "a.sg")


@pytest.mark.parametrize(
    ("file", "format", "message"),
    [
        ("a.gr", None, r"a.gr: could be dimacs or galois; give format="),
        ("a.xyz", None, r"a.xyz: expected a name that ends in .*\.parquet"),
        ("a", None, r"expected a name that ends in"),
        ("a.isthmus", None, r"a.isthmus: expected a name that ends in"),
        ("a.adj", "adjacency", r"format: adjacency cannot be written; expected one of text, parquet, arrow"),
        ("a.txt", "nonsense", r"format: expected one of text, .*, or an ending, got 'nonsense'"),
        ("a.parquet.gz", None, r"a.parquet.gz: a Parquet table is binary; expected a name without .gz or .zst"),
    ],
)
def test_files_that_cannot_be_written(tmp_path, file, format, message):
    with pytest.raises(OptionError, match=message):
        made("dense", True, True, "natural").export(tmp_path / file, format)
    assert list(tmp_path.iterdir()) == []


def test_what_a_format_cannot_hold(tmp_path):
    reals = ist.read(([0, 0, 1], [0, 1, 0], [0.5, 1.5, 2.5]), directed=False)
    for file, message in [
        ("a.wsg", "the weights are float64, but the format has only whole numbers; weights=False leaves them out"),
        ("a.graph", "has self loops, the format has none; ingest it with self_loops='drop'"),
    ]:
        with pytest.raises(OptionError, match=message):
            reals.export(tmp_path / file)
    reals.export(tmp_path / "a.bcsr", weights=False)
    twice = ist.read(([0, 0], [1, 1], [0, 5_000_000_000]), directed=False)
    with pytest.raises(OptionError, match="has parallel edges, the format has none; ingest it with parallel='drop'"):
        twice.export(tmp_path / "a.graph", weights=False)
    with pytest.raises(
        OptionError, match="has a weight of 5000000000, but the format has only weights from 0 to 2147483647"
    ):
        twice.export(tmp_path / "a.wsg")
    with pytest.raises(OptionError, match="header= does not apply to it"):
        twice.export(tmp_path / "a.mtx", header=True)
    quotes = ist.read((np.array(['say "hi"']), np.array(["b"])))
    with pytest.raises(OptionError, match=r"has a quote or a line break; write \.csv or \.parquet"):
        quotes.export(tmp_path / "a.tsv")
    quotes.export(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == 'source,target\n"say ""hi""","b"\n'
    control = ist.read((np.array(["a\x01"]), np.array(["b"])))
    with pytest.raises(OptionError, match="has a control character, which XML cannot hold"):
        control.export(tmp_path / "a.graphml")
    without = ist.read(([0], [1]), in_edges=False)
    with pytest.raises(OptionError, match="the format needs in-edges, but the store was made with"):
        without.export(tmp_path / "a.sg")
    with pytest.raises(OptionError, match="export: expected a graph, got tuple"):
        ist.export(([0], [1]), tmp_path / "a.tsv")


def test_a_failure_leaves_the_old_file(tmp_path, monkeypatch):
    graph, path = made("dense", True, True, "natural"), tmp_path / "a.tsv"
    path.write_text("old")

    def broken(self):
        yield next(iter(original(self)))
        raise OSError(28, "No space left on device")

    original = Outgoing.tables
    monkeypatch.setattr(Outgoing, "tables", broken)
    with pytest.raises(StoreError, match=r"a.tsv: cannot write the graph: No space left on device"):
        graph.export(path)
    assert path.read_text() == "old" and [file.name for file in tmp_path.iterdir()] == ["a.tsv"]


def test_streams_and_endings_as_formats():
    graph = ist.read(([0, 2], [1, 0], [5, 6]))
    for format, text in [
        (None, "0\t1\t5\n2\t0\t6\n"),
        ("csv", "source,target,weight\n0,1,5\n2,0,6\n"),
        ("wel", "0 1 5\n2 0 6\n"),
    ]:
        file = io.BytesIO()
        ist.export(graph, file, format)
        assert file.getvalue().decode() == text
    file = io.BytesIO()
    graph.export(file, "csv", header=False, weights=False)
    assert file.getvalue() == b"0,1\n2,0\n"
    with pytest.raises(OptionError, match="standard output: a Parquet table is binary; expected a file"):
        graph.export(io.BytesIO(), "parquet")


def test_a_long_list_in_hub_order_needs_its_memory(sized):
    sized(block_edges=1 << 11)
    star = ist.generate("star", vertices=20_000, order="hub")
    with pytest.raises(BudgetError, match="a list of a store in hub order is read whole, which takes"):
        star.export(io.BytesIO(), memory="100kB")
    star.export(io.BytesIO())


def test_a_changing_graph(tmp_path):
    live = ist.stream(ist.read(([0, 1], [1, 2])))
    live.apply(inserts=([5], [0]))
    live.graph.export(tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet").to_pydict() == {"source": [0, 1, 5], "target": [1, 2, 0]}
