"""Working partitions to a standstill: near before far, urgent before others, and never stuck."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.schedule.unit_states import come, marks, run

from isthmus.schedule.schedule import COMING, FAR, NEAR, NONE, RUNNING, UnitStates
from isthmus.schedule.settling_order import NOTHING, Settling, most_urgent

OFTEN = 1 << 30


def standing_of(near=(), pending=(), count=8, room=2):
    """Some partitions near, and urgencies of those where something waits."""
    unit_states = UnitStates(count, marks(count, near))
    unit_states.pending[:] = NOTHING
    for unit, urgency in dict(pending).items():
        unit_states.pending[unit] = urgency
    unit_states.room = room
    return unit_states


def test_the_most_urgent_near_one_runs():
    schedule = Settling(1, OFTEN)
    assert schedule.run(standing_of([1, 2, 3], {0: 1, 1: 9, 2: 4})) == 2
    assert schedule.run(standing_of([1, 2], {0: 1})) == NONE
    assert schedule.run(standing_of([3], {3: -np.inf, 2: -5})) == 3, "more urgent than anything, not nothing to do"


def test_a_far_one_is_fetched_when_no_near_one_waits():
    schedule = Settling(1, OFTEN)
    assert schedule.fetch(standing_of([1], {1: 9, 4: 1})) == NONE
    assert schedule.fetch(standing_of([1], {5: 9, 4: 1})) == 4
    assert schedule.fetch(standing_of([1])) == NONE


def test_no_more_are_fetched_or_run_than_there_are_members():
    unit_states = standing_of([], {3: 1, 4: 2, 5: 3})
    for members, expected in ((1, NONE), (2, 4)):
        schedule = Settling(members, OFTEN)
        if members == 1:
            assert schedule.fetch(unit_states) == 3
            unit_states.fetched(3)
        assert schedule.fetch(unit_states) == expected
    unit_states.arrived(3)
    unit_states.started(3)
    assert Settling(1, OFTEN).fetch(unit_states) == NONE
    assert Settling(2, OFTEN).fetch(unit_states) == 4

    unit_states.fetched(4)
    assert Settling(2, OFTEN).fetch(unit_states) == NONE, "one runs and one comes"
    assert Settling(3, OFTEN).fetch(unit_states) == 5


def foreseeing(latest=(3, 4), runs=0, **how):
    """One runs, and these were fetched last because something waited there; nothing waits now."""
    unit_states = standing_of([runs], **{"room": 2, **how})
    for unit in latest:
        unit_states.pending[unit] = 1
        come(unit_states, unit)
        run(unit_states, unit)
    unit_states.pending[:] = NOTHING
    unit_states.started(runs)
    return unit_states


@pytest.mark.parametrize(
    ("latest", "expected"), [((3, 4), 5), ((4, 3), 2), ((3, 5), NONE), ((6, 7), NONE), ((4, 4), NONE)]
)
def test_the_next_in_a_row_of_two_is_foreseen(latest, expected):
    assert Settling(2, OFTEN).fetch(foreseeing(latest)) == expected


@pytest.mark.parametrize(("latest", "expected"), [((2, 1), 0), ((1, 0), NONE), ((3,), NONE)])
def test_the_first_can_be_foreseen_and_one_is_no_row(latest, expected):
    assert Settling(2, OFTEN).fetch(foreseeing(latest, runs=6)) == expected


def test_what_waits_goes_before_what_is_foreseen():
    unit_states = foreseeing()
    unit_states.pending[7] = 3
    assert Settling(2, OFTEN).fetch(unit_states) == 7


def test_nothing_is_foreseen_without_an_idle_place_or_twice():
    assert Settling(2, OFTEN).fetch(foreseeing(room=0)) == 5, "3 and 4 are near, and nothing waits in them"
    busy = foreseeing(room=0)
    for unit in (3, 4):
        busy.started(unit)
    assert Settling(4, OFTEN).fetch(busy) == NONE, "all that is near runs"
    busy.room = 1
    assert Settling(4, OFTEN).fetch(busy) == 5
    before = foreseeing()
    before.asked_for[5] = True
    assert Settling(2, OFTEN).fetch(before) == NONE
    guessed = foreseeing()
    come(guessed, 5)
    assert Settling(3, OFTEN).fetch(guessed) == NONE, "one guess at a time"
    run(guessed, 5)
    assert Settling(3, OFTEN).fetch(guessed) == NONE, "it has found nothing yet"
    guessed.pending[5] = 1
    guessed.started(5)
    guessed.pending[5] = NOTHING
    assert Settling(3, OFTEN).fetch(guessed) == 6, "the guess was right"
    idle = foreseeing()
    idle.finished(0)
    assert Settling(2, OFTEN).fetch(idle) == NONE, "only while another is worked on"


def test_a_guess_runs_once_beside_another():
    """What runs meanwhile marks vertices in it, which is noted only at the end of that run."""
    schedule, unit_states = Settling(2, OFTEN), foreseeing()
    unit_states.fetched(5)
    assert schedule.run(unit_states) == NONE, "still on its way"
    unit_states.arrived(5)
    assert schedule.run(unit_states) == 5
    unit_states.pending[3] = 1
    assert schedule.run(unit_states) == 3, "what is known to wait goes first"
    unit_states.pending[3] = NOTHING
    run(unit_states, 5)
    assert schedule.run(unit_states) == NONE, "once"
    alone = foreseeing()
    come(alone, 5)
    alone.finished(0)
    assert schedule.run(alone) == NONE and schedule.done(alone), "nothing runs that could mark a vertex in it"


def test_the_one_that_has_not_run_for_longest_makes_room():
    unit_states = standing_of([0, 1, 2], room=0)
    run(unit_states, 0)
    assert Settling(1, OFTEN).evict(unit_states) == 1
    unit_states.pending[1] = 5
    assert Settling(1, OFTEN).evict(unit_states) == 2
    unit_states.pending[:] = 5
    assert Settling(1, OFTEN).evict(unit_states) == 1, "something waits in all of them"
    for unit in range(3):
        unit_states.started(unit)
    assert Settling(1, OFTEN).evict(unit_states) == NONE


def test_done_when_nothing_waits_comes_or_runs():
    schedule, unit_states = Settling(2, OFTEN), standing_of([0], {0: 1})
    assert not schedule.done(unit_states)
    unit_states.started(0)
    unit_states.pending[0] = NOTHING
    assert not schedule.done(unit_states), "what runs may make others wait"
    unit_states.finished(0)
    assert schedule.done(unit_states)
    unit_states.fetched(3)
    assert not schedule.done(unit_states)


def test_it_pauses_after_so_many_runs():
    schedule, unit_states = Settling(2, 3), standing_of([0, 1], {0: 1, 4: 2})
    run(unit_states, 0, 0)
    assert (schedule.run(unit_states), schedule.done(unit_states)) == (0, False)
    run(unit_states, 0)
    assert (schedule.run(unit_states), schedule.fetch(unit_states), schedule.done(unit_states)) == (NONE, NONE, True)
    unit_states.started(0)
    assert not schedule.done(unit_states), "what was begun is ended first"


def test_the_most_urgent_of_none():
    assert most_urgent(standing_of(count=0), np.zeros(0, np.bool_)) == NONE
    assert most_urgent(standing_of([1], {1: 3}), np.zeros(8, np.bool_)) == NONE


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_order_of_events_works_off_all_that_waits(data):
    """Runs make others wait, a few times; nothing that runs or comes is evicted, and it ends with nothing waiting."""
    count, places, members = data.draw(st.integers(1, 7)), data.draw(st.integers(2, 4)), data.draw(st.integers(1, 3))
    unit_of = st.integers(0, count - 1)
    pending = data.draw(st.dictionaries(unit_of, unit_of))
    schedule, unit_states = Settling(members, OFTEN), standing_of(count=count, room=places, pending=pending)
    budget = data.draw(st.integers(0, 12))  # of wakes
    for _ in range(2000):
        if schedule.done(unit_states):
            break
        kind, unit = data.draw(st.sampled_from(events(schedule, unit_states, members)))
        if kind == "fetched" and not unit_states.room:
            gone = schedule.evict(unit_states)
            assert unit_states.places[gone] == NEAR
            unit_states.evicted(gone)
            unit_states.room += 1
        getattr(unit_states, kind)(unit)
        unit_states.room -= kind == "fetched"
        if kind == "started":
            unit_states.pending[unit] = NOTHING
        if kind == "finished" and budget:
            budget -= 1
            unit_states.pending[data.draw(unit_of)] = data.draw(unit_of)
        assert (unit_states.places != FAR).sum() + unit_states.room == places
    assert schedule.done(unit_states)
    assert (unit_states.pending == NOTHING).all()


def events(schedule, unit_states, members):
    found = [("arrived", p) for p in np.flatnonzero(unit_states.places == COMING)]
    found += [("finished", p) for p in np.flatnonzero(unit_states.places == RUNNING)]
    if (unit := schedule.run(unit_states)) != NONE and unit_states.running < members:
        found.append(("started", unit))
    if (unit := schedule.fetch(unit_states)) != NONE and (unit_states.room or schedule.evict(unit_states) != NONE):
        found.append(("fetched", unit))
    assert found, "stuck"
    return found
