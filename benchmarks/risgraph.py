"""RisGraph as a contestant: its batch programs, on its own file format, by its own clock.

`RISGRAPH` names the folder with bfs_inc_batch, sssp_inc_batch and wcc_inc_batch. They take edges in order, insert and
delete so many of them per batch, print the mean microseconds of a batch, and at the end how many vertices they reached,
which must be our number.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from harness import child
from windows import Window

BINARIES = {"bfs": "bfs_inc_batch", "sssp": "sssp_inc_batch", "weakly_connected_components": "wcc_inc_batch"}


def folder() -> Path | None:
    """Where the binaries are, if anywhere."""
    where = os.environ.get("RISGRAPH")
    return Path(where) if where and all((Path(where) / name).is_file() for name in BINARIES.values()) else None


@dataclass
class Run:
    """What RisGraph printed, seen from outside too."""

    seconds: float  # of a batch, in the mean
    load: float  # until the first answer is there, without its computation
    reached: int  # vertices with an answer, or components
    peak: int


def export(window: Window, path: Path, edges: int) -> Path:
    """The first edges as pairs of 64-bit numbers."""
    with path.open("wb") as file:
        for first in range(0, edges, 1 << 22):
            rows = slice(first, min(first + (1 << 22), edges))
            np.stack([window.sources[rows], window.targets[rows]], axis=1).astype(np.uint64).tofile(file)
    return path


def counted(log: str, output: str) -> int | None:
    """Vertices with an answer, or components. SSSP prints how many vertices have each length: "3: 120, 4: 17, "."""
    found = re.search(r"(?:visited vertices|number of communities): (\d+)", log)
    if found is not None:
        return int(found[1])
    lengths = re.findall(r"\d+: (\d+), ", output.partition("\n")[0])
    return sum(map(int, lengths)) if lengths else None


def run(
    binaries: Path, algorithm: str, window: Window, source: int, batches: int, size: int, scratch: Path, threads: int
) -> Run:
    """Its `batch` is both the inserts and the deletes of a batch, so half of ours."""
    edges = window.kept + batches * size // 2
    path = export(window, scratch / "edges.bin", edges)
    share = repr((window.kept + 0.5) / edges)  # it rounds down
    command = [str(binaries / BINARIES[algorithm]), str(path)]
    if algorithm != "weakly_connected_components":
        command.append(str(source))
    log = scratch / "risgraph.txt"
    script = ["sh", "-c", 'exec "$@" 2>"$LOG" >"$LOG.out"', "sh", *command, share, str(size // 2)]
    ran = child(script, LOG=str(log), OMP_NUM_THREADS=str(threads))
    text = log.read_text()
    mean = re.search(r"wall_mean = ([\d.]+) us", text)
    if mean is None:
        raise SystemExit(f"{command[0]} printed no time:\n{text[-500:]}")
    load = sum(float(found) for found in re.findall(r"^(?:read|add): ([\d.]+)s", text, re.MULTILINE))
    count = counted(text, Path(f"{log}.out").read_text())
    if count is None:
        raise SystemExit(f"{command[0]} printed no count:\n{text[-500:]}")
    if algorithm == "weakly_connected_components":  # it knows no vertices beyond the largest that an edge names
        largest = int(max(window.sources[:edges].max(), window.targets[:edges].max()))
        count += window.vertices - largest - 1
    return Run(float(mean[1]) * 1e-6, load, count, ran.peak_rss)
