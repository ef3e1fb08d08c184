"""The answers of a neural network: a row per input, with what every output neuron says and which says most."""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.graph.graph import Graph
from isthmus.runtime.result import Array, Result, as_arrow
from isthmus.runtime.trace import Trace


class InferenceResult(Result):
    """`values` has a row per input and a column per output neuron; `vertices` are the output neurons, ascending.

    Column `class` is the place of the strongest output among them, from 0; `output_<id>` is what one says.
    """

    def __init__(self, graph: Graph, places: Array, outputs: Array, trace: Trace, facts: dict[str, Any]) -> None:
        self._outputs, self._users_of_outputs = outputs, graph.ids.users_of_natural(places)
        names = [f"output_{user}" for user in self._users_of_outputs.tolist()]
        columns = {"class": np.argmax(outputs, axis=1), **dict(zip(names, outputs.T, strict=True))}
        super().__init__("nn_inference", graph, columns, trace, facts)
        self._order = None

    def __len__(self) -> int:
        return len(self._outputs)

    def __repr__(self) -> str:
        return f"<InferenceResult: {len(self)} inputs, {self._users_of_outputs.size} outputs>"

    @property
    def values(self) -> Array:
        """What every output neuron says to every input."""
        return self._outputs

    @property
    def vertices(self) -> Array:
        """The output neurons, ascending."""
        return self._users_of_outputs

    def to_numpy(self) -> dict[str, Array]:
        """All columns, `input` first."""
        return {"input": np.arange(len(self)), **{name: self[name] for name in self._columns}}

    def _batch(self, begin: int, end: int) -> Any:
        import pyarrow as pa

        columns = {name: as_arrow(column[begin:end], None) for name, column in self._columns.items()}
        return pa.RecordBatch.from_pydict({"input": as_arrow(np.arange(begin, end), None), **columns})
