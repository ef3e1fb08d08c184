"""GraphML: read as written, within limits, and without entities."""

from __future__ import annotations

import gzip
import io

import networkx as nx
import pytest
from tests.naive import assert_graph, clean

import isthmus as ist
from isthmus.errors import GraphFormatError, OptionError

HEAD = '<?xml version="1.0"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
KEY = '<key id="d0" for="edge" attr.name="weight" attr.type="double"/>\n'


def graphml(body, key="", default="directed"):
    return f'{HEAD}{key}<graph edgedefault="{default}">\n{body}</graph>\n</graphml>\n'


NODES = "".join(f'<node id="{name}"/>\n' for name in ("a", "b &amp; c", "d"))


@pytest.fixture
def write(tmp_path):
    def write(text, name="g.graphml"):
        data = text if isinstance(text, bytes) else text.encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return tmp_path / name

    return write


@pytest.mark.parametrize("name", ["g.graphml", "g.graphml.gz"])
@pytest.mark.parametrize("default", ["directed", "undirected"])
def test_names_and_weights(write, name, default):
    edges = (
        '<edge source="a" target="b &amp; c"><data key="d0">2</data><data key="d1">x</data></edge>\n'
        '<edge source="b &amp; c" target="a"><data key="d0">0.5</data></edge>\n'
    )
    graph = ist.read(write(graphml(NODES + edges, KEY, default), name))
    expected = [("a", "b & c", 2.0), ("b & c", "a", 0.5)]
    assert_graph(graph, clean(expected, ["d"], directed=default == "directed"))
    assert not ist.read(write(graphml(NODES + edges, KEY, default), name), weight="none").weighted


def test_whole_weights_another_key_and_a_default(write):
    key = '<key id="k" for="edge" attr.name="cost" attr.type="int"><default>7</default></key>\n'
    edges = '<edge source="a" target="d"/><edge source="d" target="a"><data key="k"> 3 </data></edge>\n'
    text = graphml(NODES + edges, key)
    assert not ist.read(write(text)).weighted
    graph = ist.read(write(text), weight="cost")
    assert_graph(graph, clean([("a", "d", 7), ("d", "a", 3)], ["b & c"]))
    assert graph.info()["weight_type"] == "int32"
    with pytest.raises(OptionError, match="no data key of edges is named 'price'"):
        ist.read(write(text), weight="price")


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiDiGraph])
def test_what_networkx_writes(write, sized, kind):
    sized(block_edges=10)
    given = kind()
    given.add_nodes_from(range(-1, 40))
    given.add_weighted_edges_from((u, (u * 7) % 40, u + 0.5) for u in range(40))
    text = io.BytesIO()
    nx.write_graphml(given, text)
    graph = ist.read(write(text.getvalue()))
    edges = [(u, v, w) for u, v, w in given.edges(data="weight")]
    assert_graph(graph, clean(edges, given.nodes, directed=given.is_directed()))
    words = ist.read(write(text.getvalue()), ids="string")
    assert words.vertices == 41 and "-1" in words


BOMB = '<!DOCTYPE graphml [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>\n'
WEIGHED = '<edge source="a" target="d"><data key="d0">{}</data></edge>'
OUTSIDE = '<!DOCTYPE graphml SYSTEM "file:///etc/passwd">\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            HEAD.replace("\n", "\n" + BOMB, 1) + "</graphml>",
            r"g.graphml:2: has a document type or entities, which are not read",
        ),
        (OUTSIDE + "<graphml/>", r"g.graphml:1: has a document type or entities"),
        ("<graphml><graph", r"g.graphml:1: expected XML: unclosed token"),
        ("no xml", r"g.graphml:1: expected XML: syntax error"),
        ("", r"g.graphml:1: expected XML: no element found"),
        ("<gexf/>", r"g.graphml:1: expected the element graphml, got 'gexf'"),
        (HEAD + "</graphml>", r"g.graphml: expected an element graph, found none"),
        (HEAD + "<graph/></graphml>", r"g.graphml:3: expected edgedefault directed or undirected, got None"),
        (graphml("<node/>"), r"g.graphml:4: expected an attribute id of node"),
        (graphml('<edge source="a"/>'), r"g.graphml:4: expected an attribute target of edge"),
        (graphml(NODES + '<node id="a"/>\n'), r"g.graphml: expected every node once, got 'a' more than once"),
        (
            graphml(NODES + '<edge source="a" target="z"/>'),
            r"g.graphml:7: expected edges between nodes of the file, got 'z'",
        ),
        (
            graphml(NODES + '<edge source="a" target="d" directed="false"/>'),
            r"g.graphml:7: expected edges that are all directed",
        ),
        (
            graphml('<node id="a"><graph edgedefault="directed"/></node>'),
            r"g.graphml:4: expected one graph, got a second or a nested one",
        ),
        (
            graphml('<edge source="a" target="b"><edge source="a" target="b"/></edge>'),
            r"g.graphml:4: expected no edge inside an edge",
        ),
        (graphml("<hyperedge/>"), r"g.graphml:4: has a hyperedge; expected edges between two vertices"),
        (graphml("<a>" * 40 + "</a>" * 40), r"g.graphml:4: expected elements at most 32 deep"),
        (graphml(NODES + '<edge source="a" target="d"/>', KEY), r"g.graphml:8: expected a number as weight, got None"),
        (graphml(NODES + WEIGHED.format("x"), KEY), r"g.graphml:8: expected a number as weight, got 'x'"),
        (graphml(NODES + WEIGHED.format("-1"), KEY), r"row 0: expected a weight of at least 0"),
        (
            graphml('<node id="1"/>\n<edge source="1" target="x"/>'),
            r"g.graphml:5: expected integer ids of at most 18 digits, got 'x'",
        ),
    ],
)
def test_what_is_wrong_is_named(write, text, message):
    with pytest.raises(GraphFormatError, match=message):
        ist.read(write(text))


def test_edges_and_weights_that_straddle_pieces(write, monkeypatch):
    monkeypatch.setattr("isthmus.graph.formats.graphml.PIECE", 64)
    monkeypatch.setattr("isthmus.graph.formats.graphml.BLOCK", 1)
    nodes = "".join(f'<node id="{v}"/>' for v in range(50))
    edges = "".join(f'<edge source="{v}" target="{v + 1}"\n><data\nkey="d0">{v}\n</data>\n</edge>' for v in range(49))
    graph = ist.read(write(graphml(nodes + edges, KEY)))
    assert_graph(graph, clean([(v, v + 1, v) for v in range(49)]))


def test_a_tag_without_end(write):
    with pytest.raises(GraphFormatError, match=r"g.graphml:\d+: expected tags of at most 1048576 bytes"):
        ist.read(write(graphml(f'<node id="{"x" * (3 << 20)}"/>')))
