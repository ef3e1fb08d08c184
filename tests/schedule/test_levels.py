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
    unit_states = UnitStates(count)
    unit_states.pending[:] = 1
    for number, level in enumerate(of_levels):
        come(unit_states, *level)
        unit_states.runs[level] = number
    return schedule, unit_states


def take(schedule, unit_states):
    """Run what comes next, to its end."""
    chosen = schedule.run(unit_states)
    if chosen != NONE:
        run(unit_states, chosen)
    return chosen


@pytest.mark.parametrize(("of_levels", "then"), [([[3], [7, 4, 8, 6]], 1), ([[3, 7, 4], [8, 6]], 7)])
def test_the_papers_queue(of_levels, then):
    """Figure 11: once 3 of the first level has run, it runs again after 7, 4, 8 and 6, as they stand in either
    level.
    """
    given = queued([*of_levels, [1]], waiting=[0])
    assert [take(*given) for _ in range(7)] == [3, 7, 4, 8, 6, 3, then]


def test_first_runs_go_first():
    schedule, unit_states = queued([[], [1, 2]], waiting=[5])
    assert schedule.run(unit_states) == 1
    assert not schedule.first_run_waits(unit_states)
    come(unit_states, 5)
    assert schedule.run(unit_states) == 5
    assert schedule.first_run_waits(unit_states)


def test_nothing_runs_again_unless_a_transfer_is_pending():
    schedule, unit_states = queued([[], [1, 2]], waiting=[5])
    assert schedule.run(unit_states) == 1
    unit_states.fetched(5)
    assert schedule.run(unit_states) == 1, "pending until it has come"
    schedule, unit_states = queued([[], [1, 2]])
    assert schedule.run(unit_states) == NONE
    assert schedule.done(unit_states)


def test_a_partition_with_nothing_active_is_not_run_again_but_runs_first():
    schedule, unit_states = queued([[], [1, 2]], waiting=[5])
    unit_states.pending[1] = 0
    assert schedule.run(unit_states) == 2
    unit_states.pending[:] = 0
    assert schedule.run(unit_states) == NONE
    schedule, unit_states = queued([[3]])
    unit_states.pending[:] = 0
    assert schedule.run(unit_states) == 3  # else the iteration would never end


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
    schedule, unit_states = queued(*given, **named)
    return schedule.evict(unit_states)


def test_the_most_run_partition_makes_room():
    assert evicted([[3], [7, 4], [8, 6]], waiting=[0]) == 8
    assert evicted([[3], [7, 4]], waiting=[0]) == 7


def test_a_partition_that_has_not_run_or_is_running_stays():
    """The published engine would take a first-level partition when there is no other level."""
    assert evicted([[3, 4]], waiting=[0]) == NONE
    schedule, unit_states = queued([[], [3]], waiting=[0])
    unit_states.started(3)
    assert schedule.evict(unit_states) == NONE


def test_what_the_last_iteration_left_goes_before_all_others():
    schedule, unit_states = Levels(marks(4, [0, 1]), K), UnitStates(4, marks(4, [0, 2]))
    unit_states.pending[:] = 1
    run(unit_states, 0)
    assert schedule.evict(unit_states) == 2
    run(unit_states, 0)
    assert schedule.evict(unit_states) == 2, "however often the others have run"
    unit_states.evicted(2)
    assert schedule.evict(unit_states) == 0
    unit_states = UnitStates(4, marks(4, [2]))
    assert schedule.run(unit_states) == NONE  # 2 is near, but not wanted


def test_partitions_that_stayed_need_no_transfer():
    schedule, unit_states = Levels(marks(4, [0, 1, 3]), K), UnitStates(4, marks(4, [1, 2]))
    assert schedule.run(unit_states) == 1
    assert schedule.fetch(unit_states) == 0
    unit_states.fetched(0)
    assert schedule.fetch(unit_states) == 3
    unit_states.fetched(3)
    assert schedule.fetch(unit_states) == NONE


def test_what_was_evicted_after_its_run_is_not_fetched_again():
    schedule, unit_states = queued([[], [3]])
    unit_states.evicted(3)
    assert schedule.fetch(unit_states) == NONE
    assert schedule.done(unit_states)


def test_an_iteration_without_high_value_is_over_at_once():
    schedule, unit_states = Levels(np.zeros(3, np.bool_), K), UnitStates(3, np.ones(3, np.bool_))
    assert schedule.done(unit_states)
    assert schedule.fetch(unit_states) == NONE
    assert schedule.run(unit_states) == NONE


def test_partitions_run_one_at_a_time_and_stay():
    """A run by all members together: what it activates counts in the next choice."""
    assert (Levels.alone, Levels.stays, Levels.under_way) == (True, True, UNDER_WAY)


def test_questions_change_nothing():
    schedule, unit_states = queued([[0], [1]], waiting=[5])
    before = [array.copy() for array in (unit_states.places, unit_states.runs, unit_states.turns, unit_states.pending)]
    for _ in range(2):
        asked = (
            schedule.fetch(unit_states),
            schedule.run(unit_states),
            schedule.evict(unit_states),
            schedule.done(unit_states),
        )
        assert asked == (5, 0, 1, False)
    after = unit_states.places, unit_states.runs, unit_states.turns, unit_states.pending
    assert all((a == b).all() for a, b in zip(before, after, strict=True))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_order_of_events_ends_with_every_partition_run(data):
    """Room is never exceeded, first runs happen once each at least, re-runs only while transfers are pending."""
    count, room, k = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    partitions = st.integers(0, count - 1)
    wanted = marks(count, data.draw(st.sets(partitions)))
    schedule, unit_states = (
        Levels(wanted, k),
        UnitStates(count, marks(count, data.draw(st.sets(partitions, max_size=room)))),
    )
    workers = data.draw(st.integers(1, 2))
    for _ in range(40 * count * k):
        if schedule.done(unit_states):
            break
        unit_states.pending[:] = data.draw(st.lists(st.integers(0, 1), min_size=count, max_size=count))
        step, *units = data.draw(st.sampled_from(steps(schedule, unit_states, wanted, room, workers)))
        for change, unit in zip(step.split(), units, strict=True):
            getattr(unit_states, change)(unit)
        assert (unit_states.places != FAR).sum() <= room
        assert (unit_states.runs <= k).all()
    assert schedule.done(unit_states)
    assert (unit_states.runs[~wanted] == 0).all()


def steps(schedule, unit_states, wanted, room, workers):
    """What may happen next: a transfer begins or ends, a run begins or ends."""
    found = [("arrived", p) for p in np.flatnonzero(unit_states.places == COMING)]
    found += [("finished", p) for p in np.flatnonzero(unit_states.places == RUNNING)]
    wish = schedule.fetch(unit_states)
    if wish != NONE:
        if (unit_states.places != FAR).sum() < room:
            found.append(("fetched", wish))
        elif (gone := schedule.evict(unit_states)) != NONE:
            assert unit_states.places[gone] == NEAR
            assert unit_states.runs[gone] > 0 or not wanted[gone]
            found.append(("evicted fetched", gone, wish))
    runnable = schedule.run(unit_states)
    if runnable != NONE and unit_states.running < workers:
        assert unit_states.runs[runnable] == 0 or schedule.waiting(unit_states).any()
        found.append(("started", runnable))
    assert found, "stuck"
    return found
