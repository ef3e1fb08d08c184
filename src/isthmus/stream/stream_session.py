"""The session of a stream: its graph's snapshot advances from run to run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isthmus.devices.residency import ON_HOST, Residency
from isthmus.graph.changing.advancing import AdvancingGraph
from isthmus.runtime.session import Session


class StreamSession(Session):
    """A session on a changing graph. On a device it also says what stays there between batches."""

    graph: AdvancingGraph
    residency: Residency = ON_HOST

    def begin(self, programs: Sequence[Any], memory: str | int | None) -> None:
        """Split the memory of a device among these programs and the lists that stay near."""

    @property
    def recipe_name(self) -> str | None:
        """The recipe by which lists are read that are not near; None: all are."""
        return None if self.graph.lists_are_near else self.settings.policy

    @property
    def near_peak(self) -> int:
        """The most memory of a device that programs, buffers and lists have taken."""
        return 0
