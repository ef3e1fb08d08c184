"""Frames: the pieces that a log is made of. Each has a header with two checksums, its own and that of its content.

| field | bytes | |
|---|---|---|
| magic | 4 | `ISLF` |
| kind | 1 (and 3 of zeros) | BEGIN opens a segment, BATCH holds a batch, MARK says how far the log was synced |
| length | 8 | bytes of content behind the header |
| number | 8 | of the batch; of BEGIN and MARK, of the last batch before |
| synced | 8 | the last batch that was on disk for certain when the frame was written |
| content | 8 | xxh3-64 of the content |
| header | 8 | xxh3-64 of the 40 bytes before |

All numbers are little-endian. Both checksums are seeded with a number that every log draws for itself: neither the
frames of another log nor bytes that a client chose can be mistaken for a frame of this one.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import xxhash

from isthmus.errors import StoreError
from isthmus.graph.store.files import read_into

MAGIC = b"ISLF"
FIELDS = struct.Struct("<4sB3xQQQQ")
SUM = struct.Struct("<Q")
HEADER = FIELDS.size + SUM.size
BEGIN, BATCH, MARK = 1, 2, 3
AT_ONCE = 1 << 20  # bytes that are searched at once


@dataclass(frozen=True)
class Header:
    """What the header of a frame says."""

    kind: int
    length: int
    number: int
    synced: int
    content: int  # checksum


def framed(seed: int, kind: int, number: int, synced: int, content: bytes = b"") -> bytes:
    """A frame."""
    fields = FIELDS.pack(MAGIC, kind, len(content), number, synced, xxhash.xxh3_64_intdigest(content, seed))
    return fields + SUM.pack(xxhash.xxh3_64_intdigest(fields, seed)) + content


def header_of(data: bytes, seed: int) -> Header | None:
    """The header that begins here; None: there is no whole and sound one."""
    if len(data) < HEADER or data[: len(MAGIC)] != MAGIC:
        return None
    _, kind, length, number, synced, content = FIELDS.unpack_from(data)
    if SUM.unpack_from(data, FIELDS.size)[0] != xxhash.xxh3_64_intdigest(data[: FIELDS.size], seed):
        return None
    return Header(kind, length, number, synced, content)


@dataclass(frozen=True)
class Frame:
    """A sound frame of a file."""

    header: Header
    at: int  # where it begins
    content: bytes

    @property
    def end(self) -> int:
        return self.at + HEADER + self.header.length


def frames(file: int, seed: int, name: str, size: int) -> Iterator[Frame]:
    """The frames in the first `size` bytes of a file, up to the first one that is incomplete or damaged."""
    at = 0
    while at + HEADER <= size:
        header = header_of(read(file, at, HEADER, name), seed)
        if header is None or at + HEADER + header.length > size:
            return
        content = read(file, at + HEADER, header.length, name)
        if xxhash.xxh3_64_intdigest(content, seed) != header.content:
            return
        frame = Frame(header, at, content)
        yield frame
        at = frame.end


def synced_behind(file: int, seed: int, at: int, name: str, size: int) -> int:
    """The last batch that a sound header somewhere in the bytes from `at` to `size` knows to be on disk; 0 without
    one.
    """
    found, tail = 0, b""
    for begin in range(at, size, AT_ONCE):
        data = tail + read(file, begin, min(AT_ONCE, size - begin), name)
        place = data.find(MAGIC)
        while place >= 0:
            header = header_of(data[place : place + HEADER], seed)
            found = max(found, header.synced if header is not None else 0)
            place = data.find(MAGIC, place + 1)
        tail = data[-HEADER + 1 :]
    return found


def read(file: int, at: int, count: int, name: str) -> bytes:
    data = bytearray(count)
    try:
        read_into(file, memoryview(data), at, name)
    except StoreError:
        if os.fstat(file).st_size < at + count:  # its writer has cut it meanwhile
            return b""
        raise
    return bytes(data)
