"""Devices by name: `cpu`, `model:NAME`, `cuda:NUMBER`, those of other packages, and `auto`.

`device="auto"` is the processor, unless a GPU was measured and a run on the graph is estimated to be faster there
(`devices/cuda/estimate.py`). This is the only file that imports `devices/cuda`, and only when a GPU is asked for or was
measured: a run on the processor loads nothing of it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from isthmus.devices.calibration import Calibration
from isthmus.devices.cpu import Cpu
from isthmus.devices.device import Device, DeviceInfo
from isthmus.errors import OptionError
from isthmus.graph.graph import Graph
from isthmus.kernels.compile.code_cache import cache_folder
from isthmus.plugins import Catalogue, Declared

AUTO = "auto"
DEVICES: Catalogue[type[Device]] = Catalogue(
    "device", "isthmus.devices", "Device", lambda part: isinstance(part, type) and issubclass(part, Device)
)
DEVICES.declared = {
    "cpu": Declared("cpu", "isthmus.devices.cpu", "Cpu"),
    "cuda": Declared("cuda", "isthmus.devices.cuda.device", "CudaGpu"),
    "model": Declared("model", "isthmus.devices.model.device", "ModelledGpu"),
}
MEASURED_GPUS = "gpus.json"  # in the cache folder, once `isthmus calibrate --device` has measured a GPU


@dataclass(frozen=True)
class Choice:
    """A device for a session. `given` is the word for it in options, `notes` say why it was chosen."""

    device: Device
    given: str
    notes: list[str] = field(default_factory=list)
    instead: Callable[[str], Choice] | None = None  # what to use if it fails, given the reason; None: nothing


def choose(given: str | Device, graph: Graph, memory: str | int | None) -> Choice:
    """The device that a user means for runs on a graph."""
    if isinstance(given, Device):
        return Choice(given, given.name)
    if given != AUTO:
        return Choice(device_named(given), given)
    measured = type(graph) is Graph and (cache_folder() / MEASURED_GPUS).exists()  # a graph that changes stays here
    name, note = (
        importlib.import_module("isthmus.devices.cuda.estimate").choose(graph, memory) if measured else ("", "")
    )
    notes = [note] if note else []
    if not name:
        return Choice(Cpu(), AUTO, notes)
    return Choice(device_named(name), name, notes, processor)


def processor(why: str) -> Choice:
    """The processor, in place of a GPU that was chosen."""
    return Choice(Cpu(), AUTO, [f"device auto: the processor, as {why}"])


def device_named(given: Any) -> Device:
    """The device of that name; raises OptionError if there is none, or it cannot be used."""
    kind, colon, argument = given.partition(":") if isinstance(given, str) else ("", "", "")
    if given == AUTO:
        return Cpu()
    if kind not in DEVICES:
        names = ", ".join([AUTO, "cpu", *(name for name in DEVICES.names() if name not in DEVICES.declared)])
        raise OptionError(f"device: expected one of {names}, model:NAME or cuda:NUMBER, got {given!r}")
    return DEVICES[kind].open(argument if colon else None)


def calibration_of(given: str) -> Calibration:
    """How the device of that name is measured; raises OptionError if it cannot be."""
    return DEVICES.get(given.partition(":")[0], Device).calibration(given)


def listed() -> list[DeviceInfo]:
    """All devices: this machine's processor, its GPUs, the modelled ones, and those of other packages."""
    return [info for name in DEVICES.names() for info in DEVICES[name].listed()]
