"""Where a stream's lists and the states of its programs are between batches, and which reads of lists are counted.

Here they are in this machine's memory, or on its disk, and nothing is counted. A device has a residency of its own,
which its session gives: lists that stay near, states in memory that it uses, loops that run there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus.stream.maintain.correction_loops import CorrectionLoops, HostLoops

if TYPE_CHECKING:
    from isthmus.graph.changing.change import Change
    from isthmus.programs.program import Facts
    from isthmus.runtime.execute import Execution
    from isthmus.stream.devices.reads import Transfer
    from isthmus.stream.maintain.maintained import Maintained
    from isthmus.stream.maintain.monotone_state import MonotoneState

Array = np.ndarray[Any, Any]


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

    def ran(self, run: Execution) -> None:
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
