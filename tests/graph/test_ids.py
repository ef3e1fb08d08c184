"""User ids of every kind, there and back."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import StoreError, UnknownVertexError
from isthmus.graph.graph import Graph
from isthmus.graph.store.store import Store

EDGES = [(0, 2), (1, 2), (2, 0), (2, 1), (3, 2)]  # positions in the lists of ids below; 2 is the hub
KINDS: dict[str, list[Any]] = {
    "dense": [0, 1, 2, 3],
    "int64": [-(2**63), -1, 7, 2**63 - 1],
    "uint64": [0, 5, 2**63, 2**64 - 1],
    "string": ["", "Zoë", "a\tb", "日本"],
}


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def sections(kind: str) -> dict[str, Any]:
    if kind == "dense":
        return {}
    if kind == "string":
        encoded = [text.encode() for text in KINDS[kind]]
        assert encoded == sorted(encoded)
        offsets = np.cumsum([0, *map(len, encoded)])
        return {"ids.offsets": offsets, "ids.bytes": np.frombuffer(b"".join(encoded), np.uint8)}
    return {"ids.values": np.array(KINDS[kind], kind)}


@pytest.fixture(params=["natural", "hub"])
def graph(request: pytest.FixtureRequest, forge: Callable[..., Store], tmp_path: Path, kind: str) -> Graph:
    """The edges above, as a store with ids of one kind, in both orders."""
    out, into = np.array([0, 1, 2, 4, 5]), np.array([0, 1, 2, 5, 5])
    arrays = {
        "out.offsets": out,
        "out.targets": np.array([v for _, v in EDGES], np.uint32),
        "in.offsets": into,
        "in.targets": np.array([2, 2, 0, 1, 3], np.uint32),
    }
    natural = forge("natural", {**arrays, **sections(kind)}, ids=kind)
    if request.param == "natural":
        return Graph(natural)
    return ist.ingest(natural.path, tmp_path / "hub.isthmus", order="hub")


def test_numbers_and_users(graph: Graph, kind: str) -> None:
    numbers = [graph.ids.number(user) for user in KINDS[kind]]
    assert numbers == {"natural": [0, 1, 2, 3], "hub": [1, 2, 0, 3]}[graph.order]
    assert graph.ids.users(np.array(numbers)).tolist() == KINDS[kind]
    assert graph.ids.users(np.array(numbers[::-1] * 2, np.uint32)).tolist() == KINDS[kind][::-1] * 2
    assert graph.ids.users(np.array([], np.uint32)).size == 0


def test_users_have_the_type_of_their_ids(graph: Graph, kind: str) -> None:
    wanted = {"dense": np.int64, "int64": np.int64, "uint64": np.uint64, "string": object}
    assert graph.ids.users(np.arange(2)).dtype == wanted[kind]
    assert graph.ids.users(np.arange(0)).dtype == wanted[kind]


def test_everything_by_user_id(graph: Graph, kind: str) -> None:
    users = KINDS[kind]
    for position, user in enumerate(users):
        out = [users[v] for u, v in EDGES if u == position]
        into = [users[u] for u, v in EDGES if v == position]
        assert graph.neighbors(user).tolist() == out
        assert graph.predecessors(user).tolist() == into
        assert (graph.out_degree(user), graph.in_degree(user), graph.degree(user)) == (
            len(out),
            len(into),
            len(out) + len(into),
        )
        for other in users:
            assert graph.has_edge(user, other) == (other in out)
            assert graph.edge_weights(user, other).tolist() == [1] * (other in out)
        assert user in graph


STRANGERS: dict[str, list[Any]] = {
    "dense": [-1, 4, 2**70, -(2**70), "0", 1.0, None, True, False, np.True_, np.float64(1), b"0", (0,)],
    "int64": [0, 8, 2**63, -(2**63) - 1, "7", 7.0, None, True, np.True_],
    "uint64": [-1, 6, 2**64, "5", 5.0, None, False],
    "string": ["b", "zoë", "日", "a", "\ud800", b"", 0, None, 1.5, True],
}


def test_strangers(graph: Graph, kind: str) -> None:
    known = KINDS[kind][0]
    for stranger in STRANGERS[kind]:
        assert stranger not in graph
        assert not graph.has_edge(stranger, known)
        assert not graph.has_edge(known, stranger)
        for ask in (graph.neighbors, graph.predecessors, graph.degree, graph.out_degree, graph.in_degree):
            with pytest.raises(UnknownVertexError, match=r"no vertex .* in the graph") as caught:
                ask(stranger)
            assert repr(stranger) in str(caught.value)
        with pytest.raises(UnknownVertexError):
            graph.edge_weights(known, stranger)


@pytest.mark.parametrize("number", [np.int8(3), np.uint64(3), np.array(3)])
def test_numpy_integers_are_ids(number: Any) -> None:
    assert ist.generate("path", vertices=5).neighbors(number).tolist() == [2, 4]


def test_unknown_vertices_are_key_errors() -> None:
    with pytest.raises(KeyError, match="no vertex 9 in the graph"):
        ist.generate("path", vertices=5).neighbors(9)


@pytest.mark.parametrize("kind", ["int64", "string"])
def test_ids_far_apart_are_read_in_stretches(
    forge: Callable[..., Store], kind: str, monkeypatch: pytest.MonkeyPatch, sized: Any
) -> None:
    """A hub's neighbours lie all over the id map; reading it whole would cost memory nobody granted."""
    sized(id_stretch=64, held_id_bytes=0)
    n = 5000
    names = [b"%05d" % (3 * i) for i in range(n)]
    parts = {
        "int64": {"ids.values": np.arange(n) * 3},
        "string": {"ids.offsets": np.arange(0, 5 * n + 1, 5), "ids.bytes": np.frombuffer(b"".join(names), np.uint8)},
    }[kind]
    store = forge(
        "g", {"out.offsets": np.zeros(n + 1, np.int64), "out.targets": np.zeros(0, np.uint32), **parts}, ids=kind
    )
    most = 0
    really = Store.read

    def watched(self: Store, name: str, start: int = 0, stop: int | None = None) -> Any:
        nonlocal most
        array = really(self, name, start, stop)
        most = max(most, array.nbytes)
        return array

    monkeypatch.setattr(Store, "read", watched)
    numbers = np.random.default_rng(1).integers(0, n, 300)
    wanted = [3 * int(number) for number in numbers]
    got = Graph(store).ids.users(numbers).tolist()
    assert got == (wanted if kind == "int64" else [f"{value:05d}" for value in wanted])
    assert 0 < most <= 65 * 8


