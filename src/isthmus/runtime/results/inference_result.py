"""The result of a neural network: a row per input, with the value of every output neuron and the strongest of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from isthmus.errors import UnknownVertexError
from isthmus.runtime.results.result import Array, Result, as_arrow


class InferenceResult(Result):
    """`values` has a row per input and a column per output neuron; `vertices` are the output neurons, ascending.

    Column `class` is the index of the strongest output neuron, from 0; `output_<id>` is the value of one neuron.
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        outputs, places = self._answer.values, self._answer.vertices
        assert outputs is not None and places is not None
        self._in_hub_order = False  # rows are inputs
        self._outputs, self._users_of_outputs = outputs, self._ids.users_of_natural(places)
        names = [f"output_{user}" for user in self._users_of_outputs.tolist()]
        self._answer.columns = {"class": np.argmax(outputs, axis=1), **dict(zip(names, outputs.T, strict=True))}

    def __len__(self) -> int:
        return len(self._outputs)

    def __repr__(self) -> str:
        return f"<InferenceResult: {len(self)} inputs, {self._users_of_outputs.size} outputs>"

    @property
    def values(self) -> Array:
        """The value of every output neuron for every input."""
        return self._outputs

    @property
    def vertices(self) -> Array:
        """The output neurons, ascending."""
        return self._users_of_outputs

    def _keys(self, begin: int, end: int) -> list[Any]:
        return list(range(begin, end))

    def _row(self, key: Any) -> int:
        if not isinstance(key, int | np.integer) or isinstance(key, bool) or not 0 <= key < len(self):
            raise UnknownVertexError(f"expected an input from 0 to {len(self) - 1}, got {key!r}")
        return int(key)

    def _main_values(self, begin: int, end: int) -> list[Any]:
        return list(self._outputs[begin:end])

    def whose(self, at: int) -> str:
        return f"row {at}"

    def to_numpy(self) -> dict[str, Array]:
        """All columns, `input` first."""
        return {"input": np.arange(len(self)), **{name: self[name] for name in self.columns}}

    def _named_places(self, begin: int, end: int) -> Iterator[Array]:
        return iter(())

    def _main_rows(self, begin: int, end: int) -> Array:
        return self._outputs[begin:end]

    def _batch(self, begin: int, end: int) -> Any:
        columns = {name: as_arrow(column[begin:end], None) for name, column in self._answer.columns.items()}
        return self._record({"input": as_arrow(np.arange(begin, end), None), **columns})
