"""Seconds on a modelled device: worked by hand for round figures, and against what was published."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isthmus.devices.model import costs
from isthmus.devices.model.figures import builtin, find
from isthmus.link.requests import ListSpans, count, fetched

BASE = find("rtx2080ti")
ROUND = replace(
    BASE,
    link=replace(
        BASE.link,
        bandwidth=10e9,
        back_bandwidth=5e9,
        transfer_seconds=1e-6,
        copy_seconds=8e-6,
        direct=(2e9, 4e9, 8e9, 10e9),
    ),
    managed=replace(BASE.managed, fault_seconds=20e-6, peak_share=0.5),
    near=replace(BASE.near, bandwidth=400e9, push_share=0.25, update_bytes=32, launch_seconds=5e-6),
    host=replace(BASE.host, cores=4, pack_bandwidth=2e9),
)


def test_by_hand() -> None:
    assert costs.bulk(ROUND, 1_000_000, 3) == pytest.approx(103e-6)
    assert costs.direct(ROUND, np.array([10, 0, 0, 100])) == pytest.approx((10 * 32 / 2 + 100 * 128 / 10) * 1e-9)
    assert costs.compaction(ROUND, 8_000_000, 8_000_000) == pytest.approx(1e-3)
    assert costs.compaction(ROUND, 12_000_000, 4_000_000) == pytest.approx(1e-3), (
        "what is fetched counts as well as what is kept"
    )
    assert costs.compaction(ROUND, 8_000_000, 8_000_000, 1) == pytest.approx(4e-3)
    assert costs.kernel(ROUND, 1_000_000, 8, 2) == pytest.approx(10e-6 + 40e6 / 100e9)
    assert costs.scan(ROUND, 400_000) == pytest.approx(6e-6)
    assert costs.copy_back(ROUND, 5000, 2) == pytest.approx(17e-6)


def test_faults_by_hand() -> None:
    assert costs.paged(ROUND, 4096, 1, 1) == pytest.approx(21e-6 + 0.4096e-6), "a single page: nothing but the fault"
    assert costs.paged(ROUND, 2_000_000, 1, 1) == pytest.approx(400e-6), (
        "a long migration: half the bulk bandwidth and no more"
    )
    assert costs.paged(ROUND, 2_000_000, 1, 1, 1_000_000) == pytest.approx(600e-6), "and what has to go back"
    assert costs.paged(ROUND, 0, 0, 0) == 0


def test_arrays_give_arrays() -> None:
    sizes = np.array([0, 1_000_000])
    assert costs.bulk(ROUND, sizes, 0).tolist() == [0, 100e-6]
    counts = np.array([[10, 0, 0, 100], [0, 0, 0, 0]])
    assert costs.direct(ROUND, counts).tolist() == pytest.approx([1440e-9, 0])
    assert costs.paged(ROUND, sizes, 0, 0).tolist() == pytest.approx([0, 200e-6])


@pytest.mark.parametrize("name", builtin())
def test_more_never_takes_less(name: str) -> None:
    device = find(name)
    sizes = np.arange(0, 1 << 22, 4096)
    for seconds in (
        costs.bulk(device, sizes),
        costs.paged(device, sizes, sizes // 2**20, sizes // 4096),
        costs.compaction(device, sizes, sizes),
        costs.kernel(device, sizes, 4),
        costs.copy_back(device, sizes),
        costs.scan(device, sizes),
    ):
        assert (np.diff(seconds) > 0).all()
    single = costs.direct(device, np.eye(4))
    assert (np.diff(single) > 0).all(), "a longer request takes longer"
    assert (np.diff(single / [32, 64, 96, 128]) < 0).all(), "but less for each byte"


def test_full_requests_reach_bulk_speed_on_pcie_3() -> None:
    """HyTGraph, figure 3e, after EMOGI; 32 B reach about a third."""
    full = 128e6 / costs.direct(BASE, np.array([0, 0, 0, 1_000_000]))
    short = 32e6 / costs.direct(BASE, np.array([1_000_000, 0, 0, 0]))
    assert full == pytest.approx(12.3e9)
    assert short / full == pytest.approx(1 / 3, abs=0.02)


def engines(degree: int, share: float) -> tuple[float, float, float]:
    """Seconds of filter, compaction and zero-copy for 2**20 edges in lists of `degree`, of which a share is active at
    random.
    """
    vertices = 2**20 // degree
    active = np.flatnonzero(np.random.default_rng(1).random(vertices) < share)
    packed = active.size * (degree * 4 + 8)
    lists = ListSpans(active * degree, active * degree + degree, (4,)).extents()
    packing = costs.compaction(BASE, fetched(lists, BASE.host.fetch_bytes), packed)
    return (
        float(costs.bulk(BASE, 2**22)),
        float(packing + costs.bulk(BASE, packed)),
        float(costs.direct(BASE, count(lists.offsets, lists.lengths))),
    )


def test_what_hytgraph_found_of_the_three_ways() -> None:
    """Table III: filter for mostly active, zero-copy for few and long lists, compaction for few and short ones."""
    for degree in (4, 12, 36):
        assert min(engines(degree, 0.9)) == engines(degree, 0.9)[0]
    for share in (0.01, 0.05):
        assert min(engines(36, share)) == engines(36, share)[2]
        assert min(engines(4, share)) == engines(4, share)[1]


def test_compaction_pays_only_while_little_is_active() -> None:
    """Subway, after HyTGraph section III-A: packing and moving four fifths of the edges is no better than moving all of
    them.
    """
    assert engines(36, 0.3)[1] < engines(36, 0.3)[0]
    assert engines(36, 0.8)[1] > engines(36, 0.8)[0]


@pytest.mark.parametrize("name", [name for name in builtin() if name != "gh200"])
def test_over_pcie_the_link_is_the_bottleneck(name: str) -> None:
    """The premise of the papers; over NVLink-C2C a push kernel is the slower of the two."""
    device = find(name)
    edges = 10_000_000
    assert costs.kernel(device, edges, 8) < costs.bulk(device, edges * 8)
