"""Devices by name, and the list of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.gpus import LazyCard

from isthmus.devices.choose import device_named, listed
from isthmus.devices.cuda import device as cuda_device
from isthmus.errors import OptionError
from isthmus.kernels.compile import cuda_module


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Any:
    def pretend(*found: cuda_module.Found, trouble: str = "") -> None:
        monkeypatch.setattr(cuda_module, "found", lambda: (list(found), trouble))

    return pretend


def test_a_gpu_that_cannot_be_used_is_refused_with_the_reason(gpus: Any) -> None:
    gpus(trouble="no driver")
    with pytest.raises(
        OptionError, match=r"^device: cuda:0: no driver; device='cpu' runs here, device='model:rtx2080ti' models a GPU$"
    ):
        device_named("cuda:0")
    gpus(cuda_module.Found(0, "one", (8, 0)))
    with pytest.raises(OptionError, match=r"^device: cuda:1: this machine has 1 GPU, numbered from 0; "):
        device_named("cuda:1")
    gpus(cuda_module.Found(0, "one", (6, 0), "too old"))
    with pytest.raises(OptionError, match=r"^device: cuda: too old; "):
        device_named("cuda")


def test_a_gpu_that_the_driver_does_not_give_is_refused_with_its_words(
    gpus: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process fills it, or has it for itself: that shows when a context is made."""
    card = LazyCard()
    gpus(cuda_module.Found(0, "one", (8, 0)))
    monkeypatch.setattr(cuda_device, "open_card", lambda number: card)
    monkeypatch.setattr(
        card, "free_bytes", lambda: refuse("[2] Call to cuDevicePrimaryCtxRetain results in CUDA_ERROR_OUT_OF_MEMORY")
    )
    words = r"\[2\] Call to cuDevicePrimaryCtxRetain results in CUDA_ERROR_OUT_OF_MEMORY"
    with pytest.raises(
        OptionError, match=rf"^device: cuda:0: {words}; device='cpu' runs here, device='model:rtx2080ti' models a GPU$"
    ):
        device_named("cuda:0")


def refuse(text: str) -> int:
    raise RuntimeError(text)


def test_an_unmeasured_gpu_has_its_own_name_and_assumed_costs(
    gpus: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ISTHMUS_CACHE", str(tmp_path))
    gpus(cuda_module.Found(0, "H100", (9, 0)))
    monkeypatch.setattr(cuda_device, "open_card", lambda number: LazyCard(bytes=1 << 30))
    found = device_named("cuda").figures
    assert found is not None
    assert (found.name, found.gpu, found.costs_of, found.measured) == ("H100", "cuda:0", "RTX 2080 Ti", False)
    assert found.near.bytes == (1 << 30) - cuda_device.SPARE
    assert found.profile().name == "model:RTX 2080 Ti"


@pytest.mark.parametrize("text", ["cuda:", "cuda:-1", "cuda:one", "cuda:1:2", "cuda: 0"])
def test_numbers_of_gpus_are_whole(text: str) -> None:
    with pytest.raises(OptionError, match=r"^device: expected cuda:NUMBER, such as cuda:0, got "):
        device_named(text)


def test_all_devices_are_listed(gpus: Any) -> None:
    gpus(trouble="no driver")
    found = {each.device: each for each in listed()}
    assert found["cpu"].usable
    assert (found["cuda"].usable, found["cuda"].trouble, str(found["cuda"])) == (
        False,
        "no driver",
        "not usable: no driver",
    )
    assert "12.3 GB/s over the link" in found["model:rtx2080ti"].what
    gpus(cuda_module.Found(0, "RTX", (8, 6)), cuda_module.Found(1, "Old", (6, 1), "too old"))
    found = {each.device: each for each in listed()}
    what = "RTX, compute capability 8.6; not measured, so auto does not choose it"
    assert found["cuda:0"].as_dict() == {"device": "cuda:0", "what": what, "trouble": "", "usable": True}
    assert not found["cuda:1"].usable
    assert str(found["cuda:1"]) == "Old, compute capability 6.1; not usable: too old"
    assert str(found["cuda:0"]) == what
