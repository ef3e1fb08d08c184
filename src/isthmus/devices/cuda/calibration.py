"""A GPU's link and kernels as `isthmus calibrate --device cuda:0` measures, remembers and shows them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from isthmus.devices.calibration import Row
from isthmus.devices.cuda import device as gpus
from isthmus.devices.cuda import gpu_costs
from isthmus.devices.cuda.gpu_costs import CardCosts, StoredCosts, costs_file
from isthmus.devices.cuda.measurement import CardSamples

KINDS = (  # (member of CardCosts, words, unit)
    ("bandwidth", "copies to the GPU", "B"),
    ("back_bandwidth", "copies from the GPU", "B"),
    ("transfer_seconds", "a short copy", "s"),
    ("copy_seconds", "a short copy, waited for", "s"),
    *((f"direct {sectors}", f"kernels read {32 * sectors} B at a time", "B") for sectors in range(1, 5)),
    ("managed_bandwidth", "kernels read managed memory", "B"),
    ("fault_seconds", "a page fault", "s"),
    ("fill_bandwidth", "kernels fill memory", "B"),
    ("launch_seconds", "a launch", "s"),
    ("edge_rate", "edges pushed by a kernel", "M"),
    ("host_edge_rate", "edges pushed by the processor", "M"),
    ("packing", "lists packed together", "B"),
)


class GpuCalibration:
    """The measurement of a GPU of this machine."""

    samples: CardSamples
    found: CardCosts

    def __init__(self, device: str) -> None:
        self._device, self.words, self.key, self.file = device, device, {"device": device}, costs_file()
        self._gpu = gpus.measurable_gpu(device)
        self.before: Any = gpu_costs.recall(self._gpu.name, self._gpu.number)

    def survey(self, progress: Any, say: Any) -> bool:
        self.samples, self.found = gpus.survey(self._device, progress, say)
        after = gpu_costs.recall(self._gpu.name, self._gpu.number)
        return after is not None and after.costs == self.found

    def forget(self) -> bool:
        return gpu_costs.forget(self._gpu.name, self._gpu.number)

    def name(self, known: StoredCosts | None) -> str:
        return (self.found if known is None else known.costs).gpu

    def rounds(self) -> list[Row]:
        return [(words, unit, self.samples.kinds[name]) for name, words, unit in KINDS]

    def rows(self, known: StoredCosts) -> list[Row]:
        return [(words, unit, figure(known.costs, name)) for name, words, unit in KINDS]

    def facts(self) -> list[tuple[str, str]]:
        first = f"{self.found.start_seconds:.2f} s until a program's first kernel has run"
        return [("start", f"{first}, {self.found.kernel_seconds:.2g} s for another")]

    def as_json(self, known: StoredCosts | None) -> dict[str, Any]:
        return asdict(self.found if known is None else known.costs)


def figure(costs: CardCosts, name: str) -> float:
    kind, _, sectors = name.partition(" ")
    return float(costs.direct[int(sectors) - 1] if sectors else getattr(costs, kind))
