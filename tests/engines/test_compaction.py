"""Compaction: every active list once, packed side by side, whole blocks charged."""

from __future__ import annotations

import contextlib
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import sides

from isthmus import sizes
from isthmus.engines.compaction import Compaction, halves
from isthmus.engines.engine import Buffer, Rows, Task, packed
from isthmus.engines.zero_copy import ZeroCopy
from isthmus.frontier import Frontier
from isthmus.graph.lists import Lists
from isthmus.graph.store.files import aligned_empty
from isthmus.link import packers

KINDS = [(target, weight) for target in (np.uint32, np.uint64) for weight in (None, np.int32, np.float64)]


@st.composite
def activities(draw):
    """(degrees, active vertices, dense): with lists longer than a buffer, and vertices without edges."""
    degrees = draw(st.lists(st.one_of(st.integers(0, 9), st.sampled_from([0, 40, 700])), min_size=1, max_size=60))
    return degrees, draw(st.sets(st.integers(0, len(degrees) - 1))), draw(st.booleans())


def whole_task(engine, far):
    tasks = engine.tasks(far.side, np.arange(len(far.side.partitions)), 0)
    return tasks[0] if tasks else None


@settings(max_examples=150, deadline=None)
@given(
    activity=activities(),
    kind=st.sampled_from(KINDS),
    gap=st.sampled_from([0, 100, 1 << 20]),
    threads=st.sampled_from([1, 3]),
    between=st.sampled_from([None, 1, 50]),
)
def test_every_active_edge_once_and_packed(activity, kind, gap, threads, between):
    degrees, active, dense = activity
    far = sides.far(degrees, *kind, gaps=None if between is None else [between] * len(degrees))
    frontier = far.frontier(active, dense)
    engine = Compaction(threads, gap)
    with sizes.using(few_rows=2), contextlib.closing(engine):
        task = whole_task(engine, far)
        found = sides.Edges()
        for delivery in engine.deliver(task, frontier, far.link, far.buffer, 0) if task else ():
            found += sides.edges_of(delivery, frontier)
            rows = delivery.edges
            assert isinstance(rows, Rows)
            assert rows.begins.tolist() == rows.weight_begins.tolist() == packed(rows.lengths).tolist(), (
                "nothing lies between two lists"
            )
            assert delivery.bytes % sides.BLOCK == 0
            assert delivery.bytes >= int(rows.lengths.sum()) * far.side.entry_bytes
            assert delivery.buffer.bytes.size == 24 * sides.BLOCK, "the whole buffer is given back, not a half"
    assert found == far.edges(active)


def test_charged_as_zero_copy_is():
    """Both read the same blocks; packing costs the link nothing."""
    draw = np.random.default_rng(1)
    far = sides.far(draw.integers(0, 30, 300))
    frontier = far.frontier(draw.choice(300, 100, replace=False).tolist())
    charged = []
    for engine in (Compaction(1, 128), ZeroCopy(128)):
        deliveries = list(engine.deliver(whole_task(engine, far), frontier, far.link, lambda: far.buffer(2000), 0))
        charged.append([(d.bytes, d.requests) for d in deliveries])
    assert charged[0] == charged[1]


def test_a_gap_is_read_over():
    far = sides.far([16, 16, 16, 16, 16], weight=None)  # a block each
    frontier = far.frontier([0, 2, 4])
    seen = {}
    for gap in (0, sides.BLOCK):
        (delivery,) = Compaction(1, gap).deliver(whole_task(Compaction(1), far), frontier, far.link, far.buffer, 0)
        seen[gap] = delivery.requests, delivery.bytes
        assert sides.edges_of(delivery, frontier) == far.edges([0, 2, 4])
    assert seen == {0: (3, 3 * sides.BLOCK), sides.BLOCK: (1, 5 * sides.BLOCK)}


