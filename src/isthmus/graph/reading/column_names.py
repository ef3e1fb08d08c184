"""Column names that say what a column holds, the same for tables and for text with a header."""

from __future__ import annotations

from collections.abc import Sequence

from isthmus.messages import option

SOURCE = ("source", "src", "from", "u")
TARGET = ("target", "destination", "dst", "dest", "to", "v")
WEIGHT = ("weight",)
NONE = "none"  # given as the weight: read no weights, though there is a column of them


def known(names: Sequence[str], usual: tuple[str, ...]) -> str | None:
    """The first of the usual names that is there, in the spelling of the input."""
    lower = {name.lower(): name for name in reversed(names)}
    return next((lower[name] for name in usual if name in lower), None)


def look_like_names(first: str, second: str) -> bool:
    """Whether two words are more likely names of columns than ids. Single letters may well be ids."""
    pair = (first.lower(), second.lower())
    return min(map(len, pair)) > 1 and any(a in SOURCE and b in TARGET for a, b in (pair, pair[::-1]))


def ignored(name: str, count: int, example: str | int) -> str:
    """The note about columns that may hold weights and were not read."""
    columns = "one further column" if count == 1 else f"{count} further columns"
    read, none = option("weight", example), option("weight", NONE)
    return f"{name}: {columns} ignored; {read} reads a column as the weight, {none} says that there are no weights"


def skipped(name: str, count: int, what: str) -> str:
    """The note about rows or lines that were left out."""
    return f"{name}: {count} {what}{'' if count == 1 else 's'} without a source or target skipped"


def rounded(name: str) -> str:
    """The note about weights that float64 may have rounded."""
    return (
        f"{name}: weights beyond 2**53 are stored as float64, which rounds whole numbers of that size, as it does "
        f"lengths of paths"
    )
