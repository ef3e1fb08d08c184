"""Graphs for the papers' experiments: real ones where they are at hand, generated ones, in the forms that runs ask for.

All lie in memory. Edges have weights from 1 to 64 (Grus; Scaph draws from 1 to 100). Loops and parallel edges are
dropped.
"""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import isthmus as ist

REAL = ("cnr-2000", "npm-deps-2016", "soc-slashdot0902", "cit-HepPh", "ca-AstroPh")
UNDIRECTED = ("ca-AstroPh",)
TRIED = 16  # sources
LAYERS = 16  # of a network


def data_folder() -> Path:
    return Path(os.environ.get("ISTHMUS_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")


class Case:
    """A graph by name: a folder of the shared data, or rmat20, grid400."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.kind = name.rstrip("0123456789") if name not in REAL else "real"

    @property
    def missing(self) -> str | None:
        """Why this graph cannot be had."""
        if self.kind in ("rmat", "grid") or self._file is not None:
            return None
        return f"{self.name}: not in {data_folder()} (set ISTHMUS_DATA)"

    @property
    def _file(self) -> Path | None:
        found = sorted((data_folder() / self.name).glob("edges.t*"))
        return found[0] if found else None

    @cached_property
    def graph(self) -> ist.Graph:
        """As it is, in natural order."""
        return self._make("natural")

    @cached_property
    def hubs_first(self) -> ist.Graph:
        """Hub order, which HyTGraph prepares once for all algorithms."""
        return self._make("hub")

    @cached_property
    def both_ways(self) -> ist.Graph:
        """Every edge in both directions, for labels that have to travel against them."""
        return self._make("natural", directed=False) if self.graph.directed else self.graph

    @cached_property
    def both_ways_hubs_first(self) -> ist.Graph:
        return self._make("hub", directed=False) if self.graph.directed else self.hubs_first

    @cached_property
    def network(self) -> ist.Graph:
        """A layered network about as large as the graph, for algorithms that need one: neurons of equal degree, without
        weights.
        """
        layer = max(1, self.graph.vertices // LAYERS)
        senders = np.arange(layer * (LAYERS - 1))
        source = np.repeat(senders, max(1, round(self.graph.arcs / senders.size)))
        target = (source // layer + 1) * layer + np.random.default_rng(1).integers(0, layer, source.size)
        return ist.read((source, target), vertices=layer * LAYERS, directed=True, parallel="drop")

    @cached_property
    def source(self) -> Any:
        """A vertex that reaches much of the graph: of those with the longest lists, the one that reaches most; of a
        grid a corner.
        """
        degrees = np.diff(np.asarray(self.graph.store.read("out.offsets")).astype(np.int64))
        longest = np.argsort(-degrees, kind="stable")[:TRIED]
        users = self.graph.ids.users(
            longest if self.kind == "real" else longest[:1] if self.kind == "rmat" else np.zeros(1, np.int64)
        )
        return max(users, key=lambda user: ist.bfs(self.graph, user).summary()["result"]["reached"])

    def _make(self, order: str, directed: bool | None = None) -> ist.Graph:
        size = int(self.name.removeprefix(self.kind)) if self.kind in ("rmat", "grid") else 0
        if self.kind == "rmat":
            return ist.generate("rmat", scale=size, seed=1, weights="1:64", order=order)
        if self.kind == "grid":
            return ist.generate("grid", rows=size, columns=size, seed=1, weights="1:64", order=order)
        if directed is None:
            directed = self.name not in UNDIRECTED
        return ist.read(
            self._table, order=order, weight="weight", directed=directed, self_loops="drop", parallel="drop"
        )

    @cached_property
    def _table(self) -> pa.Table:
        """The edges, each with a weight."""
        graph = ist.read(self._file, directed=True, self_loops="drop", parallel="drop")
        ids = graph.ids.natural(0, graph.vertices)
        degrees = np.diff(np.asarray(graph.store.read("out.offsets")).astype(np.int64))
        weights = np.random.default_rng(1).integers(1, 65, graph.arcs, dtype=np.int32)
        targets = np.asarray(graph.store.read("out.targets"))
        return pa.table({"source": np.repeat(ids, degrees), "target": ids[targets], "weight": weights})
