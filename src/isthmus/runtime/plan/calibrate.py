"""Measuring a disk by path or a GPU by name, for `isthmus.calibrate` and the shell."""

from __future__ import annotations

from pathlib import Path
from typing import overload

from isthmus.devices import choose as device
from isthmus.devices.cuda import gpu_costs
from isthmus.devices.cuda.gpu_costs import CardCosts, StoredCosts
from isthmus.devices.cuda.measurement import TRIAL, CardSamples, Trial, measure_card
from isthmus.errors import OptionError
from isthmus.kernels.compile import cuda_module
from isthmus.link.link import Profile
from isthmus.link.profile.calibration import alone, survey
from isthmus.link.profile.measurement import Say, ignore
from isthmus.messages import option
from isthmus.progress import SILENT, Progress


@overload
def calibrate(path: str | Path = ".", progress: Progress = SILENT) -> Profile: ...
@overload
def calibrate(*, progress: Progress = SILENT, device: str) -> CardCosts: ...


def calibrate(
    path: str | Path | None = None, progress: Progress = SILENT, *, device: str | None = None
) -> Profile | CardCosts:
    """Measure the disk that a folder or store lies on, or a GPU, in a few seconds, and remember it for later runs.

    path: a store, which is read, or a folder, where a temporary test file of up to 1 GB is written; by default the
    current folder.

    device: a GPU of this machine, such as "cuda:0", instead of a disk. What it costs is then returned in place of a
    profile, and `device="auto"` may choose it.
    """
    if device is None:
        return survey("." if path is None else path, progress)[1]
    if path is not None:
        raise OptionError(
            f"calibrate: expected path, to measure a disk, or device, to measure a GPU; got {path} and {device}"
        )
    return survey_gpu(device, progress)[1]


def survey_gpu(
    text: str, progress: Progress = SILENT, say: Say = ignore, trial: Trial = TRIAL
) -> tuple[CardSamples, CardCosts]:
    """Measure a GPU and remember its costs; `say` gets a note if they cannot be saved."""
    gpu = checked_gpu(text)
    with alone(say):
        try:
            samples = measure_card(device.open_card(gpu.number), gpu.name, trial=trial, progress=progress)
        except MemoryError as error:
            raise OptionError(
                f"device: {text}: too little free memory to measure it; end other programs that use it"
            ) from error
        except Exception as error:
            if not cuda_module.of_driver(error):
                raise
            raise OptionError(f"device: {text}: {cuda_module.reason(error)}; end other programs that use it") from error
        costs = samples.costs()
        if not gpu_costs.remember(costs, gpu.number):
            say(f"not remembered: {gpu_costs.costs_file()} cannot be written; set ISTHMUS_CACHE to a folder that can")
    return samples, costs


def recall_gpu(text: str) -> StoredCosts | None:
    """What is remembered of a GPU."""
    gpu = checked_gpu(text)
    return gpu_costs.recall(gpu.name, gpu.number)


def forget_gpu(text: str) -> bool:
    gpu = checked_gpu(text)
    return gpu_costs.forget(gpu.name, gpu.number)


def checked_gpu(text: str) -> cuda_module.Found:
    """The GPU of that name; raises OptionError if it cannot be used, or is no GPU."""
    if not device.is_gpu(text):
        raise OptionError(
            f"device: expected {device.CUDA}:NUMBER, such as {device.CUDA}:0, got {text!r}; a disk is measured by "
            f"its path"
        )
    gpu = device.gpu_of(text, f"without {option('device')}, a disk is measured")
    if gpu.capability == (0, 0):
        raise OptionError(f"device: {text}: {gpu.name} has no link to measure; unset NUMBA_ENABLE_CUDASIM")
    return gpu
