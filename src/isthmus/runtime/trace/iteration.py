"""One iteration of a run: what was active, what moved, and how long it took."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from isthmus.engines.engine import Delivery


def no_use() -> dict[str, int]:
    return {"tasks": 0, "bytes": 0, "requests": 0}


@dataclass(slots=True)
class Iteration:
    """One iteration. `wait` is the I/O wait in seconds, `kernel` the compute time.

    `decide` is time in cache, activity, policy and schedule. `choices` has the engine that brought each partition
    (codes of `policies.policy`), one side after the other; None if it was dropped or no partition moved. `modelled` is
    the seconds of the iteration on a modelled device.
    """

    number: int
    active_vertices: int
    active_edges: int = 0
    seconds: float = 0.0
    wait: float = 0.0
    link: float = 0.0
    kernel: float = 0.0
    decide: float = 0.0
    modelled: float | None = None
    done: float | None = None  # the share of the program's work that is done; None: not known
    hit_edges: int = 0  # active edges that a cache held
    partitions: dict[str, int] = field(default_factory=dict)  # by the engine that brought them
    choices: np.ndarray[Any, Any] | None = None
    engines: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(no_use))

    @property
    def bytes(self) -> int:
        return sum(engine["bytes"] for engine in self.engines.values())

    @property
    def requests(self) -> int:
        return sum(engine["requests"] for engine in self.engines.values())

    @property
    def overhead(self) -> float:
        """Time that was neither I/O wait nor compute."""
        return self.seconds - self.wait - self.kernel

    def chosen(self, choice: np.ndarray[Any, Any]) -> None:
        """Record the engines that the policy chose for a side's partitions."""
        fresh = choice.astype(np.uint8)
        self.choices = fresh if self.choices is None else np.concatenate([self.choices, fresh])

    def delivered(self, delivery: Delivery) -> None:
        engine = self.engines[delivery.task.engine.name]
        engine["bytes"] += delivery.bytes
        engine["requests"] += delivery.requests
        self.link += delivery.seconds

    def fetched(self, name: str, moved: int, requests: int, seconds: float) -> None:
        """Count a whole partition that the engine of that name fetched."""
        engine = self.engines[name]
        engine["bytes"] += moved
        engine["requests"] += requests
        self.link += seconds

    def worked(self, far: bool, kernel: float, vertices: int, edges: int) -> None:
        """Count the run of a whole partition. `far`: it was fetched first."""
        name = "filter" if far else "cache"
        self.partitions[name] = self.partitions.get(name, 0) + 1
        self.engines[name]["tasks"] += 1
        self.kernel += kernel
        self.active_vertices += vertices
        self.active_edges += edges
        self.hit_edges += 0 if far else edges

    def as_dict(self) -> dict[str, Any]:
        """The iteration for JSON, without the choices, which are many."""
        engines = {name: dict(use) for name, use in self.engines.items()}
        facts = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "choices"}
        return {**facts, "engines": engines, "bytes": self.bytes, "requests": self.requests}
