"""`device="auto"`: a GPU of this machine if a typical run on the graph is faster there by measured costs, else the
processor.

Only GPUs that `isthmus calibrate --device cuda:0` has measured are considered. Without such a measurement, or if the
processor is done before any of them can start, no GPU is looked for, and nothing of CUDA is imported. A run is taken
to follow all edges PASSES times, after they were brought near where they fit:

    processor, edges fit its memory      read from disk + PASSES x edges / rate of the processor
    processor, they do not               PASSES x the longer of both
    GPU, edges fit its memory            start + read from disk + copy + PASSES x edges / rate of its kernels
    GPU, they do not                     start + read from disk + PASSES x the longer of copy and kernels
    GPU, nor the host's memory           start + PASSES x the longest of the three

`start` is the time in which kernels are compiled, which happens once per process: that of a program, and those of all
programs which this process has not compiled yet (`devices/cuda/kernels/needed.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from isthmus.devices.cuda import device
from isthmus.devices.cuda.gpu_costs import CardCosts, known, recall
from isthmus.devices.cuda.kernels import needed
from isthmus.graph.graph import Graph
from isthmus.graph.snapshot import Snapshot
from isthmus.kernels.compile import cuda_module
from isthmus.link.open import in_files, known_profile
from isthmus.memory import DEFAULT_SHARE, available, parse_size, share_of

PASSES = 4  # assumed: a search follows an edge about once, PageRank some ten times
VERTEX_BYTES = 40  # assumed, per vertex: values, marks, and what is sorted, beside the lists


@dataclass(frozen=True)
class Load:
    """What a run works on: bytes of near memory for vertices, edges and their bytes, and how long a disk takes to read
    these.
    """

    vertex_bytes: int
    edges: int
    edge_bytes: int
    disk_seconds: float

    @property
    def bytes(self) -> int:
        return self.vertex_bytes + self.edge_bytes


def choose(graph: Graph, memory: str | int | None) -> tuple[str, str]:
    """The GPU for runs on a graph whose estimate is shortest, or an empty name for the processor; and why."""
    measured = known()
    if not measured:
        return "", ""
    load = load_of(graph.snapshot)
    start = min(start_of(costs, True) for costs in measured)
    here = max(on_processor(load, costs, memory) for costs in measured)
    if here <= start:
        seconds = f"a run takes an estimated {here:.3g} s there, and a GPU starts in {start:.3g} s"
        return "", f"device auto: the processor; {seconds}"
    found, trouble = estimates(load, memory)
    if not found:
        return "", f"device auto: the processor, as no measured GPU can be used: {trouble}"
    there, number, here = min(found)
    name = f"{device.CUDA}:{number}"
    if there == float("inf"):
        return "", f"device auto: the processor, as the vertices do not fit in the memory of {name}"
    seconds = f"a run takes an estimated {there:.3g} s on {name} and {here:.3g} s on the processor"
    if there < here:
        return name, f"device auto: {name}; {seconds}"
    return "", f"device auto: the processor; {seconds}"


def load_of(graph: Snapshot) -> Load:
    """The edges that a program without weights follows."""
    arrays = graph.far("out", False)
    size = graph.arcs * graph.target_bytes
    disk = size / known_profile(arrays).bandwidth if in_files(arrays) else 0.0
    return Load(graph.vertices * VERTEX_BYTES + graph.list_bytes("out"), graph.arcs, size, disk)


def estimates(load: Load, memory: str | int | None) -> tuple[list[tuple[float, int, float]], str]:
    """(Seconds on a GPU, its number, seconds on the processor) for all GPUs that can be used and were measured; and why
    others cannot.
    """
    gpus, trouble = cuda_module.found()
    found, troubles = [], [trouble] if trouble else []
    for gpu in gpus:
        remembered = recall(gpu.name, gpu.number)
        if remembered is None:
            continue
        try:
            free = 0 if gpu.trouble else device.open_card(gpu.number).free_bytes() - device.SPARE
        except Exception as error:  # of the driver: another process fills the GPU, or has it for itself
            gpu = replace(gpu, trouble=cuda_module.reason(error))
        if gpu.trouble:
            troubles.append(f"{device.CUDA}:{gpu.number}: {gpu.trouble}")
        else:
            costs = remembered.costs
            found.append(
                (on_gpu(load, costs, budget(load, memory, free)), gpu.number, on_processor(load, costs, memory))
            )
    return found, "; ".join(troubles) or "none of them is in this machine now"


def budget(load: Load, memory: str | int | None, most: int) -> int:
    """Near memory of a run with the option `memory`, at most `most`."""
    if memory is None:
        return most
    share = share_of(memory)
    if share is not None:
        return min(most, load.vertex_bytes + int(load.edge_bytes * share))
    return min(most, parse_size(memory))


def on_processor(load: Load, costs: CardCosts, memory: str | int | None) -> float:
    """Seconds of a run on the processor."""
    follow = load.edges / costs.host_edge_rate
    if load.bytes <= budget(load, memory, int(available() * DEFAULT_SHARE)) or not load.disk_seconds:
        return load.disk_seconds + PASSES * follow
    return PASSES * max(load.disk_seconds, follow)


def on_gpu(load: Load, costs: CardCosts, near_bytes: int) -> float:
    """Seconds of a run on a GPU; infinite if the vertices do not fit in its memory."""
    copy, follow, all_near = load.edge_bytes / costs.bandwidth, load.edges / costs.edge_rate, load.bytes <= near_bytes
    if load.vertex_bytes > near_bytes:
        return float("inf")
    start = start_of(costs, all_near)
    if all_near:
        return start + load.disk_seconds + copy + PASSES * follow
    if load.disk_seconds and load.edge_bytes > available() * DEFAULT_SHARE:
        return start + PASSES * max(load.disk_seconds, copy, follow)
    return start + load.disk_seconds + PASSES * max(copy, follow)


def start_of(costs: CardCosts, all_near: bool) -> float:
    """Seconds until the kernels of a run are compiled."""
    return costs.start_seconds + costs.kernel_seconds * needed.uncompiled(all_near)
