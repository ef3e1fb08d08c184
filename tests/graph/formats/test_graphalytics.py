"""LDBC Graphalytics graphs: .v, .e and .properties, and what happens when they disagree."""

from __future__ import annotations

import gzip
import shutil

import numpy as np
import pytest
from tests.naive import assert_graph, clean

import isthmus as ist
from isthmus.errors import GraphFormatError, OptionError

EDGES = [(2, 3, 0.5), (3, 9, 1.5), (9, 2, 2.25)]
VERTICES = [1, 2, 3, 4, 9]


@pytest.fixture
def write(tmp_path):
    """`write(edges, vertices, **properties)` writes the three files; returns the path without an ending."""

    def write(edges=EDGES, vertices=VERTICES, **properties):
        base = tmp_path / "g"
        base.with_suffix(".v").write_text("".join(f"{v}\n" for v in vertices))
        base.with_suffix(".e").write_text(
            "".join(" ".join(str(x) for x in edge if x is not None) + "\n" for edge in edges)
        )
        if properties:
            lines = [
                f"graph.g.{key.replace('__', '.').replace('_', '-')} = {value}" for key, value in properties.items()
            ]
            base.with_suffix(".properties").write_text("# about g\n\n" + "\n".join(lines) + "\n")
        return base

    return write


@pytest.mark.parametrize("ending", [".v", ".e", ".properties"])
@pytest.mark.parametrize("directed", ["true", "false"])
def test_any_of_the_three_files_opens_it(write, ending, directed):
    base = write(
        directed=directed,
        vertex_file="g.v",
        edge_file="g.e",
        edge_properties__names="weight",
        meta__vertices=5,
        meta__edges=3,
    )
    graph = ist.read(base.with_suffix(ending))
    assert graph.directed == (directed == "true")
    assert_graph(graph, clean(EDGES, VERTICES, directed=graph.directed))


def test_without_properties(write):
    graph = ist.read(write().with_suffix(".e"))
    assert graph.directed
    assert_graph(graph, clean(EDGES, VERTICES))
    assert_graph(ist.read(write().with_suffix(".e"), directed=False), clean(EDGES, VERTICES, directed=False))


def test_two_columns_mean_no_weights(write):
    plain = [(u, v, None) for u, v, _ in EDGES]
    assert_graph(ist.read(write(plain).with_suffix(".e")), clean(plain, VERTICES))


def test_properties_that_promise_weights(write):
    base = write([(2, 3, None)], edge_properties__names="weight")
    with pytest.raises(GraphFormatError, match=r"g.e:1: expected 'source target weight' with integer ids.*got '2 3'"):
        ist.read(base.with_suffix(".e"))


def test_weights_below_a_comment(write):
    base = write()
    base.with_suffix(".e").write_text("# header\n2 3 4.5\n")
    assert ist.read(base.with_suffix(".e")).edge_weights(2, 3).tolist() == [4.5]


def test_files_that_properties_name(write, tmp_path):
    base = write(vertex_file="nodes.txt", edge_file="links.txt.gz")
    base.with_suffix(".v").rename(tmp_path / "nodes.txt")
    (tmp_path / "links.txt.gz").write_bytes(gzip.compress(base.with_suffix(".e").read_bytes()))
    assert_graph(ist.read(base.with_suffix(".properties")), clean(EDGES, VERTICES))


@pytest.mark.parametrize("vertices", [[], [5], [-3, 7, 2**40], [0, 2**63, 2**64 - 1]])
def test_isolated_vertices_only(write, vertices):
    graph = ist.read(write([], vertices).with_suffix(".e"))
    assert (graph.vertices, graph.edges) == (len(vertices), 0)
    assert graph.ids.users(np.arange(len(vertices))).tolist() == vertices


@pytest.mark.parametrize("chunk", [40, 64])
@pytest.mark.parametrize("memory", [1, "1GB"])
@pytest.mark.parametrize("spread", [1, 2**40, -(2**40)])
def test_many_vertices_without_room(write, tmp_path, sized, chunk, memory, spread):
    sized(text_chunk=chunk)
    vertices = [v * spread for v in range(300)]
    edges = [(v, u, None) for v, u in zip(vertices[::3], vertices[1::3], strict=True)]
    graph = ist.ingest(write(edges, vertices).with_suffix(".e"), tmp_path / "g.isthmus", memory=memory)
    assert_graph(graph, clean(edges, vertices))
    assert graph.report.spilled == (memory == 1)


