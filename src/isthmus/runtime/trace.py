"""What happened, iteration by iteration: choices, bytes, requests, seconds."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from isthmus.engines.engine import Delivery


def no_use() -> dict[str, int]:
    return {"tasks": 0, "bytes": 0, "requests": 0}


@dataclass
class Iteration:
    """One iteration. `wait` is time the processor stood still for the link, `kernel` time in edge loops."""

    number: int
    active_vertices: int
    active_edges: int = 0
    seconds: float = 0.0
    wait: float = 0.0
    link: float = 0.0
    kernel: float = 0.0
    engines: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(no_use))

    @property
    def bytes(self) -> int:
        return sum(engine["bytes"] for engine in self.engines.values())

    @property
    def requests(self) -> int:
        return sum(engine["requests"] for engine in self.engines.values())

    @property
    def overhead(self) -> float:
        """Time that was neither waiting nor edge loops."""
        return self.seconds - self.wait - self.kernel

    def delivered(self, delivery: Delivery) -> None:
        engine = self.engines[delivery.task.engine.name]
        engine["bytes"] += delivery.bytes
        engine["requests"] += delivery.requests
        self.link += delivery.seconds

    def as_dict(self) -> dict[str, Any]:
        engines = {name: dict(use) for name, use in self.engines.items()}
        return {**vars(self), "engines": engines, "bytes": self.bytes, "requests": self.requests}


@dataclass
class Trace:
    """All iterations of a run, and what was said on the way."""

    iterations: list[Iteration] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __iter__(self) -> Any:
        return iter(self.iterations)

    def __len__(self) -> int:
        return len(self.iterations)

    def total(self, name: str) -> Any:
        return sum(getattr(iteration, name) for iteration in self.iterations)

    def engines(self) -> dict[str, dict[str, int]]:
        """Tasks, bytes and requests by engine."""
        totals: dict[str, dict[str, int]] = defaultdict(no_use)
        for iteration in self.iterations:
            for name, use in iteration.engines.items():
                for key, value in use.items():
                    totals[name][key] += value
        return dict(totals)
