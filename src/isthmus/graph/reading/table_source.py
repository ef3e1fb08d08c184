"""Edges from Arrow batches: tables in memory, Parquet and Arrow files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from isthmus import sizes
from isthmus.errors import GraphFormatError, OptionError
from isthmus.graph.formats import ReadOptions
from isthmus.graph.ingest.edges import EdgeBlock, EdgeSource
from isthmus.graph.ingest.names import encode
from isthmus.graph.reading import column_names
from isthmus.graph.reading.arrow_columns import (
    LAST_EXACT,
    WIDTHS,
    as_binary,
    as_key,
    check_weights,
    has_missing,
    is_number,
    is_string,
    is_utf8,
    shortened_bytes,
    text_lengths,
    value_type,
    whole_hint,
)
from isthmus.graph.store.files import Array
from isthmus.messages import option
from isthmus.threads import Pool

STRING_EDGES = 1 << 16  # per block with string ids, which take many times their bytes during encoding
STRING_BYTES = 1 << 20  # of the ids of such a block, unless a single edge has more


class TableSource(EdgeSource):
    """Edges from a schema and a stream of record batches."""

    def __init__(self, name: str, schema: Any, batches: Callable[[], Iterator[Any]], options: ReadOptions) -> None:
        self.name, self.options, self._batches = name, options, batches
        self.vertices = options.vertices
        self._skips, self._skipped = options.missing == "skip", 0
        self._choose_columns(list(schema.names))
        self.weighted = self._weight is not None
        self.ids = self._id_kind(schema)
        self.check_schema(schema, self.name)
        self._huge = False
        self._unsigned = self.weighted and pa.types.is_unsigned_integer(value_type(schema.field(self._weight).type))
        self._ignored = [field.name for field in schema if field.name not in self.columns]
        maybe = [field.name for field in schema if field.name in self._ignored and is_number(field.type)]
        if maybe and not self.weighted and options.weight is None:
            self.notes = (column_names.ignored(name, len(self._ignored), maybe[0]),)

    def _choose_columns(self, names: list[str]) -> None:
        options = self.options
        self._weight = self._weight_column(names)
        ends = [name for name in names if options.weight is not None or name != self._weight]
        self._source = self._column(ends, options.source, column_names.SOURCE, 0)
        self._target = self._column(ends, options.target, column_names.TARGET, 1)
        self.columns = [column for column in (self._source, self._target, self._weight) if column is not None]
        if len(set(self.columns)) < len(self.columns):
            raise OptionError(
                f"{self.name}: source, target and weight must be different columns, got {', '.join(self.columns)}; "
                f"name them with {option('source')}, {option('target')} and {option('weight')} out of "
                f"{', '.join(names)}"
            )

    def _id_kind(self, schema: Any) -> Literal["int", "string"]:
        if self.options.vertices is not None or self.options.ids == "int":
            return "int"
        text = any(is_string(field.type) for field in schema if field.name in (self._source, self._target))
        return "string" if self.options.ids == "string" or text else "int"

    def _weight_column(self, names: list[str]) -> str | None:
        """The column of the weights: the one that was requested, else one with a usual name for weights."""
        asked = self.options.weight
        if asked is None:
            taken = (self.options.source, self.options.target)
            return column_names.known([name for name in names if name not in taken], column_names.WEIGHT)
        return None if asked == column_names.NONE and asked not in names else self._column(names, asked, (), -1)

    def _column(self, names: list[str], requested: str | int | None, usual: tuple[str, ...], default: int) -> str:
        """The name of a column: requested by number (from 1) or name, else one of the usual names, else by position."""
        if isinstance(requested, int | np.integer) or (
            isinstance(requested, str) and requested.isdigit() and requested not in names
        ):
            if not 1 <= int(requested) <= len(names):
                raise OptionError(f"{self.name}: expected a column from 1 to {len(names)}, got {requested}")
            return names[int(requested) - 1]
        if requested is not None:
            if requested not in names:
                raise OptionError(f"{self.name}: no column {requested!r}; there are {', '.join(names)}")
            return requested
        named = column_names.known(names, usual)
        if named is not None:
            return named
        if len(names) < 2:
            raise GraphFormatError(
                f"{self.name}: expected columns for source and target, found {', '.join(names) or 'none'}"
            )
        return names[default]

    def check_schema(self, schema: Any, name: str) -> None:
        """Check that each column exists once and has a type for ids or weights."""
        for column in self.columns:
            count = schema.names.count(column)
            if count != 1:
                raise GraphFormatError(f"{name}: expected one column {column!r}, found {count}")
            kind = value_type(schema.field(column).type)
            if column == self._weight:
                if not is_number(kind):
                    hint = (
                        f" ({option('weight', column_names.NONE)} reads no weights)"
                        if self.options.weight is None
                        else ""
                    )
                    raise GraphFormatError(f"{name}: column {column!r} holds {kind}, expected numbers as weights{hint}")
            elif not (pa.types.is_integer(kind) or is_string(kind) or (pa.types.is_floating(kind) and self._skips)):
                hint = whole_hint(pa.types.is_floating(kind))
                raise GraphFormatError(
                    f"{name}: column {column!r} holds {kind}, expected integers or strings as ids{hint}"
                )
            elif self.ids == "int" and is_string(kind):
                raise GraphFormatError(f"{name}: column {column!r} holds {kind}, expected integers")

    def blocks(self, pool: Pool) -> Iterator[EdgeBlock]:
        self.signed = self._huge = False
        self._skipped, kind = 0, WIDTHS[0]
        for block, signed, huge, width in pool.map(self._convert, self._pieces()):
            self._skipped += block.done - block.sources.size
            self.signed |= signed
            self._huge |= huge
            kind = max(kind, width, key=WIDTHS.index)
            if self.signed and self._huge:
                raise GraphFormatError(
                    f"{self.name}: ids below 0 and above 2**63 - 1 in one table; no 64-bit type holds both"
                )
            yield block
        self.weight_dtype = kind
        if self._unsigned and kind == "float64":
            self.notes = (*self.notes, column_names.rounded(self.name))
        if self._skipped:
            self.notes = (*self.notes, column_names.skipped(self.name, self._skipped, "row"))

    def _pieces(self) -> Iterator[tuple[int, Any]]:
        """(first row, rows) of blocks."""
        row = 0
        for batch in self._batches():
            cuts = self._cuts(batch)
            for start, stop in pairwise(cuts):
                yield row + start, batch.slice(start, stop - start)
            row += batch.num_rows

    def _cuts(self, batch: Any) -> list[int]:
        """Where to cut a batch into blocks. Decoded ids may take many times the bytes of the batch: count them."""
        rows = batch.num_rows
        if self.ids != "string":
            return [*range(0, rows, sizes.now.block_edges), rows]
        ends = np.cumsum(sum(text_lengths(batch.column(column)) for column in (self._source, self._target)))
        cuts = [0]
        while cuts[-1] < rows:
            before = int(ends[cuts[-1] - 1]) if cuts[-1] else 0
            fitting = int(np.searchsorted(ends, before + STRING_BYTES, "right"))
            cuts.append(min(max(fitting, cuts[-1] + 1), cuts[-1] + min(sizes.now.block_edges, STRING_EDGES), rows))
        return cuts

    def _convert(self, item: tuple[int, Any]) -> tuple[EdgeBlock, bool, bool, str]:
        """(Edges of a batch, whether an id is negative, whether one exceeds 63 bits, the type of the weights)."""
        row, batch = item
        names = (self._source, self._target)
        ends = [self._decoded(batch, column) for column in names]
        complete = self._complete_rows(ends)
        if complete is not None:
            ends = [column.fill_null(0 if not is_string(column.type) else "") for column in ends]
        ends = [self._present(column, name, row) for column, name in zip(ends, names, strict=True)]
        weights, width = self._weights(batch, row, complete) if self._weight is not None else (None, WIDTHS[0])
        if self.ids == "string":
            first, second = (self._binary(column, name, row) for column, name in zip(ends, names, strict=True))
            if complete is not None:
                first, second = (column.filter(pa.array(complete)) for column in (first, second))
            sources, targets, unique = encode(first, second, self.salt)
            return EdgeBlock(sources, targets, weights, unique, batch.num_rows), False, False, width
        columns = [self._whole(column, name, row, complete) for column, name in zip(ends, names, strict=True)]
        signed, huge = self._extent(columns)
        sources, targets = (as_key(column) for column in columns)
        return EdgeBlock(sources, targets, weights, None, batch.num_rows), signed, huge, width

    def _complete_rows(self, ends: list[Any]) -> Array | None:
        """A mask of the rows that have both ids, if rows without are skipped; None: all rows."""
        if not self._skips or not any(has_missing(column) for column in ends):
            return None
        absent = pc.or_(*(pc.is_null(column, nan_is_null=True) for column in ends))
        return np.asarray(pc.invert(absent).to_numpy(zero_copy_only=False))

    def _extent(self, columns: list[Array]) -> tuple[bool, bool]:
        """(Whether an id is negative, whether one exceeds 63 bits)."""
        signed = any(c.dtype.kind == "i" and c.size and c.min() < 0 for c in columns)
        huge = any(c.dtype == np.uint64 and c.size and int(c.max()) >> 63 for c in columns)
        if self.vertices is not None and signed:
            lowest = min(column.min() for column in columns)
            raise GraphFormatError(f"{self.name}: expected ids from 0 to {self.vertices - 1}, got {lowest}")
        return signed, huge

    def _decoded(self, batch: Any, column: str) -> Any:
        """A column, decoded if it is a dictionary."""
        data = batch.column(column)
        if pa.types.is_dictionary(data.type):
            values = data.dictionary
            if pa.types.is_string_view(values.type):  # from Polars; Arrow's `take` does not support it
                values = values.cast(pa.large_string())
            data = values.take(data.indices)
        return data

    def _present(self, data: Any, column: str, row: int) -> Any:
        """A column; an error if it has nulls."""
        if data.null_count:
            at = pc.index(data.is_null(), True).as_py()
            skips = f" ({option('missing', 'skip')} leaves such rows out)" if column != self._weight else ""
            raise GraphFormatError(
                f"{self.name}: row {row + at}: expected a value in column {column!r}, got null{skips}"
            )
        return data

    def _whole(self, data: Any, column: str, row: int, complete: Array | None) -> Array:
        """Integer ids of complete rows. Floats may be whole numbers: pandas makes floats of integers beside a gap."""
        values = np.asarray(data.to_numpy(zero_copy_only=False))
        if values.dtype.kind == "f":
            there = np.ones(values.size, np.bool_) if complete is None else complete
            bad = there & ~((values == np.rint(values)) & (np.abs(values) < LAST_EXACT))
            if bad.any():
                at = int(bad.argmax())
                raise GraphFormatError(
                    f"{self.name}: row {row + at}: expected a whole number in column {column!r}, got {values[at]}"
                )
            values = np.where(there, values, 0).astype(np.int64)
        return values if complete is None else values[complete]

    def _binary(self, ids: Any, column: str, row: int) -> Any:
        """Strings (or integers requested as strings) as one large_binary array."""
        if not is_string(ids.type):
            return ids.cast(pa.large_string()).cast(pa.large_binary())
        ids = as_binary(ids)
        try:
            ids.cast(pa.large_string())  # bytes are checked on the way, strings of a file are not
        except pa.ArrowInvalid:
            at, bad = next((at, value) for at, value in enumerate(ids.to_pylist()) if not is_utf8(value))
            raise GraphFormatError(
                f"{self.name}: row {row + at}: expected an id in UTF-8 in column {column!r}, got {shortened_bytes(bad)}"
            ) from None
        return ids

    def _weights(self, batch: Any, row: int, complete: Array | None = None) -> tuple[Array, str]:
        assert self._weight is not None
        data = self._decoded(batch, self._weight)
        if complete is not None:  # a row that is left out needs no weight
            data = pc.if_else(pa.array(complete), data, pa.scalar(0, data.type))
        values = self._present(data, self._weight, row).to_numpy(zero_copy_only=False)
        weights, width = check_weights(values, self.name, row, self.options.allow_negative)
        return weights if complete is None else weights[complete], width

    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "format": "table",
            "source": self._source,
            "target": self._target,
            "weight": self._weight,
        }
        found = {**found, "rows_skipped": self._skipped} if self._skipped else found
        return {**found, "columns_ignored": len(self._ignored)} if self._ignored else found

    def sampled(self, table: Any, count: int) -> EdgeBlock:
        """About `count` edges of a table, spread over it."""
        step = max(1, table.num_rows // max(count, 1))
        picked = table.take(pa.array(np.arange(0, table.num_rows, step))).combine_chunks()
        batches = picked.to_batches()
        if not batches:
            return EdgeBlock(np.empty(0, np.uint32), np.empty(0, np.uint32))
        return self._convert((0, batches[0]))[0]