def test_threads_pack_what_one_does():
    """Long and short lists mixed, so that parts with equally many edges have different numbers of rows."""
    draw = np.random.default_rng(2)
    degrees = np.where(draw.random(20_000) < 0.01, 300, draw.integers(0, 4, 20_000))
    far = sides.far(degrees, weight=np.float64, partition=1 << 14)
    frontier = far.frontier(range(0, 20_000, 2))
    found = []
    for threads in (1, 2, 5):
        engine = Compaction(threads, 1 << 20)
        buffers = lambda: far.buffer(40_000)  # noqa: E731
        delivery = next(engine.deliver(whole_task(engine, far), frontier, far.link, buffers, 0))
        assert delivery.edges.vertices.size > sizes.now.few_rows
        used = int(delivery.edges.lengths.sum())
        found.append((delivery.targets[:used].tolist(), delivery.weights[:used].tolist()))
        engine.close()
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(("active", "parts"), [(5000, 2), (4999, 1)])
def test_all_threads_pack_a_few_long_lists_if_many_vertices_are_active(active, parts, monkeypatch):
    """As costs assume: in hub order, the first buffers hold few lists, which are long."""
    far = sides.far([2000] * 40 + [1] * 5000, weight=None, partition=1 << 14)
    frontier = far.frontier(range(active))
    calls, pack = [], packers.pack
    monkeypatch.setattr(packers, "pack", lambda *given: calls.append(given[-2:]) or pack(*given))
    with contextlib.closing(Compaction(2, 0)) as engine:
        delivery = next(engine.deliver(whole_task(engine, far), frontier, far.link, lambda: far.buffer(2000), 0))
    assert delivery.edges.vertices.size < 50 and len(calls) == parts


def test_two_readers_pack_at_once():
    """They share the packing threads."""
    far = sides.far([3] * 30_000, partition=1 << 14)
    frontier = far.frontier(range(30_000), dense=True)
    engine = Compaction(3, 0)
    halves_of = [np.arange(len(far.side.partitions))[k::2] for k in range(2)]
    found = [sides.Edges(), sides.Edges()]

    def read(number):
        task = Task(engine, far.side, halves_of[number])
        found[number] = sides.delivered(
            engine.deliver(task, frontier, far.link, lambda: far.buffer(4000), number), frontier
        )

    for _ in range(3):
        sides.together(2, read)
        assert found[0] + found[1] == far.edges(range(30_000))
    engine.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("isthmus-pack")]


def test_edges_beyond_32_bits():
    """A list that begins behind 2**33 others, whose bytes begin behind 2**35."""
    offsets = np.array([0, 1 << 33, (1 << 33) + 5000, (1 << 33) + 5003])
    side = sides.make_side(Lists.of(offsets), np.uint32, np.int32, 32 << 20, "out", 4096)
    frontier = Frontier(3, 1)
    frontier.start(np.array([1, 2]))
    buffer = lambda: Buffer(aligned_empty(24 * 4096, np.uint8), (4, 4), 4096)  # noqa: E731
    engine = Compaction(1, 0)
    last = np.array([len(side.partitions) - 1])
    found = sides.delivered(engine.deliver(Task(engine, side, last), frontier, sides.Endless(), buffer, 0), frontier)
    expected = [
        (1 if e < offsets[2] else 2, e % (1 << 32), e % 1000)
        for e in range(int(side.partitions.cuts[-2]), int(offsets[3]))
    ]
    assert found == sides.Edges(edge for edge in expected if edge[0] in (1, 2))
    assert sum(found.values()) == 5003


@pytest.mark.parametrize("blocks", [2, 3, 24, 25])
def test_lists_always_fit_behind_what_they_came_in(blocks):
    far = sides.far([1], weight=np.float64)
    unpacked, lists = halves(far.buffer(blocks), far.side)
    assert unpacked.room <= lists.room
    assert unpacked.weight_room <= lists.weight_room
    assert unpacked.bytes.size + lists.bytes.size == blocks * sides.BLOCK


def test_nothing_chosen_is_no_task():
    far = sides.far([4, 4])
    assert Compaction(1).tasks(far.side, np.empty(0, np.int64), 0) == []
