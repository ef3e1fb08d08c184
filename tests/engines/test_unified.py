"""Unified: every active list once, through pages that stay near; only missing pages are charged."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import sides
from tests.engines.test_compaction import KINDS, activities

from isthmus.engines.unified import Unified
from isthmus.graph.store.files import aligned_empty
from isthmus.link.pages import Pages

BLOCK = sides.BLOCK


def make(far, pages):
    arcs = far.side.lists.slots
    sizes = [arcs * width for width in (far.side.width, far.side.weight_width) if width]
    return Unified(Pages(far.link, sizes, aligned_empty(pages * BLOCK, np.uint8)))


def deliver(engine, far, frontier):
    (task,) = engine.tasks(far.side, np.arange(len(far.side.partitions)), 0)
    return engine.deliver(task, frontier, far.link, far.buffer, 0)


@settings(max_examples=150, deadline=None)
@given(
    rounds=st.lists(activities(), min_size=1, max_size=4),
    kind=st.sampled_from(KINDS),
    pages=st.sampled_from([1, 7, 64, 500]),
)
def test_every_active_edge_once(rounds, kind, pages):
    """Whatever was asked for before, with fewer pages than a list has and with more than there are."""
    far = sides.far([max(column) for column in zip(*(padded(r[0]) for r in rounds), strict=True)], *kind)
    engine = make(far, pages)
    for _, active, dense in rounds:
        frontier = far.frontier(active, dense)
        if len(far.side.partitions):
            assert sides.delivered(deliver(engine, far, frontier), frontier) == far.edges(active)


def padded(degrees):
    return degrees + [0] * (60 - len(degrees))


def test_only_missing_pages_are_charged():
    far = sides.far([16, 16, 16, 16], weight=None)  # a page each
    engine = make(far, 8)
    charged = []
    for active in ([0, 1], [0, 1], [1, 2], [0, 1, 2, 3], [0, 1, 2, 3]):
        frontier = far.frontier(active)
        (delivery,) = deliver(engine, far, frontier)
        assert sides.edges_of(delivery, frontier) == far.edges(active)
        charged.append((delivery.requests, delivery.bytes))
    assert charged == [(2, 2 * BLOCK), (0, 0), (1, BLOCK), (1, BLOCK), (0, 0)]


def test_too_few_pages_are_read_again():
    far = sides.far([16] * 20, weight=None)
    engine = make(far, 10)
    frontier = far.frontier(range(20))
    for _ in range(3):
        assert sum(delivery.requests for delivery in deliver(engine, far, frontier)) == 20


def test_two_readers_at_once():
    """Pages that the other has just evicted are read again, not made up."""
    far = sides.far([5, 50] * 100, weight=np.float64)
    engine = make(far, 30)
    parts = np.arange(len(far.side.partitions))
    frontier = far.frontier(range(200), dense=True)
    found = [sides.Edges(), sides.Edges()]

    def read(number):
        (task,) = engine.tasks(far.side, parts[number::2], 0)
        found[number] = sides.delivered(engine.deliver(task, frontier, far.link, far.buffer, number), frontier)

    for _ in range(20):
        sides.together(2, read)
        assert found[0] + found[1] == far.edges(range(200))
