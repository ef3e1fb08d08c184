"""The interface of a stream's log. This one writes nothing: a batch is acknowledged when it is applied."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isthmus.errors import OptionError
from isthmus.graph.changing.advancing import AdvancingGraph
from isthmus.graph.changing.change import Edits
from isthmus.graph.graph import Graph
from isthmus.messages import option
from isthmus.stream.input.batch_columns import Kinds
from isthmus.stream.input.sources import Updates
from isthmus.stream.log.records import Place

if TYPE_CHECKING:
    from isthmus.stream.context import StreamContext


class Unlogged:
    """A stream in memory."""

    path: Path | None = None

    def __init__(self) -> None:
        self.notes: list[str] = []  # what a person should know of it

    def changing(self, graph: Graph | None, context: StreamContext) -> AdvancingGraph:
        """The graph that the stream begins with."""
        assert graph is not None
        return context.open_graph(graph)

    def begin(self, graph: AdvancingGraph, programs: Mapping[str, Any]) -> None:
        """The stream is ready: batches may come."""

    def append(self, number: int, edits: Edits, id: str | None, place: Place | None) -> None:
        """A batch can be applied, and is about to be. Raises StoreError if it cannot be logged."""
        if id is not None:
            raise OptionError(
                f"id: a stream without a log does not know which batches a retry repeats; give {option('log')}"
            )

    def repeats(self, edits: Edits, id: str | None) -> int | None:
        """The number of the batch that this one repeats."""
        return None

    def wait(self, number: int) -> None:
        """Return when a batch is acknowledged."""

    def settle(self) -> None:
        """Return when all batches are."""

    def progress(self, source: Updates, updates: Any, kinds: Kinds) -> Any:
        """What counts the rows of an input file, when those that were applied are passed over; None: nothing does."""
        return None

    def is_long(self, graph: AdvancingGraph) -> bool:
        """Whether a checkpoint is due."""
        return False

    def shorten(self, graph: AdvancingGraph) -> None:
        """Write a checkpoint if one is due."""

    def checkpoint(self, graph: AdvancingGraph) -> None:
        """Write a checkpoint of a graph, which no batch changes meanwhile. Raises StoreError; then the log goes on."""
        raise OptionError(f"checkpoint: this stream has no log; give {option('log')}")

    def facts(self) -> dict[str, Any] | None:
        """What `isthmus stream --json` prints of it."""
        return None

    def close(self) -> None:
        """Let go of the folder."""
