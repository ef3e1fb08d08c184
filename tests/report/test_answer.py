"""Distributions: bins that suit the values, and no value lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.programs.column import Column
from isthmus.report import answer
from isthmus.report.answer import distribution, first, of_groups

MISSING = np.iinfo(np.int64).max


def test_few_whole_numbers_get_a_bar_each() -> None:
    found = distribution(np.array([0, 1, 1, 3, MISSING]), Column("distance"))
    assert found is not None and found.each and not found.logarithmic
    assert found.edges.tolist() == [-0.5, 0.5, 1.5, 2.5, 3.5]
    assert (found.counts.tolist(), found.missing, found.zeros) == ([1, 2, 0, 1], 1, 0)


def test_scores_get_bins_of_equal_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "AT_ONCE", 64)
    scores = np.append(np.random.default_rng(1).pareto(1, 5000) / 1e4, [0, 0, 1.0])
    found = distribution(scores, Column("pagerank"))
    assert found is not None and found.logarithmic
    assert (found.counts.sum(), found.zeros) == (5001, 2)
    ratios = found.edges[1:] / found.edges[:-1]
    assert ratios.max() == pytest.approx(ratios.min())


def test_whole_numbers_over_several_orders() -> None:
    values = np.random.default_rng(1).zipf(1.5, 4000).clip(0, 10**6)
    found = distribution(values, Column("triangles"))
    assert found is not None and found.logarithmic and found.counts.sum() == 4000
    assert (found.edges == np.floor(found.edges)).all()


def test_lengths_get_bins_of_equal_width() -> None:
    found = distribution(np.random.default_rng(1).normal(50, 9, 1000), Column("distance"))
    assert found is not None and not found.logarithmic and not found.each
    assert found.counts.sum() == 1000 and np.ptp(np.diff(found.edges)) < 1e-9


@pytest.mark.parametrize(
    "values", [np.array([7]), np.array([0.5, 0.5]), np.array([-3.0, 2.0]), np.zeros(4), np.zeros(4, np.uint32)]
)
def test_odd_ones(values: Any) -> None:
    found = distribution(values, Column("x", none=()))
    assert found is not None and found.counts.sum() + found.zeros == values.size


def test_nothing_is_known() -> None:
    assert distribution(np.array([MISSING]), Column("distance")) is None
    assert distribution(np.empty(0), Column("x")) is None


def test_sizes_of_groups() -> None:
    result = ist.weakly_connected_components(ist.generate("uniform", vertices=3000, edges=1500, seed=5))
    found = of_groups(result)
    assert found is not None and found.counts.sum() == sum(result.sizes().values())
    head, rows = first(result)
    assert head == ("component", "vertices") and rows[0] == (
        str(result.largest(1)[0][0]),
        f"{result.largest(1)[0][1]:,}",
    )
