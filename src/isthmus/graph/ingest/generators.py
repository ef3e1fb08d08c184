"""Generated graphs: RMAT, uniform, grid, path, star, complete.

Each is an edge source with dense ids. Edge i depends only on the seed and i, so the same seed gives the same graph
with any number of threads, and a graph larger than memory is written straight into a store. A weight depends only on
the seed and the two ends of its edge, so weights are computed after sorting.
"""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.errors import OptionError
from isthmus.graph.ingest.edges import EdgeBlock, EdgeSource
from isthmus.graph.store.files import Array
from isthmus.graph.store.list_writer import SortedLists
from isthmus.kernels.store import random_edges as kernels
from isthmus.threads import Pool

PRESETS = {
    "graph500": (0.57, 0.19, 0.19),  # Graph500 specification
    "parmat": (0.5, 0.2, 0.2),
}
MOST_VERTICES = 1 << 32
MOST_EDGES = 1 << 56  # so that the counters of all random draws fit 64 bits


@dataclass(frozen=True)
class WeightRange:
    """Weights drawn evenly from low to high: integers with both ends, or reals without the upper one."""

    low: float
    high: float
    dtype: str

    @classmethod
    def parse(cls, text: str, dtype: str | None = None) -> WeightRange:
        """'1:255' means integers, '0.0:1.0' reals; `dtype` overrides."""
        parts = str(text).split(":")
        try:
            low, high = (float(part) for part in parts)
        except ValueError:
            raise OptionError(f"expected weights as LOW:HIGH such as 1:255 or 0.0:1.0, got {text!r}") from None
        whole = all("." not in part and "e" not in part.lower() for part in parts)
        dtype = dtype or ("int32" if whole else "float64")
        if dtype not in ("int32", "float32", "float64"):
            raise OptionError(f"expected a weight type of int32, float32 or float64, got {dtype!r}")
        if not 0 <= low <= high < np.inf:
            raise OptionError(f"expected weights with 0 <= LOW <= HIGH, both finite, got {text!r}")
        if dtype == "int32" and not (low.is_integer() and high.is_integer() and high < 2**31):
            raise OptionError(f"expected whole numbers below 2**31 for int32 weights, got {text!r}")
        if dtype == "float32" and high > float(np.finfo(np.float32).max):
            raise OptionError(f"expected weights that float32 can hold, got {text!r}")
        return cls(low, high, dtype)