@pytest.mark.parametrize("order", ["natural", "hub"])
@pytest.mark.parametrize("kind", ["int64", "string"])
@pytest.mark.parametrize("held", [0, 1 << 20])
def test_many_look_ups_bring_a_small_id_map_into_memory(
    tmp_path: Path, kind: str, order: str, held: int, monkeypatch: pytest.MonkeyPatch, sized: Any
) -> None:
    """A name was compared with one read for every step of a search, and a vertex's names took a read of 65,536."""
    sized(held_id_bytes=held)
    name = (lambda v: f"vertex {v:04d}") if kind == "string" else (lambda v: 7 * v - 100)
    ends = (
        np.array([name(v) for v in vertices], object if kind == "string" else None)
        for vertices in (range(999), range(1, 1000))
    )
    graph = ist.ingest(tuple(ends), tmp_path / "g.isthmus", directed=False, order=order)
    for v in range(400):
        assert graph.neighbors(name(v)).tolist() == [name(u) for u in (v - 1, v + 1) if u >= 0]
    read, really = [], Store.read
    monkeypatch.setattr(Store, "read", lambda self, *given, **how: read.append(given[0]) or really(self, *given, **how))
    for v in range(400, 999):
        assert graph.neighbors(name(v)).tolist() == [name(v - 1), name(v + 1)]
        assert graph.has_edge(name(v), name(v + 1)) and name(v) in graph
    assert name(1000) not in graph
    assert any(section.startswith("ids.") for section in read) == (held == 0)
    result = ist.bfs(graph, name(0))
    graph.close()
    with pytest.raises(StoreError, match="closed"):
        graph.neighbors(name(5))
    assert result.vertices.tolist() == [name(v) for v in range(1000)]


