"""Pages of Parquet columns, as their headers describe them, read before anything is decoded.

A small file can claim very much: a page that decompresses to gigabytes, a dictionary with one long value that every row
repeats, or values that share their beginnings with the values before them (DELTA_BYTE_ARRAY). Arrow allocates what is
claimed. The headers give the largest page and a bound on the bytes of a row, from which the reader derives how many
rows it decodes at once.

Footer and headers are structs in Thrift's compact protocol; see parquet.thrift in the Parquet format. Only names,
places, sizes, counts and encodings are used. The footer is read here too: pyarrow ends the process when it is asked for
a damaged column.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

DATA, INDEX, DICTIONARY, DATA_V2 = range(4)  # types of pages
BYTE_ARRAY = 6  # a type of columns
DELTA_BYTE_ARRAY = 7  # an encoding
WINDOW, LARGEST_HEADER = 1 << 10, 16 << 20  # bytes; Arrow refuses larger headers
CODECS = ("snappy", "gzip", "zstd", "brotli", "lz4_raw")
STOP, TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 11, 12


class BadPage(Exception):
    """A header that does not follow the format."""


@dataclass
class Page:
    """A page: its bytes in memory, its values, and the most bytes of a value (None: only their mean is known)."""

    kind: int
    size: int
    values: int
    longest: int | None = None

    @property
    def bytes_per_row(self) -> int:
        return self.longest if self.longest is not None else -(-self.size // max(self.values, 1))


@dataclass
class Chunk:
    """The pages of one column of a row group. `name` is its path in the schema; nested ones have a point."""

    name: str
    holds_strings: bool
    start: int
    size: int


def row_groups(file: int) -> list[tuple[int, list[Chunk]]]:
    """(Rows, columns) of every row group, by the footer."""
    size = os.fstat(file).st_size
    length = int.from_bytes(os.pread(file, 4, max(size - 8, 0)), "little")
    if length > size - 12:
        raise BadPage("the footer does not fit the file")
    try:
        footer, _ = read_struct(os.pread(file, length, size - 8 - length), 0)
    except IndexError:
        raise BadPage("the footer does not end") from None
    groups = [(whole(group, 3), list(map(chunk_of, structs(group, 1)))) for group in structs(footer, 4)]
    if whole(footer, 3) != sum(rows for rows, _ in groups) or any(rows < 0 for rows, _ in groups):
        raise BadPage("the rows of the row groups are not those of the file")
    return groups


def chunk_of(column: dict[int, Any]) -> Chunk:
    facts = column.get(3)
    if not isinstance(facts, dict):
        raise BadPage("a column without a description")
    path = [part for part in facts.get(3) or () if isinstance(part, bytes)]
    start, dictionary = whole(facts, 9), whole(facts, 11)
    start = dictionary if 0 < dictionary < start else start
    return Chunk(b".".join(path).decode(), whole(facts, 1) == BYTE_ARRAY, start, whole(facts, 7))


def structs(members: dict[int, Any], field: int) -> list[dict[int, Any]]:
    """A member that is a list of structs; none if it is something else."""
    found = members.get(field)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def pages_of(file: int, chunk: Chunk, most: int) -> Iterator[Page]:
    """The pages of a column chunk of an open file, in order.

    A dictionary is decompressed to find its longest value, unless it has more than `most` bytes.
    """
    at = chunk.start
    end = min(at + chunk.size, os.fstat(file).st_size)
    if at < 0 or chunk.size < 0:
        raise BadPage(f"column {chunk.name!r} has no place")
    while at < end:
        header, length = header_at(file, at)
        kind, size, stored = (whole(header, field) for field in (1, 2, 3))
        if min(kind, size, stored) < 0 or at + length + stored > end:
            raise BadPage(f"the page header at byte {at} has no sizes, or one beyond its column")
        own = header.get({DATA: 5, DICTIONARY: 7, DATA_V2: 8}.get(kind, 0))
        own = own if isinstance(own, dict) else {}
        page = Page(kind, size, max(whole(own, 1), 0))
        if kind == DICTIONARY and chunk.holds_strings and size <= most:
            page.longest = longest_value(file, at + length, stored, page)
        elif whole(own, 4 if kind == DATA_V2 else 2) == DELTA_BYTE_ARRAY:
            page.longest = size  # each value may repeat all that the page holds
        yield page
        at += length + stored


def whole(members: dict[int, Any], field: int) -> int:
    """A member that is a whole number; -1 if it is missing or something else."""
    value = members.get(field)
    return value if isinstance(value, int) else -1


def longest_value(file: int, at: int, stored: int, page: Page) -> int:
    """Bytes of the longest string of a dictionary page by any codec; the size of the page, if it is unknown."""
    data = os.pread(file, stored, at)
    found = [longest_of(data, page.values)] if len(data) == page.size else []
    for codec in CODECS:
        with contextlib.suppress(pa.ArrowException, OSError):
            found.append(longest_of(pa.decompress(data, page.size, codec, asbytes=True), page.values))
    return max((longest for longest in found if longest is not None), default=page.size)


def longest_of(data: bytes, values: int) -> int | None:
    """Bytes of the longest of `values` strings, each behind its length; None: the data is something else."""
    longest = place = count = 0
    while place + 4 <= len(data):
        (length,) = struct.unpack_from("<I", data, place)
        longest = max(longest, length)
        place += 4 + length
        count += 1
    return longest if place == len(data) and count == values else None


def header_at(file: int, at: int) -> tuple[dict[int, Any], int]:
    """(The members of a page header by field number, its length in bytes)."""
    window = WINDOW
    while True:
        data = os.pread(file, window, at)
        try:
            return read_struct(data, 0)
        except IndexError:  # the header is longer than the window, or the file ends
            if len(data) < window or window >= LARGEST_HEADER:
                raise BadPage(f"the page header at byte {at} does not end") from None
            window *= 32


def read_struct(data: bytes, at: int, depth: int = 0) -> tuple[dict[int, Any], int]:
    """(Numbers, bytes, lists and structs in a struct by field number, where it ends). All else is skipped."""
    if depth > 16:
        raise BadPage("a header is nested too deeply")
    members: dict[int, Any] = {}
    field = 0
    while True:
        head, at = data[at], at + 1
        kind, step = head & 15, head >> 4
        if kind == STOP:
            return members, at
        if step:
            field += step
        else:
            field, at = read_whole(data, at)
        if kind not in (TRUE, FALSE):  # their value is their type
            members[field], at = read_value(data, at, kind, depth)


def read_value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind == STRUCT:
        return read_struct(data, at, depth + 1)
    if kind in (LIST, SET):
        return read_list(data, at, depth + 1)
    if kind == MAP:
        raise BadPage("a header holds a map, which the format does not have")
    if kind in (BYTE, TRUE, FALSE):
        return None, at + 1
    if kind == DOUBLE:
        return None, at + 8
    if kind == BINARY:
        length, at = read_varint(data, at)
        if at + length > len(data):
            raise IndexError
        return data[at : at + length], at + length
    if kind > STRUCT:
        raise BadPage(f"a header has a member of unknown type {kind}")
    return read_whole(data, at)


def read_list(data: bytes, at: int, depth: int) -> tuple[list[Any], int]:
    if depth > 16:
        raise BadPage("a header is nested too deeply")
    head, at = data[at], at + 1
    kind, count = head & 15, head >> 4
    if count == 15:
        count, at = read_varint(data, at)
    if count > len(data):  # every entry has at least one byte
        raise IndexError
    entries = []
    for _ in range(count):
        entry, at = read_value(data, at, kind, depth)
        entries.append(entry)
    return entries, at


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte, at = data[at], at + 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise BadPage("a header holds a number of more than 64 bits")


def read_whole(data: bytes, at: int) -> tuple[int, int]:
    """A signed whole number: 0, -1, 1, -2, ... are written as 0, 1, 2, 3, ..."""
    value, at = read_varint(data, at)
    return (value >> 1) ^ -(value & 1), at