class Generator(EdgeSource):
    """A generated graph. Subclasses give the numbers of vertices and edges, and fill blocks."""

    replayable = True
    unit = "edges"

    def __init__(self, kind: str, vertices: int, edges: int, seed: int, directed: bool) -> None:
        vertices, edges, seed = (operator.index(value) for value in (vertices, edges, seed))
        if not 0 <= vertices <= MOST_VERTICES:
            raise OptionError(f"expected 0 to {MOST_VERTICES} vertices, got {vertices}")
        if not 0 <= edges <= MOST_EDGES:
            raise OptionError(f"expected 0 to {MOST_EDGES} edges, got {edges}")
        if not 0 <= seed < 1 << 64:
            raise OptionError(f"expected a seed from 0 to 2**64 - 1, got {seed}")
        self.kind, self.name = kind, f"generate {kind}"
        self.vertices, self.edges, self.total = vertices, edges, edges
        self.seed = np.uint64(seed)
        self.directed = directed
        self.range: WeightRange | None = None

    @abstractmethod
    def fill(self, first: int, sources: Array, targets: Array) -> None:
        """Write edges first, first + 1, ... into the arrays."""

    def make(self, first: int, count: int) -> EdgeBlock:
        sources, targets = np.empty(count, np.uint32), np.empty(count, np.uint32)
        self.fill(first, sources, targets)
        return EdgeBlock(sources, targets, done=count)

    def blocks(self, pool: Pool) -> Iterator[EdgeBlock]:
        assert self.edges is not None
        total = self.edges
        return pool.map(
            lambda at: self.make(at, min(sizes.now.block_edges, total - at)), range(0, total, sizes.now.block_edges)
        )

    def sample(self, count: int) -> EdgeBlock:
        assert self.edges is not None
        pieces = 64
        size = min(max(count // pieces, 1), max(self.edges // pieces, 1))
        starts = np.linspace(0, self.edges - size, pieces).astype(np.int64) if self.edges > size else [0]
        made = [self.make(int(at), min(size, self.edges)) for at in starts]
        return EdgeBlock(np.concatenate([b.sources for b in made]), np.concatenate([b.targets for b in made]))

    def origin(self) -> dict[str, Any]:
        """Enough to make the same graph again."""
        made = {
            "generator": self.kind,
            "seed": int(self.seed),
            "vertices": self.vertices,
            "edges_drawn": self.edges,
            **self.shape(),
        }
        if self.range is not None:
            made |= {"weights": [self.range.low, self.range.high], "weight_type": self.range.dtype}
        return made

    def shape(self) -> dict[str, Any]:
        """The other parameters that the edges depend on."""
        return {}

    def weigh(self, lists: SortedLists, backward: bool) -> Array:
        """Weights of sorted lists (of in-edges when `backward`)."""
        assert self.range is not None
        weights = np.empty(lists.targets.size, self.range.dtype)
        integer = self.range.dtype == "int32"
        span = self.range.high - self.range.low + (1 if integer else 0)
        kernels.weigh(
            lists.rows,
            lists.counts,
            lists.targets,
            self.seed,
            self.directed,
            backward,
            self.range.low,
            span,
            integer,
            weights,
        )
        if not integer and span:  # rounding may reach the upper end, which the range excludes
            np.minimum(weights, np.nextafter(weights.dtype.type(self.range.high), weights.dtype.type(0)), out=weights)
        return weights


class Rmat(Generator):
    """Recursive matrix graph: 2**scale vertices, edge_factor edges each, drawn quadrant by quadrant."""

    def __init__(
        self,
        scale: int,
        edge_factor: float = 16,
        seed: int = 1,
        directed: bool = False,
        permute: bool = False,
        probabilities: tuple[float, float, float] = PRESETS["graph500"],
    ) -> None:
        if not 0 <= scale <= 32:
            raise OptionError(f"expected a scale from 0 to 32, got {scale}")
        if not 0 < edge_factor < MOST_EDGES:
            raise OptionError(f"expected an edge factor above 0, got {edge_factor}")
        super().__init__("rmat", 1 << scale, int((1 << scale) * edge_factor), seed, directed)
        if len(probabilities) != 3:
            raise OptionError(f"expected three probabilities a, b, c, got {probabilities}")
        a, b, c = probabilities
        if not (a >= 0 and b >= 0 and c >= 0 and a + b + c <= 1 + 1e-9):
            raise OptionError(f"expected a, b, c of at least 0 that sum to at most 1, got {a}, {b}, {c}")
        self._scale, self._permute, self._probabilities = scale, permute, [a, b, c]
        self._cuts, self._aliases = alias_tables((a, b, c, max(0.0, 1 - a - b - c)))

    def shape(self) -> dict[str, Any]:
        return {"scale": self._scale, "probabilities": self._probabilities, "permute": self._permute}

    def fill(self, first: int, sources: Array, targets: Array) -> None:
        kernels.rmat(self.seed, first, self._scale, self._cuts, self._aliases, sources, targets)
        if self._permute:
            kernels.scramble(sources, self._scale, self.seed)
            kernels.scramble(targets, self._scale, self.seed)


def alias_tables(quadrants: tuple[float, ...]) -> tuple[Array, Array]:
    """Walker's alias method over the outcomes of 0 .. 4 levels at once: thresholds of 24 bits, and aliases."""
    cuts = np.zeros((kernels.LEVELS + 1, 256), np.uint32)
    aliases = np.zeros((kernels.LEVELS + 1, 256), np.uint8)
    for levels in range(kernels.LEVELS + 1):
        size = 4**levels
        share = np.ones(size)
        for outcome in range(size):
            for level in range(levels):
                u, v = outcome >> (levels + level) & 1, outcome >> level & 1
                share[outcome] *= quadrants[2 * u + v]
        share *= size / share.sum()
        small = [i for i in range(size) if share[i] < 1]
        large = [i for i in range(size) if share[i] >= 1]
        cuts[levels, :size] = 1 << 24
        aliases[levels, :size] = np.arange(size, dtype=np.uint8)
        while small and large:
            low, high = small.pop(), large.pop()
            cuts[levels, low] = round(share[low] * (1 << 24))
            aliases[levels, low] = high
            share[high] -= 1 - share[low]
            (small if share[high] < 1 else large).append(high)
    return cuts, aliases


class Uniform(Generator):
    """`edges` pairs of vertices drawn evenly and independently."""

    def __init__(self, vertices: int, edges: int, seed: int = 1, directed: bool = False) -> None:
        if edges and not vertices:
            raise OptionError(f"expected at least one vertex for {edges} edges, got none")
        super().__init__("uniform", vertices, edges, seed, directed)

    def fill(self, first: int, sources: Array, targets: Array) -> None:
        kernels.uniform(self.seed, first, self.vertices, sources, targets)


class Grid(Generator):
    """Vertices on a rows x columns grid, joined to their neighbours: small degrees, long paths, like roads."""

    def __init__(self, rows: int, columns: int, seed: int = 1, directed: bool = False) -> None:
        if rows < 1 or columns < 1:
            raise OptionError(f"expected at least one row and one column, got {rows} x {columns}")
        super().__init__("grid", rows * columns, rows * (columns - 1) + (rows - 1) * columns, seed, directed)
        self._rows, self._columns = rows, columns

    def shape(self) -> dict[str, Any]:
        return {"rows": self._rows, "columns": self._columns}

    def fill(self, first: int, sources: Array, targets: Array) -> None:
        kernels.grid(first, self._rows, self._columns, sources, targets)


class Path(Generator):
    """The path 0 - 1 - 2 - ... : the largest possible diameter."""

    def __init__(self, vertices: int, seed: int = 1, directed: bool = False) -> None:
        super().__init__("path", vertices, max(vertices - 1, 0), seed, directed)

    def fill(self, first: int, sources: Array, targets: Array) -> None:
        sources[:] = np.arange(first, first + sources.size)
        targets[:] = np.arange(first + 1, first + sources.size + 1)


class Star(Generator):
    """Vertex 0 joined to all others: one hub."""

    def __init__(self, vertices: int, seed: int = 1, directed: bool = False) -> None:
        super().__init__("star", vertices, max(vertices - 1, 0), seed, directed)

    def fill(self, first: int, sources: Array, targets: Array) -> None:
        sources[:] = 0
        targets[:] = np.arange(first + 1, first + sources.size + 1)


class Complete(Generator):
    """Every pair once; directed: every ordered pair."""

    def __init__(self, vertices: int, seed: int = 1, directed: bool = False) -> None:
        pairs = max(vertices, 0) * (vertices - 1) // 2
        super().__init__("complete", vertices, pairs * (2 if directed else 1), seed, directed)
        self._pairs = pairs

    def fill(self, first: int, sources: Array, targets: Array) -> None:
        ahead = max(0, min(sources.size, self._pairs - first))
        kernels.complete(first, sources[:ahead], targets[:ahead])
        kernels.complete(max(first, self._pairs) - self._pairs, targets[ahead:], sources[ahead:])


KINDS: dict[str, Any] = {
    "rmat": Rmat,
    "uniform": Uniform,
    "grid": Grid,
    "path": Path,
    "star": Star,
    "complete": Complete,
}