def test_from_a_file_of_strings(tmp_path: Path) -> None:
    (tmp_path / "edges.tsv").write_text("Zoë\tadam\nadam\tbob\nbob\tZoë\nadam\t日本\n")
    graph = ist.ingest(tmp_path / "edges.tsv", tmp_path / "g.isthmus", ids="string", order="hub")
    assert graph.neighbors("adam").tolist() == ["bob", "日本"]
    assert graph.predecessors("Zoë").tolist() == ["bob"]
    assert graph.ids.users(np.arange(4)).tolist() != sorted(["Zoë", "adam", "bob", "日本"])  # hub order really differs


ORDERS = ("order.to_natural", "order.from_natural")
NAMED = {"ids.offsets": np.array([0, 1, 2, 4, 5]), "ids.bytes": np.frombuffer(b"abccd", np.uint8)}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"ids.values": np.array([1, 5, 3, 9])}, "the vertex ids do not ascend"),
        ({"ids.values": np.array([1, 5, 5, 9])}, "the vertex ids do not ascend"),
        ({**NAMED, "ids.bytes": np.frombuffer(b"abb\xffd", np.uint8)}, r"ids\.bytes has an id that is not UTF-8"),
        ({**NAMED, "ids.bytes": np.frombuffer(b"baccd", np.uint8)}, "the vertex ids do not ascend"),
        ({**NAMED, "ids.offsets": np.array([0, 3, 2, 4, 5])}, r"ids\.offsets does not ascend from 0 to 5"),
        ({**NAMED, "ids.offsets": np.array([1, 1, 2, 4, 5])}, r"ids\.offsets does not ascend from 0 to 5"),
        ({**NAMED, "ids.offsets": np.array([0, 1, 2, 4, 4])}, r"ids\.offsets does not ascend from 0 to 5"),
        ({**NAMED, "ids.offsets": np.array([0, 1, 2, 4, 2**62])}, r"ids\.offsets does not ascend from 0 to 5"),
        ({**NAMED, "ids.offsets": np.array([-3, 1, 2, 4, 5])}, r"ids\.offsets does not ascend from 0 to 5"),
    ],
)
def test_ids_that_cannot_be(forge: Callable[..., Store], arrays: dict[str, Any], message: str) -> None:
    lists = {"out.offsets": np.zeros(5, np.int64), "out.targets": np.zeros(0, np.uint32)}
    graph = Graph(forge("g", {**lists, **arrays}, ids="string" if "ids.bytes" in arrays else "int64"))
    with pytest.raises(StoreError, match=message):
        graph.ids.natural(0, 4)
    with pytest.raises(StoreError, match=message.split(" asked")[0]):  # also piece by piece
        for at in range(4):
            graph.ids.natural(at, at + 1)


def test_a_search_notices_ids_that_descend(forge: Callable[..., Store]) -> None:
    lists = {"out.offsets": np.zeros(8, np.int64), "out.targets": np.zeros(0, np.uint32)}
    graph = Graph(forge("g", {**lists, "ids.values": np.array([70, 60, 50, 40, 30, 20, 10])}, ids="int64"))
    with pytest.raises(StoreError, match="the vertex ids do not ascend"):
        graph.ids.number(70)


