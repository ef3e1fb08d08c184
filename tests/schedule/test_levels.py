"""Scaph's k-level queue: the paper's figure, then every order of events."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.schedule.unit_states import come, marks, run

from isthmus.schedule.levels import UNDER_WAY, Levels, levels
from isthmus.schedule.schedule import COMING, FAR, NEAR, NONE, RUNNING, UnitStates

K = 20


def queued(of_levels, waiting=(), count=9, k=K):
    """Partitions queued in these levels, in this order, all with something active; others that are wanted are far."""
    schedule = Levels(marks(count, [*(p for level in of_levels for p in level), *waiting]), k)
    units = UnitStates(count)
    units.pending[:] = 1
    for number, level in enumerate(of_levels):
        come(units, *level)
        units.runs[level] = number
    return schedule, units


def take(schedule, units):
    """Run what comes next, to its end."""
    chosen = schedule.run(units)
    if chosen != NONE:
        run(units, chosen)
    return chosen


@pytest.mark.parametrize(("of_levels", "then"), [([[3], [7, 4, 8, 6]], 1), ([[3, 7, 4], [8, 6]], 7)])
def test_the_papers_queue(of_levels, then):
    """Figure 11: once 3 of the first level has run, it runs again after 7, 4, 8 and 6, as they stand in either
    level.
    """
    given = queued([*of_levels, [1]], waiting=[0])
    assert [take(*given) for _ in range(7)] == [3, 7, 4, 8, 6, 3, then]


def test_first_runs_go_first():
    schedule, units = queued([[], [1, 2]], waiting=[5])
    assert schedule.run(units) == 1
    assert not schedule.first_run_waits(units)
    come(units, 5)
    assert schedule.run(units) == 5
    assert schedule.first_run_waits(units)


def test_nothing_runs_again_unless_a_transfer_is_pending():
    schedule, units = queued([[], [1, 2]], waiting=[5])
    assert schedule.run(units) == 1
    units.fetched(5)
    assert schedule.run(units) == 1, "pending until it has come"
    schedule, units = queued([[], [1, 2]])
    assert schedule.run(units) == NONE
    assert schedule.done(units)


def test_a_partition_with_nothing_active_is_not_run_again_but_runs_first():
    schedule, units = queued([[], [1, 2]], waiting=[5])
    units.pending[1] = 0
    assert schedule.run(units) == 2
    units.pending[:] = 0
    assert schedule.run(units) == NONE
    schedule, units = queued([[3]])
    units.pending[:] = 0
    assert schedule.run(units) == 3  # else the iteration would never end


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
    schedule, units = queued(*given, **named)
    return schedule.evict(units)


def test_the_most_run_partition_makes_room():
    assert evicted([[3], [7, 4], [8, 6]], waiting=[0]) == 8
    assert evicted([[3], [7, 4]], waiting=[0]) == 7


def test_a_partition_that_has_not_run_or_is_running_stays():
    """The published engine would take a first-level partition when there is no other level."""
    assert evicted([[3, 4]], waiting=[0]) == NONE
    schedule, units = queued([[], [3]], waiting=[0])
    units.started(3)
    assert schedule.evict(units) == NONE


def test_what_the_last_iteration_left_goes_before_all_others():
    schedule, units = Levels(marks(4, [0, 1]), K), UnitStates(4, marks(4, [0, 2]))
    units.pending[:] = 1
    run(units, 0)
    assert schedule.evict(units) == 2
    run(units, 0)
    assert schedule.evict(units) == 2, "however often the others have run"
    units.evicted(2)
    assert schedule.evict(units) == 0
    units = UnitStates(4, marks(4, [2]))
    assert schedule.run(units) == NONE  # 2 is near, but not wanted


def test_partitions_that_stayed_need_no_transfer():
    schedule, units = Levels(marks(4, [0, 1, 3]), K), UnitStates(4, marks(4, [1, 2]))
    assert schedule.run(units) == 1
    assert schedule.fetch(units) == 0
    units.fetched(0)
    assert schedule.fetch(units) == 3
    units.fetched(3)
    assert schedule.fetch(units) == NONE


def test_what_was_evicted_after_its_run_is_not_fetched_again():
    schedule, units = queued([[], [3]])
    units.evicted(3)
    assert schedule.fetch(units) == NONE
    assert schedule.done(units)


def test_an_iteration_without_high_value_is_over_at_once():
    schedule, units = Levels(np.zeros(3, np.bool_), K), UnitStates(3, np.ones(3, np.bool_))
    assert schedule.done(units)
    assert schedule.fetch(units) == NONE
    assert schedule.run(units) == NONE


def test_partitions_run_one_at_a_time():
    """A run by all members together: what it activates counts in the next choice."""
    assert (Levels.alone, Levels.under_way) == (True, UNDER_WAY)


def test_questions_change_nothing():
    schedule, units = queued([[0], [1]], waiting=[5])
    before = [array.copy() for array in (units.places, units.runs, units.turns, units.pending)]
    for _ in range(2):
        asked = (schedule.fetch(units), schedule.run(units), schedule.evict(units), schedule.done(units))
        assert asked == (5, 0, 1, False)
    after = units.places, units.runs, units.turns, units.pending
    assert all((a == b).all() for a, b in zip(before, after, strict=True))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_order_of_events_ends_with_every_partition_run(data):
    """Room is never exceeded, first runs happen once each at least, re-runs only while transfers are pending."""
    count, room, k = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    partitions = st.integers(0, count - 1)
    wanted = marks(count, data.draw(st.sets(partitions)))
    schedule, units = (
        Levels(wanted, k),
        UnitStates(count, marks(count, data.draw(st.sets(partitions, max_size=room)))),
    )
    workers = data.draw(st.integers(1, 2))
    for _ in range(40 * count * k):
        if schedule.done(units):
            break
        units.pending[:] = data.draw(st.lists(st.integers(0, 1), min_size=count, max_size=count))
        step, *which = data.draw(st.sampled_from(steps(schedule, units, wanted, room, workers)))
        for change, unit in zip(step.split(), which, strict=True):
            getattr(units, change)(unit)
        assert (units.places != FAR).sum() <= room
        assert (units.runs <= k).all()
    assert schedule.done(units)
    assert (units.runs[~wanted] == 0).all()


def steps(schedule, units, wanted, room, workers):
    """What may happen next: a transfer begins or ends, a run begins or ends."""
    found = [("arrived", p) for p in np.flatnonzero(units.places == COMING)]
    found += [("finished", p) for p in np.flatnonzero(units.places == RUNNING)]
    wish = schedule.fetch(units)
    if wish != NONE:
        if (units.places != FAR).sum() < room:
            found.append(("fetched", wish))
        elif (gone := schedule.evict(units)) != NONE:
            assert units.places[gone] == NEAR
            assert units.runs[gone] > 0 or not wanted[gone]
            found.append(("evicted fetched", gone, wish))
    runnable = schedule.run(units)
    if runnable != NONE and units.running < workers:
        assert units.runs[runnable] == 0 or schedule.waiting(units).any()
        found.append(("started", runnable))
    assert found, "stuck"
    return found
