"""Sizes that the messages of an Arrow file or stream claim, read before Arrow decompresses them.

Every compressed buffer begins with its size in memory. Where the buffers lie is in the metadata of their message, a
FlatBuffers table: see Message.fbs and File.fbs in the Arrow format. Only positions and sizes are used.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Any

MAGIC = b"ARROW1"
CONTINUED = 0xFFFFFFFF  # before the length of a message
DICTIONARY_BATCH, RECORD_BATCH = 2, 3  # types of messages
MOST_METADATA = 256 << 20  # bytes


class BadMessage(Exception):
    """Metadata that does not follow the format."""


class Table:
    """A FlatBuffers table at a position of its buffer."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at

    def place(self, field: int) -> int | None:
        """The position of a field; None: it is not stored."""
        virtual = self._at - self._number("<i", self._at)
        slot = 4 + 2 * field
        if slot >= self._number("<H", virtual):
            return None
        offset = self._number("<H", virtual + slot)
        return self._at + offset if offset else None

    def number(self, field: int, kind: str) -> int:
        place = self.place(field)
        return 0 if place is None else self._number(kind, place)

    def table(self, field: int) -> Table | None:
        place = self.place(field)
        return None if place is None else Table(self._data, place + self._number("<I", place))

    def structs(self, field: int, kind: str) -> Iterator[tuple[Any, ...]]:
        """The entries of a vector of structs."""
        place = self.place(field)
        if place is None:
            return
        start = place + self._number("<I", place)
        width = struct.calcsize(kind)
        for index in range(self._number("<I", start)):
            at = start + 4 + index * width
            if at < 0 or at + width > len(self._data):
                raise BadMessage("a list ends outside the metadata")
            yield struct.unpack_from(kind, self._data, at)

    def _number(self, kind: str, at: int) -> int:
        if at < 0 or at + struct.calcsize(kind) > len(self._data):
            raise BadMessage("a position outside the metadata")
        return int(struct.unpack_from(kind, self._data, at)[0])


def root(data: bytes) -> Table:
    if len(data) < 4:
        raise BadMessage("no metadata")
    return Table(data, struct.unpack_from("<I", data)[0])


def claims(file: int) -> Iterator[int]:
    """Bytes that each batch takes once decompressed; 0 for one that is not compressed. `file` is an open file."""
    size = os.fstat(file).st_size
    tail = os.pread(file, 10, max(size - 10, 0))
    if os.pread(file, 6, 0) == MAGIC and tail[4:] == MAGIC:
        length = struct.unpack("<i", tail[:4])[0]
        if not 0 <= length <= min(size - 10, MOST_METADATA):
            raise BadMessage("the footer does not fit the file")
        footer = root(os.pread(file, length, size - 10 - length))
        for field in (2, 3):  # dictionaries, record batches
            for offset, _, _ in footer.structs(field, "<qi4xq"):
                yield message_at(file, offset)[0]
        return
    at = 0
    while at < size:
        claim, at = message_at(file, at)
        yield claim


def message_at(file: int, at: int) -> tuple[int, int]:
    """(Bytes that a message takes once decompressed, where the next one begins: the end of the file after the last)."""
    head = os.pread(file, 8, at) if at >= 0 else b""
    if len(head) < 4:
        raise BadMessage("a message outside the file")
    length, before = struct.unpack_from("<I", head)[0], 4
    if length == CONTINUED and len(head) == 8:
        length, before = struct.unpack_from("<I", head, 4)[0], 8
    if length == 0:
        return 0, os.fstat(file).st_size
    if length > MOST_METADATA:
        raise BadMessage(f"a message with {length} bytes of metadata")
    message = root(os.pread(file, length, at + before))
    body = at + before + length
    kind, header = message.number(1, "<B"), message.table(2)
    if header is not None and kind == DICTIONARY_BATCH:
        header = header.table(1)
    compressed = header is not None and kind in (DICTIONARY_BATCH, RECORD_BATCH) and header.table(3) is not None
    claim = (
        sum(buffer_claim(file, body, *buffer) for buffer in header.structs(2, "<qq")) if compressed and header else 0
    )
    return claim, body + max(message.number(3, "<q"), 0)


def buffer_claim(file: int, body: int, offset: int, length: int) -> int:
    """Bytes of one compressed buffer in memory. -1 in front says that it is not compressed after all."""
    if length <= 8:
        return 0
    front = os.pread(file, 8, body + offset) if offset >= 0 else b""
    if len(front) < 8:
        raise BadMessage("a buffer outside the file")
    (claim,) = struct.unpack("<q", front)
    if claim < -1:
        raise BadMessage(f"a buffer of {claim} bytes")
    return int(length - 8 if claim == -1 else claim)
