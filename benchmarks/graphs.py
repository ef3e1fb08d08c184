"""Graphs that several benchmarks run on, made once per folder."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np

import isthmus as ist


def make(folder: Path, name: str) -> ist.Graph:
    """rmat24, kron23 (permuted), grid4000: kind and size."""
    kind, size = name.rstrip("0123456789"), int(name.lstrip("abcdefghijklmnopqrstuvwxyz"))
    path = folder / f"{name}.isthmus"
    if path.exists():
        return ist.open(path)
    if kind == "grid":
        return ist.generate("grid", path, rows=size, columns=size, seed=1, weights="1:255")
    return ist.generate("rmat", path, scale=size, seed=1, weights="1:255", permute=kind == "kron")


def warm(graph: ist.Graph) -> None:
    """Read every section once: on virtual disks the first read of a block is far slower than all later ones."""
    for name in ("out.targets", "out.weights"):
        path = graph.path / name if graph.path else None
        if path is not None and path.exists():
            subprocess.run(
                ["dd", f"if={path}", "of=/dev/null", "bs=4M", "iflag=direct"], check=True, capture_output=True
            )


def hub(graph: ist.Graph) -> Any:
    """A source that reaches most of the graph: the vertex with the longest list among the first; of a grid a corner."""
    degrees = np.diff(np.asarray(graph.store.read("out.offsets", 0, min(graph.vertices, 1 << 16) + 1)).astype(np.int64))
    return graph.ids.users(np.array([int(degrees.argmax()) if degrees.max() > 4 else 0]))[0]
