"""Where a stream's lists and the states of its programs are between batches, and which reads of lists are counted.

Here they are in this machine's memory, or on its disk, and nothing is counted. A device has a residency of its own,
which its session gives: lists that stay near, states in memory that it uses, loops that run there.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from isthmus.devices.correction_loops import CorrectionLoops, HostLoops, Maintained, MonotoneState
from isthmus.graph.changing.change import Change
from isthmus.programs.program import Facts

Array = np.ndarray[Any, Any]


@dataclass
class Transfer:
    """What a batch moved to a device to read lists. `bytes` and `requests` include those that brought lists into the
    hot subgraph.
    """

    bytes: int = 0
    requests: int = 0
    hit_edges: int = 0  # read from the hot subgraph
    miss_edges: int = 0
    upkeep_bytes: int = 0  # to bring lists into the hot subgraph
    batch_bytes: int = 0  # changed arcs, which the device needs in any case; not among `bytes`
    upkeep_seconds: float = 0.0  # of this machine, to keep the hot subgraph up to date
    upkeep_modelled: float = 0.0  # seconds on the device, for the same; also in `modelled`
    modelled: float = 0.0  # seconds on the device

    def add(self, other: Transfer) -> None:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Residency:
    """Lists and states in this machine's memory."""

    recomputes = False  # answers are computed from scratch for every batch
    resends = False  # every vertex that has a value sends again after every batch
    adopts = True  # a vertex that has lost its parent looks for another before it loses its value
    settles = True  # one thread may follow few improvements, without the loop of every run

    @property
    def near_bytes(self) -> int:
        """Memory of a device for lists that stay near."""
        return 0

    # For programs

    def place_state(self, owner: Maintained, arrays: tuple[Array, ...], name: str = "state") -> tuple[Array, ...]:
        """These arrays where the program's runs and loops find them; they stay until it places others of that name."""
        return arrays

    def correction_loops(self, lists: Maintained, state: MonotoneState, facts: Facts) -> CorrectionLoops:
        """The loops that correct a monotone program's state, which was placed."""
        return HostLoops(lists, state, facts)

    def read(self, side: str, rows: Array, weights: bool) -> None:
        """Count a kernel's read of the lists of these vertices."""

    def ran(self, run: Any) -> None:
        """Count what a run has read."""

    # For batches

    def opened(self) -> Transfer | None:
        """All programs have their first answers; returns what was moved for them, if that is counted."""
        return None

    def committed(self, change: Change) -> None:
        """The edges have changed."""

    def renumbered(self, change: Change) -> None:
        """Vertices have left, and others have their numbers."""

    def forget(self) -> None:
        """Drop all that is near: the graph is not what it was."""

    def end_batch(self) -> Transfer | None:
        """The batch is published; returns what it moved, if that is counted."""
        return None

    def close(self) -> None:
        """Free what was taken on a device."""


ON_HOST = Residency()