@pytest.mark.parametrize("wrong", [5, 100, -8, 2**62])
@pytest.mark.parametrize("memory", [1, "1GB"])
@pytest.mark.parametrize("vertices", [VERTICES, [0, 1, 2, 3, 9], [-(2**50), 2, 3, 9]])
def test_an_edge_that_names_another_vertex(write, tmp_path, wrong, memory, vertices):
    base = write([*EDGES, (2, wrong, 1.0)], vertices)
    with pytest.raises(
        GraphFormatError, match=rf"g.e: an edge names vertex {wrong}, which the vertex file does not list"
    ):
        ist.ingest(base.with_suffix(".e"), tmp_path / "g.isthmus", memory=memory)
    assert not (tmp_path / "g.isthmus").exists()


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"meta__vertices": 4}, "g.v: holds 5 vertices, the properties promise 4"),
        ({"meta__edges": 7}, "g.e: holds 3 edges, the properties promise 7"),
        ({"directed": "maybe"}, "expected directed = true or false, got 'maybe'"),
    ],
)
def test_properties_that_differ_from_the_files(write, tmp_path, properties, message):
    base = write(**properties)
    before = sorted(p.name for p in tmp_path.iterdir())
    with pytest.raises(GraphFormatError, match=message):
        ist.ingest(base.with_suffix(".e"), tmp_path / "out.isthmus")
    assert sorted(p.name for p in tmp_path.iterdir()) == before


@pytest.mark.parametrize("line", ["x", "1.5", str(2**64), "-"])
def test_a_vertex_file_with_a_bad_line(write, sized, line):
    sized(text_chunk=64)
    base = write(vertices=[*range(100), line, 7])
    with pytest.raises(GraphFormatError, match=rf"g.v:101: expected an integer id of 64 bits, got '{line}'"):
        ist.read(base.with_suffix(".e"))


def test_negative_and_huge_vertices_do_not_go_together(write):
    with pytest.raises(GraphFormatError, match=r"ids below 0 and above 2\*\*63 - 1"):
        ist.read(write([(-1, 2, None)], [-1, 2, 2**63]).with_suffix(".e"))


def test_a_bad_edge_is_named(write):
    base = write()
    base.with_suffix(".e").write_text("2 3 1\n3 x 1\n")
    with pytest.raises(GraphFormatError, match=r"g.e:2: expected 'source target weight' with integer ids"):
        ist.read(base.with_suffix(".e"))


@pytest.mark.parametrize("missing", [".v", ".e"])
def test_a_file_that_is_missing(write, missing):
    base = write(directed="true")
    base.with_suffix(missing).unlink()
    with pytest.raises(GraphFormatError, match=rf"g\{missing}: no such file; .*g.properties needs it"):
        ist.read(base.with_suffix(".properties"))


def test_properties_that_are_none(write):
    base = write()
    base.with_suffix(".properties").write_text("graph.g.directed = true\nnonsense\n")
    with pytest.raises(
        GraphFormatError, match=r"g.properties:2: expected 'graph.NAME.property = value', got 'nonsense'"
    ):
        ist.read(base.with_suffix(".properties"))


def test_string_ids_do_not_apply(write):
    with pytest.raises(OptionError, match="ids='string' does not apply"):
        ist.read(write().with_suffix(".e"), ids="string")


# ---- the graphs of LDBC


@pytest.mark.parametrize(("name", "vertices", "edges"), [("example-directed", 10, 17), ("example-undirected", 9, 12)])
def test_ldbc_examples(data, tmp_path, name, vertices, edges):
    for ending in (".v", ".e"):
        shutil.copy(data / "graphalytics" / "example" / (name + ending), tmp_path)
    shutil.copy(data / "graphalytics" / "properties" / f"{name}.properties", tmp_path)
    graph = ist.ingest(tmp_path / f"{name}.properties", tmp_path / "g.isthmus")
    assert (graph.vertices, graph.edges, graph.directed, graph.weighted) == (
        vertices,
        edges,
        name.endswith("-directed"),
        True,
    )
    assert ist.verify(graph.path).ok


@pytest.mark.parametrize("kind", ["bfs", "cdlp", "lcc", "pr", "wcc"])
@pytest.mark.parametrize("side", ["dir", "undir"])
def test_ldbc_validation_graphs_list_every_vertex(data, kind, side):
    """Their outputs name each vertex once, so the ids must be the same."""
    folder = data / "graphalytics" / kind
    graph = ist.read(folder / f"{side}-input", format="adjacency")
    expected = sorted(
        int(line.split()[0]) for line in (folder / f"{side}-output").read_text().splitlines() if line.strip()
    )
    assert graph.ids.users(np.arange(graph.vertices)).tolist() == expected


def test_a_vertex_listed_twice_is_an_error(tmp_path):
    (tmp_path / "g.v").write_text("1\n2\n1\n")
    (tmp_path / "g.e").write_text("1 2\n")
    with pytest.raises(GraphFormatError, match=r"g\.v: expected every vertex once, got 1 more than once"):
        ist.read(tmp_path / "g.e")


def test_without_properties_it_says_that_it_is_taken_as_directed(tmp_path):
    (tmp_path / "g.v").write_text("1\n2\n")
    (tmp_path / "g.e").write_text("1 2\n")
    graph = ist.read(tmp_path / "g.e")
    assert graph.directed
    assert any("taken as directed" in text for text in graph.report.warnings)
