"""Passes over far edges give what a plain sum over the edges gives, however the edges are cut, cached and shared by
threads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.graph.ingest.build import store_again
from isthmus.programs.scores.deltas import LivePageRank
from isthmus.runtime.execute import execute
from isthmus.runtime.options import quiet
from isthmus.runtime.session import Session
from isthmus.stream.maintain.far_scores import Collecting, Renewing

FACTOR, ABSORBER, VERTICES = 0.85, 3, 300
POLICIES = ("auto", "filter", "emogi", "subway")
Array = Any


@pytest.fixture(autouse=True)
def small(sized: Any) -> None:
    """Lists are cut into parts, by deliveries and by pieces of work; the hub's list into many."""
    sized(piece=50, alone=0, few_edges=0, few_bytes=0, least_buffer=1024, smallest_partition=4096)


class Edges:
    """A directed graph. Every vertex has an edge to the hub, and the last ones have no in-edges."""

    def __init__(self) -> None:
        draw = np.random.default_rng(4)
        tails = np.append(draw.integers(0, VERTICES, 6000), np.arange(VERTICES))
        heads = np.append(draw.integers(0, VERTICES - 20, 6000), np.full(VERTICES, 7))
        self.tails, self.heads = np.unique(np.stack([tails, heads])[:, tails != heads], axis=1)
        self.weights = draw.integers(1, 9, self.tails.size).astype(np.int32)

    def stored(self, folder: Path) -> Any:
        near = ist.read((self.tails, self.heads, self.weights), directed=True)
        return store_again(near, folder / "g.isthmus")

    def arriving(self, shares: Array, weighted: bool) -> Array:
        """What comes to each vertex, with the factor; nothing to the absorber."""
        sums = np.bincount(self.heads, shares[self.tails].astype(float) * (self.weights if weighted else 1), VERTICES)
        sums[ABSORBER] = 0.0
        return FACTOR * sums


def passed(kind: type[Renewing], session: Session, arrays: tuple[Array, ...], own: Array, weighted: bool) -> float:
    program = kind(LivePageRank(FACTOR, 1e-4, None, weighted), arrays, (FACTOR, 0.0, ABSORBER), own)
    execute(program, session, quiet, None, None)
    return float(program.sums[2])


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("how", ["single", "double", "weighted"])
def test_what_arrives_is_added_to_the_residuals(tmp_path: Path, policy: str, how: str) -> None:
    edges, draw, weighted = Edges(), np.random.default_rng(1), how == "weighted"
    shares = draw.random(VERTICES).astype(np.float32 if how == "single" else np.float64)
    before = draw.random(VERTICES)
    with edges.stored(tmp_path) as graph, Session(graph, threads=2, memory="20%", policy=policy) as session:
        for _ in range(2):  # a second pass does the same
            residual = before.copy()
            passed(Collecting, session, (np.ones(VERTICES), residual, shares, np.ones(VERTICES)), np.zeros(1), weighted)
            np.testing.assert_allclose(residual, before + edges.arriving(shares, weighted), rtol=1e-12)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("weighted", [False, True])
def test_renewed_values_converge(tmp_path: Path, policy: str, weighted: bool) -> None:
    """Shares follow the values, the change is what the values have changed by, and partial sums are cleared."""
    edges = Edges()
    divisors = np.bincount(edges.tails, edges.weights if weighted else None, VERTICES).astype(float)
    own, values, residual = np.linspace(0.1, 0.2, VERTICES), np.ones(VERTICES), np.zeros(VERTICES)
    shares = np.divide(values, divisors, out=np.zeros(VERTICES), where=divisors > 0)
    changes = []
    with edges.stored(tmp_path) as graph, Session(graph, threads=2, memory="20%", policy=policy) as session:
        for _ in range(80):
            before = values.copy()
            changes.append(passed(Renewing, session, (values, residual, shares, divisors), own, weighted))
            assert changes[-1] == pytest.approx(np.abs(values - before).sum(), rel=1e-9, abs=1e-12)
            assert not residual.any()
            np.testing.assert_array_equal(
                shares, np.divide(values, divisors, out=np.zeros(VERTICES), where=divisors > 0)
            )
    np.testing.assert_allclose(values, own + edges.arriving(shares, weighted), rtol=1e-6)
    assert changes[9] < FACTOR**12 * changes[0], "values that were renewed are seen at once"
