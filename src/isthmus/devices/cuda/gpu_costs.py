"""Costs of a GPU of this machine: measured by `isthmus calibrate --device cuda:0`, kept in a file, and used in place of
assumed ones.

They become a `Device`, as modelled devices have it, so policies and the clock use them in the same way. What is not
measured (how much a fault brings, the number of requests in flight) stays that of the assumed device.
"""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from isthmus.devices.model.figures import FASTER, GpuFigures, checked
from isthmus.graph.store.replacement import replacing
from isthmus.kernels.compile.code_cache import cache_folder

VERSION = 2
MEASURED = "measured by isthmus calibrate"
SHORTEST = 1e-9  # seconds of a batch of faults
LIMIT = 1e18  # of any figure; products with bytes stay finite


@dataclass(frozen=True)
class CardCosts:
    """Medians of the measured rounds. Rates are per second."""

    gpu: str
    bandwidth: float  # bytes copied to the GPU
    back_bandwidth: float  # bytes copied from the GPU
    transfer_seconds: float  # of a short copy among others
    copy_seconds: float  # of a short copy that the host waits for
    direct: tuple[float, ...]  # bytes that kernels read from host memory by requests of 1, 2, ... sectors
    fill_bandwidth: float  # bytes of near memory written by a kernel
    launch_seconds: float
    edge_rate: float  # edges pushed by a kernel
    packing: float  # bytes of lists packed by all cores
    cores: int
    host_edge_rate: float  # edges pushed by the processor, all cores
    start_seconds: float  # until the first kernel of a program has run: most of it compiles
    kernel_seconds: float  # until another one has
    managed_bandwidth: float  # bytes of managed memory that a kernel reads from the host in order
    fault_seconds: float  # of a page of managed memory that a kernel waits for

    def device(self, assumed: GpuFigures, near_bytes: int) -> GpuFigures:
        """A device with these costs; its other figures are the assumed ones."""
        line, fetch = assumed.link.request_bytes, assumed.host.fetch_bytes
        direct = np.minimum(np.maximum.accumulate(self.direct), FASTER * self.bandwidth)
        # Bytes of near memory, as the model counts.
        pushed = self.edge_rate * (np.dtype(np.uint32).itemsize + assumed.near.update_bytes)
        near = max(self.fill_bandwidth, pushed)
        parts: dict[str, dict[str, Any]] = {
            "link": {
                "bandwidth": self.bandwidth,
                "back_bandwidth": self.back_bandwidth,
                "transfer_seconds": self.transfer_seconds,
                "copy_seconds": self.copy_seconds,
                "direct": tuple(direct.tolist()),
            },
            "managed": {
                "peak_share": min(1.0, self.managed_bandwidth / self.bandwidth),
                "fault_seconds": max(
                    self.fault_seconds - self.transfer_seconds - assumed.managed.first_bytes / self.bandwidth, SHORTEST
                ),
            },
            "near": {
                "bytes": near_bytes,
                "bandwidth": near,
                "push_share": pushed / near,
                "launch_seconds": self.launch_seconds,
            },
            "host": {
                "cores": self.cores,
                "pack_bandwidth": self.packing / self.cores * (2 * line + fetch) / (2 * line),
            },
        }
        sources = {
            **assumed.sources,
            **{f"{part}.{key}": MEASURED for part, figures in parts.items() for key in figures},
        }
        changed = {part: replace(getattr(assumed, part), **figures) for part, figures in parts.items()}
        return checked(replace(assumed, name=self.gpu, sources=sources, measured=True, **changed), self.gpu)


@dataclass(frozen=True)
class StoredCosts:
    """Costs, and when they were measured, in seconds since 1970."""

    costs: CardCosts
    when: float


def costs_file() -> Path:
    return cache_folder() / "gpus.json"


def key_of(gpu: str, number: int) -> str:
    """The name of an entry: two GPUs of a kind may have links of different speed."""
    return f"{number} {gpu}"


def recall(gpu: str, number: int) -> StoredCosts | None:
    """The remembered costs of a GPU; None if there are none, or they are damaged."""
    with contextlib.suppress(KeyError, TypeError, ValueError, OverflowError):
        return decode(entries()[key_of(gpu, number)])
    return None


def known() -> list[CardCosts]:
    """The costs of all GPUs that were measured here; damaged entries are left out."""
    found = []
    for entry in entries().values():
        with contextlib.suppress(KeyError, TypeError, ValueError, OverflowError):
            found.append(decode(entry).costs)
    return found


def entries() -> dict[str, Any]:
    """All entries of the file, as written; empty if it is missing or damaged."""
    try:
        written = json.loads(costs_file().read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    known = written.get("gpus") if isinstance(written, dict) and written.get("version") == VERSION else None
    return known if isinstance(known, dict) else {}


def decode(entry: Any) -> StoredCosts:
    """An entry as costs with positive figures, or an error."""
    figures = dict(entry)
    when = float(figures.pop("when"))
    figures["direct"] = tuple(figures["direct"])
    costs = CardCosts(**figures)
    numbers = [value for field in fields(costs) for value in flat(getattr(costs, field.name)) if field.name != "gpu"]
    if not isinstance(costs.gpu, str) or any(
        isinstance(number, bool) or not 1 / LIMIT <= number <= LIMIT for number in numbers
    ):
        raise ValueError(f"not a GPU: {costs}")
    if len(costs.direct) != 4 or not isinstance(costs.cores, int) or not 0 <= when < 1e12:
        raise ValueError(f"not a GPU: {costs}")
    return StoredCosts(costs, when)


def flat(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def remember(costs: CardCosts, number: int) -> bool:
    """Save costs beside those of other GPUs; False if that fails."""
    return write({**entries(), key_of(costs.gpu, number): {"when": time.time(), **asdict(costs)}})


def forget(gpu: str, number: int) -> bool:
    """Delete the costs of a GPU; False if there were none, or the file cannot be written."""
    known = entries()
    return known.pop(key_of(gpu, number), None) is not None and write(known)


def write(gpus: dict[str, Any]) -> bool:
    """Replace the file in one step."""
    try:
        costs_file().parent.mkdir(parents=True, exist_ok=True)
        with replacing(costs_file()) as file:
            file.write(json.dumps({"version": VERSION, "gpus": gpus}, indent=1).encode())
    except OSError:
        return False
    return True
