"""A thousand batches: scores are as near to the answer as after the first, and so is what is kept beside them
(`stream/maintain/residuals.py`).
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.stream.answers import assert_same, by_vertex, cases
from tests.stream.plain import DELETE, INSERT, REWEIGH, Plain

import isthmus as ist

BATCHES, VERTICES, LOOKED_AT = 1000, 40, 100


def drawn(draw: random.Random, plain: Plain, source: int) -> tuple[list[Any], list[Any]]:
    """(rows, removed vertices): an edge comes, another goes or gets another weight; now and then a vertex leaves."""
    removed = (
        [v for v in [draw.randrange(VERTICES)] if v in plain.vertices and v != source] if draw.random() < 0.05 else []
    )
    pool = [v for v in range(VERTICES) if v not in removed]
    weight = lambda: draw.choice([0.1, 0.7, 1.0, 1e-3, 1e3])  # noqa: E731
    rows = [(INSERT, draw.choice(pool), draw.choice(pool), weight())]
    known = [edge for edge in plain.edges if not set(edge) & set(removed)]
    if len(known) > 3 * VERTICES or (known and draw.random() < 0.8):
        u, v = draw.choice(known)
        rows.append((draw.choice([DELETE, DELETE, REWEIGH]), u, v, weight()))
    return rows, removed


@pytest.mark.timeout(300)
@pytest.mark.parametrize("directed", [True, False])
def test_scores_do_not_drift(directed: bool) -> None:
    draw = random.Random(7)
    plain = Plain(directed, True, True).put(
        [(draw.randrange(VERTICES), draw.randrange(VERTICES), 1.0) for _ in range(2 * VERTICES)]
    )
    source = min(plain.vertices)
    scores = [
        case for case in cases(source) if case.tol and not (case.algorithm == "katz" and case.options.get("weight"))
    ]
    with ist.stream(plain.read(), [case.wanted() for case in scores], threads=1) as live:
        for number in range(1, BATCHES + 1):
            rows, removed = drawn(draw, plain, source)
            plain.apply(rows, (), removed)
            live.apply_edits(plain.edits(rows, (), removed))
            if number % LOOKED_AT == 0:
                for case in scores:
                    try:
                        assert_same(by_vertex(live[case.title]), case.expected(plain, live.graph), case.tol)
                    except AssertionError as error:
                        error.add_note(f"{case.title} after {number} batches")
                        raise
        assert live.number == BATCHES
