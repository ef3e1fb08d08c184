"""Covering arrays: a few rows of a large product in which all pairs of values still meet."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

Row = tuple[Any, ...]
Columns = tuple[int, ...]
TRIED = 40  # choices looked at for a row; more cost time and cover little more


def meetings(row: Row, among: Sequence[Columns]) -> list[Any]:
    """What these columns hold together."""
    return [(columns, *[row[column] for column in columns]) for columns in among]


def pairs(width: int) -> list[Columns]:
    return list(itertools.combinations(range(width), 2))


def covering(
    given: Sequence[Row], choices: Sequence[Row], each: int, triples: Sequence[Columns] = ()
) -> dict[Row, list[Row]]:
    """For every row of `given`, one to `each` of the choices, so that pairs of values meet in (*row, *choice):
    greedily.

    Triples of columns that are named meet as well, as far as there is room. A row gets no further choice that brings no
    new meeting. The answer is the same every time. Whether everything met is for a test to say: `missed`.
    """
    among = [*pairs(len(given[0]) + len(choices[0])), *triples]
    draw, met, chosen = random.Random(1), set(), {}

    def fresh(row: Row, choice: Row) -> int:
        return sum(meeting not in met for meeting in meetings((*row, *choice), among))

    for row in given:
        chosen[row] = []
        for _ in range(each):
            best = max(draw.sample(choices, min(TRIED, len(choices))), key=lambda choice, row=row: fresh(row, choice))
            if not fresh(row, best):
                best = max(choices, key=lambda choice, row=row: fresh(row, choice))
            if chosen[row] and not fresh(row, best):
                break
            met.update(meetings((*row, *best), among))
            chosen[row].append(best)
    return chosen


def missed(
    given: Sequence[Row], choices: Sequence[Row], chosen: dict[Row, list[Row]], triples: Sequence[Columns] = ()
) -> set[Any]:
    """Meetings that the whole product of `given` and `choices` has and the chosen rows do not."""
    width = len(given[0])
    among = [*pairs(width + len(choices[0])), *triples]
    every = set()
    for columns in among:
        left = {tuple(row[c] for c in columns if c < width) for row in given}
        right = {tuple(choice[c - width] for c in columns if c >= width) for choice in choices}
        every |= {(columns, *one, *other) for one in left for other in right}
    return every - {meeting for row in chosen for choice in chosen[row] for meeting in meetings((*row, *choice), among)}
