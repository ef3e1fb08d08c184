"""The types of an input's weights: in the input, beside arcs that are sorted, and in the store."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from isthmus.errors import GraphFormatError, OptionError
from isthmus.graph.ingest.cleaning import Cleaning
from isthmus.graph.ingest.edges import EdgeSource
from isthmus.graph.ingest.generators import Generator
from isthmus.graph.store.files import Array
from isthmus.graph.store.list_writer import SortedLists
from isthmus.messages import option

INT32 = np.iinfo(np.int32)
Finish = Callable[[Array, "Array | None"], SortedLists]  # makes lists of sorted keys and their weights


class WeightTypes:
    """`sorted` is the type of weights that are sorted with their arcs, `stored` their type in the store.

    Both are None without weights. Weights of a generated graph are computed when its lists are written, so only
    `stored` is set. `warnings` collects notes for the user.
    """

    def __init__(self, source: EdgeSource, cleaning: Cleaning, warnings: list[str]) -> None:
        self._source, self._asked = source, cleaning.weight_dtype
        self._sums = cleaning.parallel == "sum"
        self._range = source.range if isinstance(source, Generator) else None
        stored = self._stored(warnings) if source.weighted else None
        self.sorted = self._summed() if stored and self._sums else stored
        self.stored = self._range.dtype if self._range else stored
        self.negative = self._range is not None and self._range.low < 0  # whether computed ones may be

    def _stored(self, warnings: list[str]) -> str:
        """As requested, else the narrowest type that holds all weights, and their sums, exactly."""
        found, asked = self._source.weight_dtype, self._asked
        if asked in ("int32", "int64") and found not in ("int32", asked):
            raise OptionError(
                f"{self._source.name}: some weights are not {asked[3:]}-bit whole numbers; {asked} cannot hold them"
            )
        if not self._sums or asked not in (None, "int64"):
            return asked or found
        if found == "int64" and asked is None:
            warnings.append(f"{self._source.name}: sums of whole weights beyond 32 bits are stored as float64")
        elif found == "int64":
            instead = option("weight_dtype", "float64")
            raise OptionError(
                f"{self._source.name}: sums of whole weights beyond 32 bits may not fit int64; give {instead}"
            )
        return self._summed()

    def _summed(self) -> str:
        """The type that adds weights: int64 holds the sum of up to 2**32 weights of 32 bits."""
        return "int64" if self._source.weight_dtype == "int32" else "float64"

    def converted(self, weights: Array | None, dtype: str) -> Array:
        """Weights converted to another type; an error if one does not fit."""
        assert weights is not None
        with np.errstate(over="ignore", invalid="ignore"):
            found = np.asarray(weights, dtype)
        bad = ~np.isfinite(found)
        if dtype == "int32":  # a sum may exceed it
            bad = (weights < INT32.min) | (weights > INT32.max) | (weights != np.rint(weights))
        if bad.any():
            raise GraphFormatError(f"{self._source.name}: a weight of {weights[bad.argmax()]} does not fit {dtype}")
        return found

    def finished(self, finish: Finish, backward: bool) -> Finish:
        """`finish`, and then weights of the stored type; `backward`: for lists of in-edges."""
        source = self._source

        def finished(keys: Array, weights: Array | None) -> SortedLists:
            lists = finish(keys, weights)
            if isinstance(source, Generator):
                lists.weights = source.weigh(lists, backward)
            elif self.stored is not None:
                lists.weights = self.converted(lists.weights, self.stored)
            return lists

        return finished if self._range or (self.stored is not None and self._sums) else finish
