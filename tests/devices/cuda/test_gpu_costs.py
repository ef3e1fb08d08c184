"""Costs of a GPU are remembered, become a device, and whatever the file holds, a run goes on."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from isthmus.devices.cuda import gpu_costs
from isthmus.devices.cuda.gpu_costs import CardCosts, costs_file, forget, recall, remember
from isthmus.devices.model import costs
from isthmus.devices.model.figures import find

FAST = CardCosts(
    "RTX", 25e9, 24e9, 2e-6, 9e-6, (6e9, 12e9, 18e9, 24e9), 500e9, 5e-6, 4e9, 10e9, 8, 4e8, 1.5, 0.4, 20e9, 30e-6
)
ASSUMED = find("rtx2080ti")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISTHMUS_CACHE", str(tmp_path / "cache"))


def test_the_device_has_the_measured_costs_and_says_so() -> None:
    device = FAST.device(ASSUMED, 1 << 33)
    assert (device.name, device.measured, device.near.bytes) == ("RTX", True, 1 << 33)
    assert (device.link.bandwidth, device.link.direct) == (25e9, FAST.direct)
    assert costs.bulk(device, 25e9, 1) == pytest.approx(1 + 2e-6)
    assert costs.kernel(device, 4e9, 4, 0) == pytest.approx(1.0)
    assert costs.scan(device, 500e9, 0) == pytest.approx(1.0)
    assert costs.copy_back(device, 24e9) == pytest.approx(1 + 9e-6)
    profile = device.profile()
    assert (profile.name, profile.measured, profile.bandwidth) == ("RTX", True, 25e9)
    assert profile.compaction == pytest.approx(FAST.packing)
    assert profile.request_rate == pytest.approx(24e9 / 128)
    assert device.sources["link.bandwidth"] == "measured by isthmus calibrate"
    assert device.managed.peak_share == pytest.approx(20 / 25)
    assert device.managed.fault_seconds == pytest.approx(30e-6 - 2e-6 - ASSUMED.managed.first_bytes / 25e9)
    assert costs.paged(device, ASSUMED.managed.first_bytes, 1, 1) == pytest.approx(30e-6)  # as it was measured
    assert device.managed.block_bytes == ASSUMED.managed.block_bytes


def test_figures_that_contradict_each_other_still_make_a_device() -> None:
    """Measurements are noisy: longer requests may seem slower, and a push faster than a fill."""
    noisy = replace(FAST, direct=(12e9, 6e9, 40e9, 30e9), edge_rate=1e12, managed_bandwidth=30e9, fault_seconds=1e-6)
    device = noisy.device(ASSUMED, 1)
    assert device.link.direct == pytest.approx((12e9, 12e9, 27.5e9, 27.5e9))
    assert device.near.push_share == 1 and device.managed.peak_share == 1 and device.managed.fault_seconds == 1e-9
    assert costs.kernel(device, 1e12, 4, 0) == pytest.approx(1.0)


def test_costs_are_remembered_by_number_and_name() -> None:
    assert not gpu_costs.known()
    assert remember(FAST, 0) and remember(replace(FAST, gpu="Old"), 1)
    known = recall("RTX", 0)
    assert known is not None and known.costs == FAST
    assert recall("RTX", 1) is None and recall("Old", 0) is None
    assert forget("RTX", 0) and not forget("RTX", 0)
    assert recall("RTX", 0) is None and recall("Old", 1) is not None


@pytest.mark.parametrize(
    "change",
    [
        {"bandwidth": 0},
        {"bandwidth": -1.0},
        {"bandwidth": "fast"},
        {"bandwidth": True},
        {"direct": [1.0]},
        {"direct": None},
        {"cores": 1.5},
        {"gpu": 7},
        {"when": -1},
        {"when": "today"},
        {"more": 1},
        {"edge_rate": float("nan")},
        {"packing": 1e30},
    ],
)
def test_a_damaged_entry_is_no_entry(change: dict[str, Any]) -> None:
    gpu_costs.write({"0 RTX": {"when": 1.0, **asdict(FAST), **change}})
    assert recall("RTX", 0) is None


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"version": 9, "gpus": {"0 RTX": {}}}', '{"version": 2, "gpus": 3}', "\udcff"]
)
def test_a_damaged_file_is_no_file(text: str) -> None:
    costs_file().parent.mkdir(parents=True)
    costs_file().write_text(text, errors="surrogateescape")
    assert not gpu_costs.known() and recall("RTX", 0) is None
    assert remember(FAST, 0)
    assert json.loads(costs_file().read_text())["gpus"].keys() == {"0 RTX"}


def test_a_folder_that_cannot_be_written_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ISTHMUS_CACHE", str(tmp_path / "file"))
    assert not remember(FAST, 0)
