"""Options for cleaning edges on ingest, and the report of edges read, dropped and merged."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from isthmus.checks import flag
from isthmus.errors import OptionError
from isthmus.kernels.store import arc_keys

PARALLEL = {
    "keep": arc_keys.KEEP,
    "drop": arc_keys.FIRST,
    "first": arc_keys.FIRST,
    "min": arc_keys.MIN,
    "sum": arc_keys.SUM,
}


@dataclass(frozen=True)
class Cleaning:
    """How ingest cleans edges. Nothing is dropped unless requested."""

    directed: bool | None = None  # None: as the input declares, else directed
    self_loops: str = "keep"  # edges from a vertex to itself: keep or drop
    parallel: str = "keep"  # of parallel edges: keep all, drop all but the first, or take their min or sum
    in_edges: bool = True  # store a directed graph's edges by target as well, which some algorithms need
    weight_dtype: str | None = None  # int32, int64, float32 or float64; None: the narrowest that holds them

    def __post_init__(self) -> None:
        if self.directed is not None:
            object.__setattr__(self, "directed", flag("directed", self.directed))
        flag("in_edges", self.in_edges)
        if self.self_loops not in ("keep", "drop"):
            raise OptionError(f"self_loops: expected keep or drop, got {self.self_loops!r}")
        if self.parallel not in PARALLEL:
            raise OptionError(f"parallel: expected one of {', '.join(PARALLEL)}, got {self.parallel!r}")
        if self.weight_dtype not in (None, "int32", "int64", "float32", "float64"):
            raise OptionError(f"weight_dtype: expected int32, int64, float32 or float64, got {self.weight_dtype!r}")


@dataclass
class Report:
    """Counts of edges read, dropped and merged."""

    edges_read: int = 0  # edges of the input
    self_loops_seen: int = 0  # edges from a vertex to itself
    self_loops_dropped: int = 0  # of these, left out
    parallel_merged: int = 0  # edges left out because another one joins the same vertices
    spilled: bool = False  # a temporary file was needed, as the edges did not fit in memory
    seconds: dict[str, float] = field(default_factory=dict)  # by stage
    warnings: list[str] = field(default_factory=list)  # notes about the input
    reader: dict[str, Any] = field(default_factory=dict)  # further counts of the format

    def as_dict(self) -> dict[str, Any]:
        """All counts, as `isthmus ingest --json` prints them."""
        return asdict(self)
