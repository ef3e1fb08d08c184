"""The link to a changed graph on disk: what it moves is the changed graph, block by block and list by list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.graph.changing.change import Edits
from isthmus.graph.overlay.overlay_graph import OverlayGraph
from isthmus.graph.store.files import BLOCK, aligned_empty
from isthmus.kernels.changing.packed_array import DELETE, INSERT
from isthmus.link.link import Extents
from isthmus.link.open import open_link
from isthmus.link.patched import PatchedLink
from isthmus.link.profile.calibration import GUESS
from isthmus.link.requests import ListSpans


@pytest.fixture
def graph(tmp_path: Path, sized: Any) -> Any:
    sized(few_bytes=0, staging=1)
    with (
        ist.generate("rmat", tmp_path / "g.isthmus", scale=11, weights="1:9", seed=3) as base,
        OverlayGraph(base, 2) as graph,
    ):
        draw = np.random.default_rng(1)
        wishes = draw.choice([INSERT, DELETE], 3000).astype(np.uint8)
        graph.apply(Edits(wishes, *draw.integers(0, graph.vertices, (2, 3000)), draw.integers(1, 9, 3000)))
        yield graph


def whole(graph: Any) -> list[Any]:
    return [graph.snapshot.whole(array) for array in graph.snapshot.far("out", True)]


def test_a_patched_array_has_a_patched_link(graph: Any) -> None:
    link = open_link(graph.snapshot, graph.snapshot.far("out", True), may_measure=False)
    assert isinstance(link, PatchedLink)
    link.close()


@pytest.mark.parametrize("staging", [1, 1 << 20])
def test_extents_have_the_changed_edges(graph: Any, sized: Any, staging: int) -> None:
    sized(staging=staging, few_bytes=0)
    targets, weights = whole(graph)
    link = PatchedLink(graph.snapshot.far("out", True), GUESS)
    blocks = -(-targets.nbytes // BLOCK)
    table = np.array([[0, 3, 5, 0], [1, 0, 2, 5], [0, blocks - 2, 2, 9], [1, 7, 1, 7], [0, 0, 1, 8]])
    buffer = aligned_empty(12 * BLOCK, np.uint8)
    buffer[:] = 77
    requests = link.move(Extents(table[:, 0], *(table[:, k] * BLOCK for k in (1, 2, 3))), buffer, 1)
    assert requests >= 1
    for section, block, count, place in table.tolist():
        expected = (targets, weights)[section].view(np.uint8)[block * BLOCK : (block + count) * BLOCK]
        assert buffer[place * BLOCK : place * BLOCK + expected.size].tobytes() == expected.tobytes()
    assert (buffer[11 * BLOCK :] == 77).all(), "nothing else was touched"
    link.close()


def test_only_the_lists_that_a_kernel_reads_are_brought(graph: Any) -> None:
    targets, weights = whole(graph)
    begins, ends = graph.snapshot.lists("out").arrays
    rows = np.array([3, 4, 17, 900, 901, 2000])
    rows = rows[ends[rows] > begins[rows]]
    first, last = begins[rows] * 4 // BLOCK, -(-ends[rows] * 4 // BLOCK)
    low, high = int(first.min()), int(last.max())
    size = (high - low) * BLOCK
    extents = Extents(np.array([0, 1]), np.array([low, low]) * BLOCK, np.array([size, size]), np.array([0, size]))
    buffer = aligned_empty(2 * size, np.uint8)
    link = PatchedLink(graph.snapshot.far("out", True), GUESS)
    requests = link.gather(extents, buffer, ListSpans(begins[rows], ends[rows], (4, 4)), 0)
    for out, expected in ((buffer[:size], targets), (buffer[size:], weights)):
        for v in rows:
            at = slice(int(begins[v]) - low * BLOCK // 4, int(ends[v]) - low * BLOCK // 4)
            assert out.view(expected.dtype)[at].tolist() == expected[begins[v] : ends[v]].tolist()
    assert 0 < requests <= 4 * rows.size
    link.close()
