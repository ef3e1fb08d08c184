"""`isthmus calibrate --device cuda:0` as a person or a script meets it: `cli/commands/calibrate.py`,
`runtime/plan/calibrate.py`, `devices/cuda/calibration.py`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.gpus import LazyCard

import isthmus as ist
from isthmus.cli.main import main
from isthmus.devices import choose
from isthmus.devices.cuda import device as cuda_device
from isthmus.devices.cuda.gpu_costs import CardCosts, recall
from isthmus.devices.cuda.measurement import Trial
from isthmus.errors import OptionError
from isthmus.kernels.compile import cuda_module

LITTLE = Trial(copied=1 << 16, lines=1 << 8, vertices=1 << 10, rows=1 << 7, degree=8, often=4, faults=4)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, sized: Any, tmp_path: Path) -> Any:
    """Run `isthmus calibrate` in this process, with a memory of its own: (exit code, out, err)."""
    monkeypatch.setenv("ISTHMUS_CACHE", str(tmp_path / "cache"))
    sized(trial_seconds=0.001, trial_buffer=1 << 20)
    measure = cuda_device.measure_card
    monkeypatch.setattr(
        cuda_device,
        "measure_card",
        lambda card, gpu, trial, progress: measure(card, gpu, 1, 2, LITTLE, progress=progress),
    )

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["isthmus", "calibrate", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        return (int(stopped.value.code or 0), *capsys.readouterr())

    return run


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> LazyCard:
    card = LazyCard()
    monkeypatch.setattr(cuda_module, "found", lambda: ([cuda_module.Found(0, "Lazy RTX", (8, 0))], ""))
    monkeypatch.setattr(cuda_device, "open_card", lambda number: card)
    return card


def test_a_gpu_is_measured_remembered_shown_and_forgotten(call: Any, card: LazyCard) -> None:
    assert choose.device_named("cuda:0").figures.measured is False
    code, out, err = call("--device", "cuda:0")
    assert (code, err, card.held) == (0, "", {})
    lines = out.splitlines()
    assert lines[0] == "Lazy RTX" and lines[1].split() == ["median", "lowest", "highest"]
    for words in (
        "copies to the GPU",
        "kernels read 32 B at a time",
        "kernels read 128 B at a time",
        "a launch",
        "edges pushed by a",
        "kernels read managed memory",
        "a page fault",
    ):
        assert [line for line in lines if line.startswith(words)], words
    assert "remembered" in lines[-1]
    assert choose.device_named("cuda:0").figures.measured is True
    assert choose.device_named("cuda:0").figures.name == "Lazy RTX"

    code, out, _ = call("--device", "cuda:0", "--show")
    assert code == 0 and "just now" in out and "copies from the GPU" in out
    code, out, _ = call("--device", "cuda:0")
    assert out.splitlines()[1].split() == ["median", "lowest", "highest", "just", "now"]
    code, out, _ = call("--device", "cuda:0", "--forget")
    assert (code, out) == (0, "forgotten: Lazy RTX, measured just now\n")
    assert call("--device", "cuda:0", "--show")[1] == "nothing is remembered of cuda:0\n"


def test_from_python(call: Any, card: LazyCard) -> None:
    costs = ist.calibrate(device="cuda:0")
    assert isinstance(costs, CardCosts) and costs.gpu == "Lazy RTX"
    known = recall("Lazy RTX", 0)
    assert known is not None and known.costs == costs
    with pytest.raises(
        OptionError,
        match=r"^calibrate: expected path, to measure a disk, or device, to measure a GPU; got \. and cuda:0$",
    ):
        ist.calibrate(".", device="cuda:0")
    with pytest.raises(OptionError, match="cpu has no link to measure; a disk is measured by its path"):
        ist.calibrate(device="cpu")


def test_json(call: Any, card: LazyCard) -> None:
    found = json.loads(call("--device", "cuda:0", "--json")[1])
    assert found.keys() == {*CardCosts.__dataclass_fields__, "device", "seconds", "remembered", "before"}
    assert (found["device"], found["gpu"], found["remembered"], found["before"]) == ("cuda:0", "Lazy RTX", True, None)
    assert found["bandwidth"] > 0 and len(found["direct"]) == 4
    shown = json.loads(call("--device", "cuda:0", "--show", "--json")[1])["remembered"]
    assert shown["bandwidth"] == found["bandwidth"] and shown["age_seconds"] < 60
    assert json.loads(call("--device", "cuda:0", "--forget", "--json")[1]) == {"device": "cuda:0", "forgotten": True}


@pytest.mark.parametrize("more", [(), ("--show",), ("--forget",)])
def test_without_a_gpu_it_is_one_clear_line(call: Any, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]) -> None:
    monkeypatch.setattr(cuda_module, "found", lambda: ([], "no NVIDIA driver was found (libcuda.so cannot be loaded)"))
    code, out, err = call("--device", "cuda:0", *more)
    assert (code, out) == (2, "")
    reason = "no NVIDIA driver was found (libcuda.so cannot be loaded)"
    assert err == f"error: device: cuda:0: {reason}; without --device, a disk is measured\n"


def test_what_cannot_be_measured_is_refused(call: Any, card: LazyCard, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments, words in (
        (("--device", "cpu"), "expected cuda:NUMBER"),
        ((".", "--device", "cuda:0"), "expected a path, to measure a disk, or --device"),
        (("--device", "cuda:0", "--show", "--forget"), "expected --show or --forget, not both"),
    ):
        code, _, err = call(*arguments)
        assert code == 2 and words in err.replace("\n", " ")
    card.fails_at = 0
    code, _, err = call("--device", "cuda:0")
    assert code == 2 and "too little free memory" in err
    refused = type("CudaDriverError", (Exception,), {})("[46] CUDA_ERROR_DEVICE_UNAVAILABLE")
    monkeypatch.setattr(card, "stream", lambda: fail(refused))
    code, _, err = call("--device", "cuda:0")
    assert (code, err) == (
        2,
        "error: device: cuda:0: [46] CUDA_ERROR_DEVICE_UNAVAILABLE; end other programs that use it\n",
    )
    monkeypatch.setattr(cuda_module, "found", lambda: ([cuda_module.Found(0, "numba-cuda's simulator", (0, 0))], ""))
    code, _, err = call("--device", "cuda:0")
    assert code == 2 and "has no link to measure" in err


def fail(error: Exception) -> None:
    raise error


def test_costs_that_cannot_be_saved_are_told(
    call: Any, card: LazyCard, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ISTHMUS_CACHE", str(tmp_path / "file"))
    code, out, err = call("--device", "cuda:0")
    assert code == 0 and "not remembered" in err and "remembered  in" not in out
