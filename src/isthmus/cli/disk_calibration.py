"""A disk as `isthmus calibrate` measures and shows it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from isthmus.devices.calibration import Row
from isthmus.link.link import Profile
from isthmus.link.profile import calibration as disks
from isthmus.link.profile.measurement import Samples
from isthmus.memory import format_size


class Disk:
    """The disk of a folder or a store."""

    samples: Samples
    found: Profile

    def __init__(self, path: Path) -> None:
        self._path = path
        self.key, self.words, self.file = {"path": str(path)}, f"the disk of {path}", disks.memory_file()
        self.before: Any = self._recall()

    def _recall(self) -> disks.Memory | None:
        return disks.recall(disks.disk_of(disks.checked_place(self._path)))

    def survey(self, progress: Any, say: Any) -> bool:
        self.samples, self.found = disks.survey(self._path, progress, say)
        after = self._recall()
        return after is not None and after.profile == self.found

    def forget(self) -> bool:
        return disks.forget(self._path)

    def name(self, known: disks.Memory | None) -> str:
        return (self.found if known is None else known.profile).name

    def rounds(self) -> list[Row]:
        return kinds(self.samples.bulk, self.samples.singles, self.samples.packed)

    def rows(self, known: disks.Memory) -> list[Row]:
        """Profiles remembered by the first version have fewer."""
        profile = known.profile
        rows = kinds(
            profile.bandwidth, dict(profile.rates) or {profile.depth: profile.request_rate}, profile.compaction
        )
        return rows if profile.rates else rows[:-1]

    def facts(self) -> list[tuple[str, str]]:
        return [
            ("read", f"{self.samples.source}, {format_size(self.samples.bytes)}"),
            ("break-even", f"a request costs as much as {format_size(self.found.break_even_gap)} in bulk"),
        ]

    def as_json(self, known: disks.Memory | None) -> dict[str, Any]:
        profile = self.found if known is None else known.profile
        rates = {str(depth): rate for depth, rate in profile.rates}
        figures = {**asdict(profile), "rates": rates, "break_even_gap": profile.break_even_gap}
        if known is not None:
            return figures
        samples = self.samples
        return {
            **figures,
            "source": samples.source,
            "bytes": samples.bytes,
            "rounds": len(samples.bulk),
            "steady": samples.steady,
        }


def kinds(bulk: Any, singles: dict[int, Any], packed: Any) -> list[Row]:
    """All kinds of work in the order they are shown."""
    return [
        ("bulk reads", "B", bulk),
        *((f"4 KB reads, {depth} in flight", "", rates) for depth, rates in singles.items()),
        ("lists packed together", "B", packed),
    ]
