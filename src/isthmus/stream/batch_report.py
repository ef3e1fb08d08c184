"""What a batch of a stream did, and how long it took."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from isthmus.devices.residency import Transfer

PARTS = ("read", "update", "correction", "computation", "publication", "log")  # of the seconds of a batch


@dataclass
class BatchReport:
    """What a batch did, and how long it took."""

    number: int  # of the batch, from 1
    counts: dict[str, int]  # edges and vertices inserted, deleted, changed, and requests that changed nothing
    seconds: dict[str, float]  # read, update, correction, computation, publication, log, total
    programs: dict[str, dict[str, int]] = field(default_factory=dict)  # vertices affected and edges read, by program
    changes: int = 0  # rows of the batch
    arrival: float | None = None  # seconds in which the batch arrived; None where that is not known
    transfer: Transfer | None = None  # to a modelled device or a GPU
    repeated: bool = False  # a batch with this id was applied before, so nothing was done; `number` is that batch's

    @classmethod
    def of_repeated(cls, number: int) -> BatchReport:
        return cls(number, {}, dict.fromkeys((*PARTS, "total"), 0.0), repeated=True)

    @property
    def rate(self) -> float:
        """Changes per second that batches like this one can be applied at."""
        return self.changes / max(self.seconds["total"], 1e-9)

    @property
    def arrival_rate(self) -> float | None:
        """Changes per second that arrive."""
        return self.changes / self.arrival if self.arrival else None

    @property
    def keeps_up(self) -> bool | None:
        """Whether the batch was applied in less time than it took to arrive (Grapin, section 7.4)."""
        return None if self.arrival is None else self.seconds["total"] <= self.arrival

    def as_dict(self) -> dict[str, Any]:
        """What `isthmus stream --json` prints about a batch."""
        return {
            "batch": self.number,
            "changes": self.changes,
            **self.counts,
            "seconds": self.seconds,
            "programs": self.programs,
            **({} if self.transfer is None else {"transfer": self.transfer.as_dict()}),
            "rate": self.rate,
            "arrival": {"seconds": self.arrival, "rate": self.arrival_rate, "keeps_up": self.keeps_up},
        }