@pytest.mark.parametrize("wrong", [4, 0, 2**32 - 1])
def test_an_order_that_is_no_permutation(forge: Callable[..., Store], wrong: int) -> None:
    lists = {"out.offsets": np.array([0, 1, 1, 1, 1]), "out.targets": np.array([3], np.uint32)}
    orders = {
        name: np.array([2, 0, 1, 3] if name == "order.from_natural" else [1, 2, 0, 3], np.uint32) for name in ORDERS
    }
    for name in ORDERS:
        sound = Graph(forge("g", {**lists, **orders}, order="hub"))
        assert (
            sound.ids.number(0) == 2
            and sound.snapshot.naturals() is not None
            and sound.snapshot.from_naturals() is not None
        )
        spoilt = {**orders, name: np.array([*orders[name][:3], wrong], np.uint32)}
        graph = Graph(forge("g", {**lists, **spoilt}, order="hub"))
        for read in (graph.snapshot.naturals, graph.snapshot.from_naturals, lambda graph=graph: graph.ids.number(3)):
            with pytest.raises(
                StoreError, match=r"order\.\w+ (has an entry that is not a vertex|and order\.\w+ are not inverse)"
            ):
                read()


def test_an_order_is_compared_with_its_inverse(forge: Callable[..., Store], sized: Any) -> None:
    """Each of the two is a permutation; read in pieces, by many or few at a time, they must belong together."""
    sized(degree_vertices=2)
    lists = {"out.offsets": np.zeros(6, np.int64), "out.targets": np.zeros(0, np.uint32)}
    orders = {
        "order.to_natural": np.array([1, 2, 0, 3, 4], np.uint32),
        "order.from_natural": np.array([2, 0, 1, 3, 4], np.uint32),
    }
    for name in ORDERS:
        sound = Graph(forge("g", {**lists, **orders}, order="hub")).ids
        assert [*sound.numbers(0, 2), *sound.numbers(2, 5)] == [2, 0, 1, 3, 4]
        assert sound.places(np.arange(5)).tolist() == [1, 2, 0, 3, 4] and sound.numbers_of_natural(
            np.array([0, 4])
        ).tolist() == [2, 4]
        exchanged = orders[name].copy()
        exchanged[[0, 4]] = exchanged[[4, 0]]
        spoilt = Graph(forge("g", {**lists, **orders, name: exchanged}, order="hub")).ids
        reads: list[tuple[Callable[..., Any], list[Any]]] = [
            (spoilt.numbers, [1, 3]),
            (spoilt.places, [np.array([4])]),
            (spoilt.numbers_of_natural, [np.array([4])]),
            (spoilt.loaded, []),
        ]
        for read, arguments in reads:
            with pytest.raises(
                StoreError, match=r"order\.to_natural and order\.from_natural are not inverse permutations"
            ):
                read(*arguments)


@pytest.mark.parametrize("wrong", [[b"a", b"b", b"b", b"d"], [b"b", b"a", b"c", b"d"], [b"a", b"b", b"d", b"c"]])
def test_columns_of_string_ids_ascend(forge: Callable[..., Store], sized: Any, wrong: list[bytes]) -> None:
    """Also where one piece ends and the next begins."""
    sized(id_stretch=2)
    lists = {"out.offsets": np.zeros(5, np.int64), "out.targets": np.zeros(0, np.uint32)}
    for names, cuts in (
        ([b"a", b"b", b"c", b"d"], None),
        (wrong, (0, 1, 2, 3, 4)),
        (wrong, (0, 2, 4)),
        (wrong, (0, 4)),
    ):
        text = np.frombuffer(b"".join(names), np.uint8)
        ids = Graph(forge("g", {**lists, "ids.offsets": np.arange(5), "ids.bytes": text}, ids="string")).ids
        if cuts is None:
            assert ids.to_arrow(np.arange(4)).to_pylist() == ["a", "b", "c", "d"]
            continue
        with pytest.raises(StoreError, match="the vertex ids do not ascend"):
            for begin, end in pairwise(cuts):
                ids.to_arrow(np.arange(begin, end))


def test_columns_of_integer_ids_ascend_across_pieces(forge: Callable[..., Store]) -> None:
    lists = {"out.offsets": np.zeros(5, np.int64), "out.targets": np.zeros(0, np.uint32)}
    ids = Graph(forge("g", {**lists, "ids.values": np.array([1, 5, 5, 9])}, ids="int64")).ids
    assert ids.to_arrow(np.arange(2)).to_pylist() == [1, 5]
    with pytest.raises(StoreError, match="the vertex ids do not ascend"):
        ids.to_arrow(np.arange(2, 4))
