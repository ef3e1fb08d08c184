"""A store as input: reordered, cleaned, stripped; and never a way to launder damage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.naive import assert_graph, clean

import isthmus as ist
from isthmus.errors import OptionError, StoreError

EDGES = [(5, 7, 1), (7, 5, 2), (5, 7, 3), (7, 7, 4), (9, 5, 5), (5, 9, 6), (-2, 9, 7)]
COLUMNS = tuple(np.array(column) for column in zip(*EDGES, strict=True))


def store(tmp_path, name="in", what=COLUMNS, **options):
    return ist.ingest(what, tmp_path / f"{name}.isthmus", **options).path


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("before", ["natural", "hub"])
@pytest.mark.parametrize("after", ["natural", "hub"])
def test_orders(tmp_path, directed, before, after):
    first = store(tmp_path, directed=directed, order=before)
    graph = ist.ingest(first, tmp_path / "out.isthmus", order=after)
    assert graph.order == after
    assert_graph(graph, clean(EDGES, directed=directed))
    assert graph.report.edges_read == len(EDGES)
    assert ist.verify(graph.path).ok


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    directed=st.booleans(),
    self_loops=st.sampled_from(["keep", "drop"]),
    parallel=st.sampled_from(["keep", "drop", "min", "sum"]),
    order=st.sampled_from(["natural", "hub"]),
)
def test_cleaning_afterwards_is_cleaning_at_once(tmp_path, directed, self_loops, parallel, order):
    first = store(tmp_path, directed=directed, overwrite=True)
    graph = ist.read(first, self_loops=self_loops, parallel=parallel, order=order)
    expected = clean(EDGES, directed=directed, self_loops=self_loops, parallel=parallel)
    assert_graph(graph, expected)
    assert graph.report.self_loops_seen == expected.loops_seen
    assert graph.report.parallel_merged == expected.merged


def test_a_directed_store_can_be_made_undirected(tmp_path):
    as_stored = sorted(EDGES, key=lambda edge: edge[:2])
    assert_graph(ist.read(store(tmp_path), directed=False), clean(as_stored, directed=False))


def test_an_undirected_store_cannot_become_directed(tmp_path):
    with pytest.raises(OptionError, match="is undirected and holds each edge in both directions"):
        ist.read(store(tmp_path, directed=False), directed=True)


def test_in_edges_can_be_dropped(tmp_path):
    graph = ist.ingest(store(tmp_path), tmp_path / "out.isthmus", in_edges=False)
    assert not graph.has_in_edges
    assert_graph(graph, clean(EDGES))


def test_string_ids_are_copied(tmp_path, sized):
    sized(copied_entries=3)
    edges = [("b", "é", None), ("a", "b", None), ("日本", "a", None)]
    columns = tuple(np.array([edge[k] for edge in edges]) for k in (0, 1))
    for order in ("hub", "natural"):
        graph = ist.ingest(store(tmp_path, order, columns), tmp_path / f"{order}-out.isthmus", order=order)
        assert_graph(graph, clean(edges))


def test_without_room(tmp_path, sized):
    sized(block_edges=50, list_vertices=16)
    random = np.random.default_rng(1).integers(0, 100, (2, 3000))
    first = store(tmp_path, what=tuple(random))
    graph = ist.ingest(first, tmp_path / "out.isthmus", memory=1, parallel="drop")
    assert graph.report.spilled
    assert_graph(graph, clean([(int(u), int(v), None) for u, v in random.T], parallel="drop"))


def test_a_store_over_itself(tmp_path):
    path = store(tmp_path)
    ist.ingest(path, path, parallel="drop", overwrite=True)
    assert_graph(ist.open(path), clean(EDGES, parallel="drop"))


def test_an_empty_store(tmp_path):
    none = np.empty(0, np.int64)
    assert ist.read(store(tmp_path, what=(none, none)), order="hub").vertices == 0


def test_negative_weights_stay_known(tmp_path):
    columns = (np.array([1]), np.array([2]), np.array([-3.5]))
    first = store(tmp_path, what=columns, allow_negative=True)
    assert ist.read(first).store.manifest.negative_weights


@pytest.mark.parametrize("option", ["source", "target", "weight", "vertices"])
def test_options_without_a_meaning_here(tmp_path, option):
    with pytest.raises(OptionError, match=f"is a store; {option}= does not apply"):
        ist.read(store(tmp_path), **{option: 1})


@pytest.mark.parametrize("section", ["out.offsets", "out.targets", "out.weights", "ids.values", "order.to_natural"])
def test_damage_is_not_copied_into_a_store_that_looks_sound(tmp_path, section):
    path = store(tmp_path, order="hub")
    with (path / section).open("r+b") as file:
        file.seek(1)
        byte = file.read(1)[0]
        file.seek(1)
        file.write(bytes([byte ^ 4]))
    with pytest.raises(StoreError, match=f"{section}: block 0 at byte 0: the checksum does not match"):
        ist.ingest(path, tmp_path / "out.isthmus")
    assert not (tmp_path / "out.isthmus").exists()


def test_a_folder_that_is_no_store(tmp_path):
    (tmp_path / "g.isthmus").mkdir()
    with pytest.raises(StoreError, match="is not an Isthmus store"):
        ist.read(tmp_path / "g.isthmus")


def test_cleaning_a_store_is_written_down(tmp_path):
    first = ist.ingest((np.array([0, 0, 1]), np.array([0, 1, 2])), tmp_path / "a.isthmus")
    assert first.info()["origin"]["self_loops"] == "keep"
    second = ist.ingest(tmp_path / "a.isthmus", tmp_path / "b.isthmus", self_loops="drop")
    assert second.info()["origin"]["self_loops"] == "drop"
    third = ist.ingest(tmp_path / "b.isthmus", tmp_path / "c.isthmus", order="hub")
    assert third.info()["origin"]["self_loops"] == "drop"
