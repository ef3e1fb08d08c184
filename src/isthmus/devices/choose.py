"""Devices by name: this machine's processor, a modelled GPU, or a GPU of this machine; and what there is to choose
from.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

from isthmus.devices.cuda.card import Card, NumbaCard
from isthmus.devices.cuda.gpu_costs import recall
from isthmus.devices.model.figures import PREFIX, Device, builtin, find
from isthmus.errors import OptionError
from isthmus.kernels.compile import cuda_module
from isthmus.memory import available, format_size
from isthmus.messages import option
from isthmus.threads import default_threads

DEVICES = ("auto", "cpu")  # and model:NAME, cuda:NUMBER
CUDA = "cuda"
SPARE = 128 << 20  # bytes of a GPU's memory that no budget uses: for rows that are sorted, and for the driver
ASSUMED = "rtx2080ti"  # whose costs policies use for a GPU that `isthmus calibrate` has not measured


def device_of(text: str) -> Device | None:
    """The figures of a GPU, modelled or of this machine; None: this machine's processor."""
    if isinstance(text, str) and text.startswith(PREFIX):
        return find(text)
    if is_gpu(text):
        gpu = gpu_of(text)
        return figures_of(gpu, max(1, free_bytes(text, gpu) - SPARE))
    if text not in DEVICES:
        raise OptionError(f"device: expected one of {', '.join(DEVICES)}, {PREFIX}NAME or {CUDA}:NUMBER, got {text!r}")
    return None


def free_bytes(text: str, gpu: cuda_module.Found) -> int:
    """Free memory of a GPU; raises OptionError if the driver does not let this process use it."""
    try:
        return open_card(gpu.number).free_bytes()
    except Exception as error:  # of the driver: another process fills the GPU, or has it for itself
        raise OptionError(f"device: {text}: {cuda_module.reason(error)}; {elsewhere()}") from error


def figures_of(gpu: cuda_module.Found, near_bytes: int) -> Device:
    """A GPU's measured costs or, if there are none, assumed ones."""
    assumed, known, place = find(ASSUMED), recall(gpu.name, gpu.number), f"{CUDA}:{gpu.number}"
    if known is None:
        near = replace(assumed.near, bytes=near_bytes)
        return replace(assumed, name=gpu.name, gpu=place, costs_of=assumed.name, near=near)
    return replace(known.costs.device(assumed, near_bytes), gpu=place)


def name_of(text: str, model: Device | None) -> str:
    """The device's name in a summary: for a built-in device as the user gave it, otherwise as the device's file states
    it.
    """
    if model is None:
        return "cpu"
    return text if is_gpu(text) or text.removeprefix(PREFIX) in builtin() else f"{PREFIX}{model.name}"


def is_gpu(text: Any) -> bool:
    return isinstance(text, str) and text.split(":")[0] == CUDA


@cache
def open_card(number: int) -> Card:
    return NumbaCard(number)


def card_of(text: str) -> Card:
    """The GPU of that name; raises OptionError if it cannot be used."""
    return open_card(gpu_of(text).number)


def gpu_of(text: str, instead: str | None = None) -> cuda_module.Found:
    """The GPU that `cuda:NUMBER` or `cuda` means; raises OptionError if it cannot be used. `instead`: what the user can
    do then.
    """
    if not re.fullmatch(r"cuda(:\d{1,4})?", text):
        raise OptionError(f"device: expected {CUDA}:NUMBER, such as {CUDA}:0, got {text!r}")
    number = int(text.partition(":")[2] or 0)
    gpus, trouble = cuda_module.found()
    if not trouble and number >= len(gpus):
        trouble = f"this machine has {len(gpus)} GPU{'s' if len(gpus) > 1 else ''}, numbered from 0"
    trouble = trouble or gpus[number].trouble
    if trouble:
        raise OptionError(f"device: {text}: {trouble}; {instead or elsewhere()}")
    return gpus[number]


def elsewhere() -> str:
    return f"{option('device', 'cpu')} runs here, {option('device', 'model:rtx2080ti')} models a GPU"


@dataclass(frozen=True)
class DeviceInfo:
    """A device for the user: its name, what it is if that is known, and why it cannot be used, or an empty text."""

    device: str
    what: str
    trouble: str = ""

    def __str__(self) -> str:
        return "; ".join(filter(None, (self.what, self.trouble and f"not usable: {self.trouble}")))

    @property
    def usable(self) -> bool:
        return not self.trouble

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "usable": self.usable}


def listed() -> list[DeviceInfo]:
    """All devices: this machine's processor, its GPUs, and the modelled ones."""
    processor = DeviceInfo("cpu", f"{default_threads()} threads, {format_size(available())} of memory available")
    gpus, trouble = cuda_module.found()
    cards = [DeviceInfo(f"{CUDA}:{gpu.number}", gpu_text(gpu), gpu.trouble) for gpu in gpus] or [
        DeviceInfo(CUDA, "", trouble)
    ]
    return [processor, *cards, *(DeviceInfo(f"{PREFIX}{name}", model_text(find(name))) for name in builtin())]


def gpu_text(gpu: cuda_module.Found) -> str:
    if gpu.capability == (0, 0):
        return gpu.name
    text = f"{gpu.name}, compute capability {gpu.capability[0]}.{gpu.capability[1]}"
    return text if gpu.trouble or recall(gpu.name, gpu.number) else f"{text}; not measured, so auto does not choose it"


def model_text(device: Device) -> str:
    return (
        f"modelled: {format_size(device.near.bytes)} near memory, {format_size(device.link.bandwidth)}/s over the link"
    )
