"""Fixtures of the races: a graph on which threads meet, and a wrapper around what they do."""

from __future__ import annotations

import numpy as np
import pytest

import isthmus as ist
from isthmus.devices import worker


@pytest.fixture(scope="session")
def crowd():
    """A few hubs that everybody points at, with weights: threads meet at the same vertices all the time."""
    draw = np.random.default_rng(7)
    sources, targets = draw.integers(0, 4000, 300_000), draw.integers(0, 40, 300_000)
    weights = draw.integers(0, 90, 600_000).astype(np.int32)
    return ist.read((np.concatenate([sources, targets]), np.concatenate([targets, sources]), weights))


@pytest.fixture
def wrapped(monkeypatch, sized):
    """`wrapped(around)` puts a wrapper around every piece of work of a team."""
    plain = worker.Worker.pieces
    sized(piece=1 << 12, alone=0)

    def wrap(around):
        monkeypatch.setattr(
            worker.Worker, "pieces", lambda self, *details: [around(piece) for piece in plain(self, *details)]
        )

    return wrap
