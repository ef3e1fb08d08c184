"""What is found of GPUs, and why there are none."""

from __future__ import annotations

import importlib
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from isthmus.kernels.compile import cuda_module


class Failing:
    def __init__(self, text: str) -> None:
        self._text = text

    @property
    def gpus(self) -> Any:
        raise RuntimeError(self._text)


@pytest.fixture
def hardware(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Pretend that the package is there, is no simulator, and has these GPUs, or fails with this text."""

    def pretend(gpus: Any) -> None:
        module = Failing(gpus) if isinstance(gpus, str) else SimpleNamespace(gpus=gpus)
        monkeypatch.setattr(cuda_module, "missing", lambda: "")
        monkeypatch.setattr(cuda_module, "simulated", lambda: False)
        monkeypatch.setattr(cuda_module, "cuda", lambda: module)

    return pretend


def gpu(name: str | bytes, capability: tuple[int, int], concurrent: int = 1) -> SimpleNamespace:
    return SimpleNamespace(name=name, compute_capability=capability, CONCURRENT_MANAGED_ACCESS=concurrent)


def test_gpus_are_numbered_and_some_cannot_be_used(hardware: Any) -> None:
    hardware([gpu(b"RTX", (8, 6)), gpu("Old", (6, 1)), gpu("WSL", (8, 6), 0)])
    gpus, trouble = cuda_module.found()
    assert trouble == ""
    assert gpus[0] == cuda_module.Found(0, "RTX", (8, 6))
    assert gpus[1].trouble == "expected compute capability 7.5 or newer"
    assert gpus[2].trouble == "its driver lets the host and kernels use managed memory only in turn, as in WSL"


@pytest.mark.parametrize(
    ("gpus", "trouble"),
    [
        ([], "the driver finds no GPU"),
        ("Failure finding libcuda.so.1:\nsearched in ...", "no NVIDIA driver was found (libcuda.so cannot be loaded)"),
        (  # as numba-cuda 0.30 says it
            "Error at driver init: \n\nCUDA driver library cannot be found.\nEnsure that a compatible NVIDIA driver "
            "is installed.\n:",
            "no NVIDIA driver was found (libcuda.so cannot be loaded)",
        ),
        (
            "Error at driver init: Call to cuInit results in CUDA_ERROR_NO_DEVICE (100)",
            "Call to cuInit results in CUDA_ERROR_NO_DEVICE (100)",
        ),
        (  # asked for the second time
            "Error at driver init: \nCall to cuInit results in CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803):",
            "Call to cuInit results in CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)",
        ),
        ("\n: Something else:\nmore", "Something else"),
        ("", "RuntimeError"),
    ],
)
def test_reasons_are_one_line(hardware: Any, gpus: Any, trouble: str) -> None:
    hardware(gpus)
    assert cuda_module.found() == ([], trouble)


def test_errors_of_the_driver_are_known_by_their_class() -> None:
    driver = type("CudaDriverError", (Exception,), {})
    assert cuda_module.of_driver(type("CudaAPIError", (driver,), {})("[700] illegal address"))
    assert not cuda_module.of_driver(RuntimeError("CudaDriverError"))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_module.importlib.util, "find_spec", lambda name: None)
    assert cuda_module.found() == ([], "numba-cuda is not installed; install isthmus[cuda]")
    monkeypatch.setenv("ISTHMUS_CUDA", "mlir")
    assert cuda_module.missing() == "numba-cuda-mlir is not installed; install it, or unset ISTHMUS_CUDA"
    monkeypatch.setenv("ISTHMUS_CUDA", "rocm")
    assert cuda_module.missing() == "ISTHMUS_CUDA: expected numba or mlir, got 'rocm'"


def test_the_package_that_is_asked_for_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = SimpleNamespace(gpus=[])
    monkeypatch.setitem(sys.modules, "numba_cuda_mlir.cuda", stand_in)
    monkeypatch.setitem(sys.modules, "numba_cuda_mlir", SimpleNamespace(cuda=stand_in))
    monkeypatch.setenv("ISTHMUS_CUDA", "mlir")
    cuda_module.cuda.cache_clear()
    try:
        assert cuda_module.cuda() is stand_in
        monkeypatch.setattr(importlib.import_module("numba").config, "ENABLE_CUDASIM", True)
        assert not cuda_module.simulated()  # that is a simulator of numba-cuda alone
    finally:
        cuda_module.cuda.cache_clear()


def test_the_simulator_counts_as_one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba_cuda")
    monkeypatch.setattr(cuda_module, "simulated", lambda: True)
    assert [gpu.name for gpu in cuda_module.found()[0]] == ["numba-cuda's simulator"]
