"""Text as a sequence of words, in arrays of whole words: lines may have any length."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from isthmus import sizes
from isthmus.errors import GraphFormatError
from isthmus.graph.reading.text_lines import Lines, line_at, shortened
from isthmus.graph.store.files import Array
from isthmus.kernels.text import edge_text, number_text

BLANKS = (edge_text.SPACE, edge_text.TAB, edge_text.RETURN)
SHOWN = 40  # bytes of a text that are shown with an error


class Words(Lines):
    """A file as arrays that end with a newline or, where a line is long, with a blank."""

    def _broken(self, begun: Array) -> tuple[Array, Array]:
        blanks = np.flatnonzero(np.isin(begun, BLANKS))
        if not blanks.size:
            raise GraphFormatError(f"{self.path}: a word is longer than {self._chunk} bytes; expected numbers")
        cut = int(blanks[-1]) + 1
        return begun[:cut], begun[cut:]


class Numbers:
    """The whole numbers of a file, in order from the `skipped`-th on. Those before it are only counted."""

    def __init__(self, path: Path, max_expansion: float, skipped: int, first_word: int) -> None:
        self.path, self._skipped = path, skipped
        self._parts = self._arrays(path, max_expansion, first_word)
        self._held = np.empty(0, np.int64)

    def _arrays(self, path: Path, max_expansion: float, first_word: int) -> Iterator[Array]:
        """Arrays of numbers. The first `first_word` bytes of the file are a name, not a number."""
        before = 0
        for part, _ in Words(path, max_expansion, sizes.now.adjacency_chunk):
            numbers = np.empty(int(number_text.count_words(part)), np.int64)
            status, count, where = number_text.read_words(part[first_word:], numbers)
            if status != edge_text.OK:
                raise bad_word(path, part, first_word + where, before, status)
            first_word = 0
            before += int(edge_text.count_lines(part))
            yield numbers[:count]

    def take(self, count: int) -> Array:
        """The next `count` numbers; an error if there are fewer."""
        parts, left = [], count
        while left:
            if not self._held.size and not self._more():
                raise GraphFormatError(f"{self.path}: ends {left} numbers too early; the header promises more")
            parts.append(self._held[:left])
            self._held = self._held[left:]
            left -= parts[-1].size
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def _more(self) -> bool:
        for part in self._parts:
            dropped = min(self._skipped, part.size)
            self._skipped -= dropped
            self._held = part[dropped:]
            if self._held.size:
                return True
        return False

    def end(self) -> None:
        """Raise an error if there are more numbers."""
        if self._held.size or self._more():
            raise GraphFormatError(
                f"{self.path}: goes on after the numbers that its header promises, with {self._held[0]}"
            )


def bad_word(path: Path, part: Array, where: int, before: int, status: int) -> GraphFormatError:
    """The error about a word of a file: `where` it is in `part`, before which there are `before` lines."""
    number, _ = line_at(part, where, before)
    shown = part[where : where + SHOWN].tobytes().split()[0]
    expected = "a number that fits 63 bits" if status == edge_text.TOO_BIG else "a whole number"
    return GraphFormatError(f"{path}:{number}: expected {expected}, got {shortened(shown)!r}")
