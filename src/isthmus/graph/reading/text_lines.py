"""Text files as blocks of whole lines, decompressed on the way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from isthmus import sizes
from isthmus.errors import GraphFormatError
from isthmus.graph.store.files import Array
from isthmus.kernels.text import edge_text as kernels
from isthmus.messages import option

MARK = b"\xef\xbb\xbf"  # byte order mark: some programs write it before UTF-8 text
CODECS = {".gz": "gzip", ".zst": "zstd"}


class BadLine(Exception):
    """A line the kernel refused: its status, its number within the block, its text."""


class Lines:
    """A file as arrays of whole lines, decompressed on the way. Every array ends with a newline."""

    def __init__(self, path: Path, max_expansion: float, chunk: int | None = None) -> None:
        self.path = path
        self._chunk = chunk or sizes.now.text_chunk
        self.size = path.stat().st_size
        self._limit = max(sizes.now.free_expansion, int(self.size * max_expansion))
        self._codec = CODECS.get(path.suffix.lower())
        self.expanded = 0

    def __iter__(self) -> Iterator[tuple[Array, int]]:
        """(lines, bytes of the file that they came from)."""
        if self._codec and not self.size:
            raise GraphFormatError(f"{self.path}: cannot read: the file is empty, so it is not a {self._codec} file")
        try:
            with self.path.open("rb", buffering=0) as file:
                yield from self._cut(file)
        except OSError as error:  # pyarrow reports damaged compressed data as OSError too
            raise GraphFormatError(f"{self.path}: cannot read: {error.strerror or error}") from error

    def _cut(self, file: Any) -> Iterator[tuple[Array, int]]:
        stream = pa.CompressedInputStream(pa.PythonFile(file, "r"), self._codec) if self._codec else None
        carry, position, first, last = np.empty(0, np.uint8), 0, True, False
        while not last:
            buffer, filled = self._filled(stream, file, carry)
            last = filled < carry.size + self._chunk
            end = last_newline(buffer, filled)
            if last and end < filled:
                buffer[filled] = kernels.NEWLINE
                end = filled = filled + 1
            now = file.tell()
            lines, carry = buffer[:end], buffer[end:filled]
            if end == 0 and not last:
                lines, carry = self._broken(without_mark(carry) if first else carry)
            if lines.size:
                yield without_mark(lines) if first else lines, now - position
                first = False
            position = now

    def _filled(self, stream: Any, file: Any, carry: Array) -> tuple[Array, int]:
        """(A buffer with `carry` and the next bytes, how many it holds); it has space for a newline behind them."""
        most = carry.size + self._chunk
        buffer, filled = np.empty(most + 1, np.uint8), carry.size
        buffer[:filled] = carry
        while filled < most:
            got = read_some(stream, file, buffer, filled, most)
            if got == 0:
                break
            filled += got
        self.expanded += filled - carry.size
        if self._codec and self.expanded > self._limit:
            raise GraphFormatError(
                f"{self.path}: {self.size} bytes decompress to more than {self._limit}; "
                f"if that is right, give {option('max_expansion')} a larger factor"
            )
        return buffer, filled

    def _broken(self, begun: Array) -> tuple[Array, Array]:
        """(Lines to read now, bytes before the rest of the file) for a line whose end is not in memory."""
        raise GraphFormatError(f"{self.path}: a line is longer than {self._chunk} bytes; is this a text edge list?")


def without_mark(lines: Array) -> Array:
    """The first lines of a file, without a byte order mark."""
    return lines[len(MARK) :] if lines[: len(MARK)].tobytes() == MARK else lines


def without_mark_bytes(begun: bytes) -> bytes:
    return begun.removeprefix(MARK)


def read_some(stream: Any, file: Any, buffer: Array, start: int, stop: int) -> int:
    """Read into buffer[start:stop]; 0 at the end."""
    view = buffer.data[start:stop]
    if stream is None:
        return int(file.readinto(view))
    data = stream.read(min(len(view), 1 << 20))
    view[: len(data)] = data
    return len(data)


def last_newline(buffer: Array, filled: int) -> int:
    """Where the last whole line ends; 0 if there is none."""
    for end in range(filled, 0, -(1 << 16)):
        start = max(0, end - (1 << 16))
        found = np.flatnonzero(buffer[start:end] == kernels.NEWLINE)
        if found.size:
            return start + int(found[-1]) + 1
    return 0


def line_at(text: Array, where: int, skipped: int) -> tuple[int, bytes]:
    """(number within the block, counted from 1, and text) of the line that holds position `where`."""
    before = text[:where]
    number = int(np.count_nonzero(before == kernels.NEWLINE)) + 1 + skipped
    start = last_newline(text, where)
    rest = text[start:].tobytes()[: 1 << 16]
    return number, rest.split(b"\n", 1)[0]


def shortened(line: bytes) -> str:
    """A line for messages, shortened."""
    shown = line.decode("utf-8", "replace").rstrip("\r")
    return shown if len(shown) <= 80 else shown[:77] + "..."
