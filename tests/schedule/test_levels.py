"""Scaph's k-level queue: the paper's figure, then every order of events."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.schedule.standings import come, marks, run

from isthmus.schedule.levels import UNDER_WAY, Levels, levels
from isthmus.schedule.schedule import COMING, FAR, NEAR, NONE, RUNNING, Standing

K = 20


def queued(of_levels, waiting=(), count=9, k=K):
    """Partitions queued in these levels, in this order, all with something active; others that are wanted are far."""
    schedule = Levels(marks(count, [*(p for level in of_levels for p in level), *waiting]), k)
    standing = Standing(count)
    standing.pending[:] = 1
    for number, level in enumerate(of_levels):
        come(standing, *level)
        standing.runs[level] = number
    return schedule, standing


def take(schedule, standing):
    """Run what comes next, to its end."""
    chosen = schedule.run(standing)
    if chosen != NONE:
        run(standing, chosen)
    return chosen


@pytest.mark.parametrize(("of_levels", "then"), [([[3], [7, 4, 8, 6]], 1), ([[3, 7, 4], [8, 6]], 7)])
def test_the_papers_queue(of_levels, then):
    """Figure 11: once 3 of the first level has run, it runs again after 7, 4, 8 and 6, as they stand in either
    level.
    """
    given = queued([*of_levels, [1]], waiting=[0])
    assert [take(*given) for _ in range(7)] == [3, 7, 4, 8, 6, 3, then]


def test_first_runs_go_first():
    schedule, standing = queued([[], [1, 2]], waiting=[5])
    assert schedule.run(standing) == 1
    assert not schedule.first_run_waits(standing)
    come(standing, 5)
    assert schedule.run(standing) == 5
    assert schedule.first_run_waits(standing)


def test_nothing_runs_again_unless_a_transfer_is_pending():
    schedule, standing = queued([[], [1, 2]], waiting=[5])
    assert schedule.run(standing) == 1
    standing.fetched(5)
    assert schedule.run(standing) == 1, "pending until it has come"
    schedule, standing = queued([[], [1, 2]])
    assert schedule.run(standing) == NONE
    assert schedule.done(standing)


def test_a_partition_with_nothing_active_is_not_run_again_but_runs_first():
    schedule, standing = queued([[], [1, 2]], waiting=[5])
    standing.pending[1] = 0
    assert schedule.run(standing) == 2
    standing.pending[:] = 0
    assert schedule.run(standing) == NONE
    schedule, standing = queued([[3]])
    standing.pending[:] = 0
    assert schedule.run(standing) == 3  # else the iteration would never end


def test_no_more_than_k_runs():
    given = queued([[0]], waiting=[5], k=3)
    assert [take(*given) for _ in range(6)] == [0, 0, 0, NONE, NONE, NONE]


@pytest.mark.parametrize(
    ("near", "link", "k"),
    [(224, 11.4, 20), (732, 12.3, 20), (4000, 419, 10), (1, 4, 1)],  # the first is the paper's
)
def test_k_is_bounded_by_the_bandwidths(near, link, k):
    assert levels(near, link) == k


def evicted(*given, **named):
    schedule, standing = queued(*given, **named)
    return schedule.evict(standing)


def test_the_most_run_partition_makes_room():
    assert evicted([[3], [7, 4], [8, 6]], waiting=[0]) == 8
    assert evicted([[3], [7, 4]], waiting=[0]) == 7


def test_a_partition_that_has_not_run_or_is_running_stays():
    """The published engine would take a first-level partition when there is no other level."""
    assert evicted([[3, 4]], waiting=[0]) == NONE
    schedule, standing = queued([[], [3]], waiting=[0])
    standing.started(3)
    assert schedule.evict(standing) == NONE


def test_what_the_last_iteration_left_goes_before_all_others():
    schedule, standing = Levels(marks(4, [0, 1]), K), Standing(4, marks(4, [0, 2]))
    standing.pending[:] = 1
    run(standing, 0)
    assert schedule.evict(standing) == 2
    run(standing, 0)
    assert schedule.evict(standing) == 2, "however often the others have run"
    standing.evicted(2)
    assert schedule.evict(standing) == 0
    standing = Standing(4, marks(4, [2]))
    assert schedule.run(standing) == NONE  # 2 is near, but not wanted


def test_partitions_that_stayed_need_no_transfer():
    schedule, standing = Levels(marks(4, [0, 1, 3]), K), Standing(4, marks(4, [1, 2]))
    assert schedule.run(standing) == 1
    assert schedule.fetch(standing) == 0
    standing.fetched(0)
    assert schedule.fetch(standing) == 3
    standing.fetched(3)
    assert schedule.fetch(standing) == NONE


def test_what_was_evicted_after_its_run_is_not_fetched_again():
    schedule, standing = queued([[], [3]])
    standing.evicted(3)
    assert schedule.fetch(standing) == NONE
    assert schedule.done(standing)


def test_an_iteration_without_high_value_is_over_at_once():
    schedule, standing = Levels(np.zeros(3, np.bool_), K), Standing(3, np.ones(3, np.bool_))
    assert schedule.done(standing)
    assert schedule.fetch(standing) == NONE
    assert schedule.run(standing) == NONE


def test_partitions_run_one_at_a_time_and_stay():
    """A run by all members together: what it activates counts in the next choice."""
    assert (Levels.alone, Levels.stays, Levels.under_way) == (True, True, UNDER_WAY)


def test_questions_change_nothing():
    schedule, standing = queued([[0], [1]], waiting=[5])
    before = [array.copy() for array in (standing.places, standing.runs, standing.turns, standing.pending)]
    for _ in range(2):
        asked = schedule.fetch(standing), schedule.run(standing), schedule.evict(standing), schedule.done(standing)
        assert asked == (5, 0, 1, False)
    after = standing.places, standing.runs, standing.turns, standing.pending
    assert all((a == b).all() for a, b in zip(before, after, strict=True))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_order_of_events_ends_with_every_partition_run(data):
    """Room is never exceeded, first runs happen once each at least, re-runs only while transfers are pending."""
    count, room, k = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    partitions = st.integers(0, count - 1)
    wanted = marks(count, data.draw(st.sets(partitions)))
    schedule, standing = Levels(wanted, k), Standing(count, marks(count, data.draw(st.sets(partitions, max_size=room))))
    workers = data.draw(st.integers(1, 2))
    for _ in range(40 * count * k):
        if schedule.done(standing):
            break
        standing.pending[:] = data.draw(st.lists(st.integers(0, 1), min_size=count, max_size=count))
        step, *units = data.draw(st.sampled_from(steps(schedule, standing, wanted, room, workers)))
        for change, unit in zip(step.split(), units, strict=True):
            getattr(standing, change)(unit)
        assert (standing.places != FAR).sum() <= room
        assert (standing.runs <= k).all()
    assert schedule.done(standing)
    assert (standing.runs[~wanted] == 0).all()


def steps(schedule, standing, wanted, room, workers):
    """What may happen next: a transfer begins or ends, a run begins or ends."""
    found = [("arrived", p) for p in np.flatnonzero(standing.places == COMING)]
    found += [("finished", p) for p in np.flatnonzero(standing.places == RUNNING)]
    wish = schedule.fetch(standing)
    if wish != NONE:
        if (standing.places != FAR).sum() < room:
            found.append(("fetched", wish))
        elif (gone := schedule.evict(standing)) != NONE:
            assert standing.places[gone] == NEAR
            assert standing.runs[gone] > 0 or not wanted[gone]
            found.append(("evicted fetched", gone, wish))
    runnable = schedule.run(standing)
    if runnable != NONE and standing.running < workers:
        assert standing.runs[runnable] == 0 or schedule.waiting(standing).any()
        found.append(("started", runnable))
    assert found, "stuck"
    return found
