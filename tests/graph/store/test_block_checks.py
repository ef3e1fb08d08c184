"""Edges from files are checked before a kernel sees them, whichever way they come."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import StoreError
from isthmus.graph.far import ANYTHING, bounds_of_targets, bounds_of_weights
from isthmus.graph.graph import Graph
from isthmus.graph.store.files import BLOCK
from isthmus.graph.store.store import Store
from isthmus.kernels.store.block_checksums import FINE, NO_SUMS, SCRATCH, check_blocks

WAYS: list[dict[str, Any]] = [
    {},
    *({"policy": policy, "memory": "10%"} for policy in ("filter", "emogi", "subway", "unified")),
    {"far": "ram", "policy": "filter", "memory": "10%"},
    {"device": "model:rtx2080ti", "policy": "filter", "memory": "10%"},
]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "g.isthmus"
    ist.generate("rmat", path, scale=10, directed=True, weights="1:99").close()
    return path


def swap(one: Path, two: Path) -> None:
    aside = one.with_name("aside")
    os.rename(one, aside)
    os.rename(two, one)
    os.rename(aside, two)


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_sections_that_changed_places(store: Path, how: dict[str, Any]) -> None:
    """Every block has the checksum that the table beside it has; only the manifest tells that both are elsewhere."""
    for ending in ("", ".xxh3"):
        swap(store / f"out.targets{ending}", store / f"in.targets{ending}")
    with (
        ist.open(store) as graph,
        pytest.raises(StoreError, match=r"out\.targets\.xxh3: is not the table of checksums that the manifest"),
    ):
        ist.bfs(graph, 0, **how)


@pytest.mark.parametrize("name", ["out.offsets", "ids.values", "order.to_natural", "order.from_natural"])
def test_all_that_a_run_reads_is_verified(tmp_path: Path, name: str) -> None:
    ends = np.random.default_rng(1).integers(0, 500, (2, 3000)) * 10 + 3
    path = tmp_path / "g.isthmus"
    ist.ingest(tuple(ends), path, order="hub").close()
    with (path / name).open("r+b") as file:
        file.seek(2000)
        byte = file.read(1)[0]
        file.seek(2000)
        file.write(bytes([byte ^ 1]))
    with (
        ist.open(path) as graph,
        pytest.raises(StoreError, match=rf"g\.isthmus/{name}: block 0 at byte 0: the checksum does not match"),
    ):
        ist.weakly_connected_components(graph).to_arrow()  # labels are places in natural order, so both orders are read


LISTS = {"out.offsets": np.array([0, 2, 3, 4]), "out.targets": np.array([1, 2, 2, 0], np.uint32)}
WEIGHTS = np.array([1, 2, 3, 4], np.float64)


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("how", WAYS, ids=str)
@pytest.mark.parametrize(
    ("section", "value", "message"),
    [
        ("out.targets", 3, "a target is not a vertex"),
        ("out.targets", 2**32 - 1, "a target is not a vertex"),
        ("out.weights", -1.0, "a weight is negative or not finite"),
        ("out.weights", np.nan, "a weight is negative or not finite"),
    ],
)
def test_entries_that_cannot_be(
    forge: Callable[..., Store], section: str, value: Any, message: str, how: dict[str, Any], verify: bool
) -> None:
    """With right checksums, and with none looked at."""
    arrays = {**LISTS, "out.weights": WEIGHTS}
    arrays[section] = np.array([*arrays[section][:3], value], arrays[section].dtype)
    graph = Graph(forge("g", arrays))
    with pytest.raises(StoreError, match=rf"g\.isthmus/{section}: block 0 at byte 0: {message}; run isthmus verify"):
        ist.sssp(graph, 0, verify=verify, **how)


def test_neighbours_that_cannot_be(forge: Callable[..., Store]) -> None:
    graph = Graph(forge("g", {**LISTS, "out.targets": np.array([1, 3, 2, 0], np.uint32)}))
    assert graph.neighbors(1).tolist() == [2]
    with pytest.raises(StoreError, match=r"section out\.targets has an entry that is not a vertex"):
        graph.neighbors(0)


def test_a_list_that_is_not_sorted(forge: Callable[..., Store]) -> None:
    graph = Graph(forge("g", {"out.offsets": np.array([0, 3, 3, 3]), "out.targets": np.array([2, 1, 0], np.uint32)}))
    assert graph.out_degree(0) == 3
    assert isinstance(graph.has_edge(0, 1), bool)


def test_stores_that_were_opened_without_verification(store: Path) -> None:
    with (store / "out.targets").open("r+b") as file:
        file.write(b"\x02")
    with ist.open(store, verify=False) as graph:
        assert 2 in graph.neighbors(0)
        with pytest.raises(StoreError, match="checksum does not match"):
            ist.bfs(graph, 0)
        assert ist.bfs(graph, 0, verify=False).values.size == 1024


KINDS = {
    "targets": bounds_of_targets(np.uint32, 1000),
    "wide targets": bounds_of_targets(np.uint64, 2**40),
    "anything": ANYTHING,
    "whole": bounds_of_weights(np.int64, False),
    "small": bounds_of_weights(np.int32, False),
    "real": bounds_of_weights(np.float64, False),
    "signed": bounds_of_weights(np.float64, True),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(20))
def test_few_blocks_are_checked_as_many_are(kind: str, seed: int) -> None:
    """NumPy checks a few, a kernel many."""
    draw, bounds = np.random.default_rng(seed), KINDS[kind]
    values = [0, 1, 999, 1000, 2**31 - 1, 2**31, 2**32 - 1, 2**40 - 1, 2**40, 2**63 - 1, 2**63, 2**64 - 1]
    real = [0.0, -0.0, 1.5, -1.5, np.finfo(float).max, np.inf, -np.inf, np.nan, 5e-324, -5e-324]
    width = bounds.width or 8
    known = np.array(
        [value % 2 ** (8 * width) for value in [*values, *np.array(real).view(np.uint64).tolist()]], f"u{width}"
    )
    data = np.zeros(BLOCK // width, f"u{width}")
    data[draw.integers(0, data.size, 3)] = draw.choice(known, 3)
    rule = np.array([*astuple(bounds), NO_SUMS], np.uint64)
    status, _ = check_blocks(
        data.view(np.uint8), 0, BLOCK, 0, rule, np.empty(0, np.uint64), np.empty(SCRATCH, np.uint64)
    )
    assert bounds.hold_for(data.view(np.uint8)) == (status == FINE)
