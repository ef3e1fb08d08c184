"""Recovery: the graph of the newest sound checkpoint, and the batches of the log since, which are applied to it again.

Only the graph is brought up to date batch by batch. Programs are computed once, from scratch, on what results.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isthmus.errors import BatchError, StoreError
from isthmus.graph.changing.advancing import AdvancingGraph
from isthmus.graph.store.sealed_json import unsealed
from isthmus.stream.input.batch_columns import Kinds
from isthmus.stream.log import records, stream_checkpoints
from isthmus.stream.log.acknowledged import Acknowledged
from isthmus.stream.log.frames import HEADER
from isthmus.stream.log.segments import HELP, Reading, Tail

if TYPE_CHECKING:
    from isthmus.stream.context import StreamContext

FORMAT, VERSION = "isthmus-stream", 1
NAME = "stream.json"
MEMBERS = {"seed": str, "graph": str, "from": str, "programs": list}


@dataclass
class Recovered:
    """What a folder had."""

    graph: AdvancingGraph
    acknowledged: Acknowledged
    checkpoint: int  # the batch of the checkpoint
    tail: Tail
    bytes: int = 0  # of the log since
    damaged: set[int] = field(default_factory=set)  # checkpoints that cannot be used
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return {
            "batch": self.tail.number,
            "checkpoint": self.checkpoint,
            "log_bytes": self.bytes,
            "cut_bytes": self.tail.torn,
        }


def manifest_of(folder: Path) -> dict[str, Any]:
    """`stream.json`, checked."""
    if not (folder / NAME).exists():
        raise StoreError(f"{folder}: is not the folder of a stream's log (no {NAME})")
    facts = unsealed(folder / NAME, FORMAT, VERSION)
    for name, kind in MEMBERS.items():
        if not isinstance(facts.get(name), kind):
            raise StoreError(f"{folder / NAME}: expected a member {name!r} of type {kind.__name__}")
    try:
        int(facts["seed"], 16)
    except ValueError:
        raise StoreError(f"{folder / NAME}: expected a seed in hexadecimal digits, got {facts['seed']!r}") from None
    return {name: facts[name] for name in MEMBERS}


def recovered(folder: Path, seed: int, context: StreamContext) -> Recovered:
    """The graph after the last batch of a folder. Nothing is written."""
    known = stream_checkpoints.found(folder)
    troubles: dict[int, StoreError] = {}
    for number, path in reversed(known):
        try:
            graph, acknowledged = loaded(path, number, context)
        except StoreError as error:
            troubles[number] = error
            continue
        try:
            found = replayed(folder, seed, graph, acknowledged)
            if found.tail.number < known[-1][0]:
                raise StoreError(f"{troubles[known[-1][0]]}; and the log ends with batch {found.tail.number}; {HELP}")
        except BaseException:
            graph.close()
            raise
        found.damaged = set(troubles)
        found.notes = [
            f"checkpoint of batch {batch} is damaged, and not used: {error}" for batch, error in troubles.items()
        ] + found.notes
        return found
    if troubles:
        raise StoreError(f"{folder}: no checkpoint can be used: {'; '.join(map(str, troubles.values()))}; {HELP}")
    raise StoreError(f"{folder}: has no checkpoint; {HELP}")


def loaded(path: Path, number: int, context: StreamContext) -> tuple[AdvancingGraph, Acknowledged]:
    """The graph of a checkpoint."""
    stored, facts = stream_checkpoints.read(path)
    with stored:
        if facts.get("batch") != number:
            raise StoreError(f"{path}: is the checkpoint of batch {facts.get('batch')}")
        try:
            acknowledged = Acknowledged(facts["ids"], facts["places"])
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(
                f"{path / stream_checkpoints.MANIFEST}: does not have the expected members: {error}"
            ) from error
        return context.open_graph(stored, number), acknowledged


def replayed(folder: Path, seed: int, graph: AdvancingGraph, acknowledged: Acknowledged) -> Recovered:
    """Apply the batches of the log."""
    begin, size, reading = graph.number, 0, Reading(folder, seed, graph.number)
    for frame, where in reading:
        try:
            record = records.decode(frame.content, Kinds.of(graph))
            graph.apply(record.edits)
        except BatchError as error:
            raise StoreError(f"{where}: batch {frame.header.number} does not fit the graph: {error}; {HELP}") from error
        acknowledged.add(graph.number, record.checksum, record.id, record.place)
        size += HEADER + frame.header.length
    tail = reading.tail
    count = graph.number - begin
    batches = f"{count} {'batch' if count == 1 else 'batches'}"
    note = f"recovered to batch {graph.number} from {folder}: checkpoint of batch {begin}, {batches} of the log"
    if tail.torn:
        note += f"; {tail.torn} bytes of an unfinished write were cut"
    return Recovered(graph, acknowledged, begin, tail, size, notes=[note])
