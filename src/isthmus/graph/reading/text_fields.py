"""The fields of lines: their separator, and whether a line holds names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from isthmus.graph.reading import column_names
from isthmus.kernels.text import edge_text as kernels

INTEGER = re.compile(rb"-?[0-9]+")
TWO_INTEGERS = re.compile(rb"\s*-?[0-9]+([ \t]+)-?[0-9]+(?=\s|$)")
WORD = re.compile(rb'"[^"]*"|\S+')


def separator_of(lines: list[bytes]) -> int:
    """The separator of fields: blanks if lines begin with two integers, else the one in most lines."""
    blanks = [match[1] for match in map(TWO_INTEGERS.match, lines) if match]
    if 2 * len(blanks) > len(lines):
        return kernels.TAB if 2 * sum(b"\t" in blank for blank in blanks) > len(blanks) else kernels.SPACE
    for separator in (kernels.TAB, kernels.SEMICOLON, kernels.COMMA):
        if 2 * sum(separator in line.strip() for line in lines) > len(lines):
            return separator
    return kernels.SPACE


def fields_of(line: bytes, separator: int) -> list[bytes]:
    """The fields of one line, split as the kernels do; quotes stay."""
    line = line.strip()
    if separator == kernels.SPACE:
        return WORD.findall(line)
    mark = re.escape(bytes([separator])) + (b"+" if separator == kernels.TAB else b"")
    if b'"' in line:  # a separator inside quotes does not count
        mark += rb'(?=(?:[^"]*"[^"]*")*[^"]*$)'
        line = line[:4096]
    return [field.strip() for field in re.split(mark, line)]


def is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def unquoted(field: bytes) -> str:
    return field.strip(b'"').decode("utf-8", "replace")


def words_of(line: bytes, separator: int) -> list[str]:
    """The fields of one line as text, without quotes."""
    return [unquoted(field) for field in fields_of(line, separator)]


def are_integers(fields: Iterable[bytes]) -> bool:
    return all(INTEGER.fullmatch(field) for field in fields)


def first_has_names(ends: list[list[bytes]]) -> bool:
    """Whether the ids of the first line are names: usual ones, or words where all other ids are integers."""
    first, others = ends[0], ends[1:]
    if column_names.look_like_names(*map(unquoted, first)):
        return True
    return not any(INTEGER.fullmatch(field) for field in first) and bool(others) and all(map(are_integers, others))


def word_above_numbers(column: tuple[bytes, ...]) -> bool:
    """Whether a column begins with a word, and all else in it are numbers."""
    return not is_number(column[0]) and all(map(is_number, column[1:]))
