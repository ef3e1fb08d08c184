"""What a stream has acknowledged, so that a retry does no harm: ids of clients' batches, and how far input files were
read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import xxhash

from isthmus.errors import BatchError, OptionError
from isthmus.graph.changing.change import Edits
from isthmus.stream.input.arriving_batches import without_conflicts
from isthmus.stream.input.batch_columns import Kinds
from isthmus.stream.input.sources import FEW, Updates
from isthmus.stream.input.update_tables import edits_of_table
from isthmus.stream.log.records import COLUMNS, Place

MOST_IDS = 1 << 16  # the latest ones, by which repeated batches are known
MOST_PLACES = 1 << 10


class Acknowledged:
    """Ids with the number and the checksum of their batch, and places by the names of inputs, the oldest first."""

    def __init__(self, ids: Any = (), places: Any = ()) -> None:
        self._ids: dict[str, tuple[int, str]] = {str(id): (int(number), str(checksum)) for id, number, checksum in ids}
        self._places = {
            place.name: place for place in (Place(str(name), int(rows), str(sum)) for name, rows, sum in places)
        }

    def add(self, number: int, checksum: str, id: str | None, place: Place | None) -> None:
        if id is not None:
            self._ids[id] = (number, checksum)
            if len(self._ids) > MOST_IDS:
                del self._ids[next(iter(self._ids))]
        if place is not None:
            self._places.pop(place.name, None)
            self._places[place.name] = place
            if len(self._places) > MOST_PLACES:
                del self._places[next(iter(self._places))]

    def number_of(self, id: str, checksum: str) -> int | None:
        """The number of the batch with this id; None: there is none. BatchError if it was another batch."""
        if id not in self._ids:
            return None
        number, theirs = self._ids[id]
        if theirs != checksum:
            raise BatchError(
                f"id: batch {number} had the id {id!r} too, with other changes; a retry repeats the same changes"
            )
        return number

    def place_of(self, name: str) -> Place | None:
        return self._places.get(name)

    def as_json(self) -> dict[str, Any]:
        return {
            "ids": [[id, *facts] for id, facts in self._ids.items()],
            "places": [[place.name, place.rows, place.checksum] for place in self._places.values()],
        }


class Progress:
    """How far an input was read. The checksum of its rows does not depend on how they are cut into batches."""

    def __init__(self, name: str) -> None:
        self.name, self.rows = name, 0
        self._sums = {column: xxhash.xxh3_64() for column in COLUMNS}

    def take(self, edits: Edits) -> Place:
        """Count the rows of the next batch."""
        self.rows += edits.changes
        for column, sum in self._sums.items():
            values = getattr(edits, column)
            if values is not None:
                sum.update(
                    b"".join(text.encode() + b"\n" for text in values.tolist())
                    if values.dtype == object
                    else values.tobytes()
                )
        return Place(self.name, self.rows, self.checksum)

    @property
    def checksum(self) -> str:
        return xxhash.xxh3_64_hexdigest(b"".join(sum.digest() for sum in self._sums.values()))

    def skip(self, source: Updates, place: Place, kinds: Kinds) -> None:
        """Pass over the rows that were applied; OptionError if the input has others now."""
        for edits in first_rows(source, place.rows, kinds):
            self.take(edits)
        if (self.rows, self.checksum) != (place.rows, place.checksum):
            raise OptionError(
                f"{source.name}: the stream has applied {place.rows} rows of this file, and its first {place.rows} "
                f"rows are others now; "
                "give a file with other changes another name"
            )


def first_rows(source: Updates, count: int, kinds: Kinds) -> Iterator[Edits]:
    while count and (rows := source.read(min(count, FEW))) is not None:
        count -= len(rows)
        for part in without_conflicts(rows):
            yield edits_of_table(part.table(), kinds, part.name, part.where)
