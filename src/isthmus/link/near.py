"""The link for edges that are all near: nothing is moved."""

from __future__ import annotations

from isthmus.link.link import Array, Extents, Link, Profile

PROFILE = Profile("near memory", 1e12, 1e12, 64, 1, False)


class NearLink(Link):
    """Moves nothing."""

    def __init__(self) -> None:
        self.profile = PROFILE
        self.notes = []

    def move(self, extents: Extents, buffer: Array, channel: int = 0) -> int:
        raise NotImplementedError("all edges are near")

    def close(self) -> None:
        """There is nothing to close."""
