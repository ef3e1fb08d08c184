"""The SSD link: direct reads of many extents at once (`graph/store/extent_reader.py`), and what they cost."""

from __future__ import annotations

from isthmus.graph.far import FarArray
from isthmus.graph.store.extent_reader import DEPTH, ExtentReader
from isthmus.graph.store.files import BLOCK
from isthmus.link.link import CHANNELS, Link, Profile

GUESS = Profile("a disk not measured", 1.5e9, 100e3, BLOCK, DEPTH, False)


class SsdLink(ExtentReader, Link):
    """An extent reader with as many requests in flight as the profile says."""

    def __init__(self, arrays: list[FarArray], profile: Profile, verify: bool = True) -> None:
        self.profile = profile
        super().__init__(arrays, profile.depth, CHANNELS, verify)
