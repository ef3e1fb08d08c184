"""Parsing text that is a sequence of whole numbers: the arrays of Ligra's graphs, and the lines of METIS's.

A text ends with a blank or a newline, so that no inner loop needs a bounds check. It may end inside a line:
`parse_lists` keeps its place between two texts in `place`.
"""
# ruff: noqa: SIM109 - comparisons spelt out compile to fewer branches than a search in a tuple

from __future__ import annotations

from typing import Any

from numba import int64, uint64

from isthmus.kernels.compile.kernel import inline, kernel
from isthmus.kernels.text.edge_text import NEWLINE, OK, RETURN, TOO_BIG, is_blank, read_integer

BAD_WORD, OUTSIDE, TOO_MANY, UNFINISHED = range(20, 24)
VERTEX, WORD, TARGET, COMMENT, LINES = range(5)  # entries of `place`
PERCENT = 37


@inline
def ends_word(c: Any) -> Any:
    return is_blank(c) or c == NEWLINE or c == RETURN


@kernel
def read_words(text: Any, out: Any) -> Any:
    """Whole numbers into `out` (int64), as many as there are; returns (status, how many, where it went wrong)."""
    p = 0
    count = 0
    while p < text.size:
        if ends_word(text[p]):
            p += 1
            continue
        found, negative, q = read_integer(text, p)
        if q == -1 or found >> uint64(63):
            return TOO_BIG, count, p
        if q == p or not ends_word(text[q]):
            return BAD_WORD, count, p
        out[count] = -int64(found) if negative else int64(found)
        count += 1
        p = q
    return OK, count, p


@kernel
def count_words(text: Any) -> Any:
    """An upper bound of the words in `text`."""
    words = 1
    for p in range(1, text.size):
        words += not ends_word(text[p]) and ends_word(text[p - 1])
    return words


@kernel
def parse_lists(
    text: Any, place: Any, vertices: Any, skip: Any, weighted: Any, sources: Any, targets: Any, weights: Any
) -> Any:
    """Lines of neighbours, the first line of vertex 1, into edges; `skip` words of each line are the vertex's own.

    `weighted`: every neighbour is followed by the weight of the edge. `place` says where the text before has ended.
    Returns (status, edges, where it went wrong).
    """
    vertex, word, pending, comment = place[VERTEX], place[WORD], place[TARGET], place[COMMENT]
    p = 0
    edges = 0
    while p < text.size:
        c = text[p]
        if c == NEWLINE:
            if comment == 0:
                if vertex < vertices and (pending > 0 or word < skip):
                    return UNFINISHED, edges, p
                vertex += 1
            word = comment = 0
            place[LINES] += 1
            p += 1
            continue
        if comment or is_blank(c) or c == RETURN:
            p += 1
            continue
        if c == PERCENT and word == 0:
            comment = 1
            continue
        if vertex >= vertices:
            return TOO_MANY, edges, p
        found, negative, q = read_integer(text, p)
        if q == -1 or found >> uint64(63):
            return TOO_BIG, edges, p
        if q == p or negative or not ends_word(text[q]):
            return BAD_WORD, edges, p
        if word >= skip:
            target = pending
            if pending > 0:
                weights[edges] = int64(found)
                pending = int64(0)
            else:
                target = int64(found)
                if target < 1 or target > vertices:
                    return OUTSIDE, edges, p
                if weighted:
                    pending = target
            if pending == 0:
                sources[edges] = vertex + 1
                targets[edges] = target
                edges += 1
        word += 1
        p = q
    place[VERTEX], place[WORD], place[TARGET], place[COMMENT] = vertex, word, pending, comment
    return OK, edges, p
