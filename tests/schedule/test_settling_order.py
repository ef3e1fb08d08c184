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


def units_of(near=(), pending=(), count=8, room=2):
    """Some partitions near, and urgencies of those where something waits."""
    units = UnitStates(count, marks(count, near))
    units.pending[:] = NOTHING
    for unit, urgency in dict(pending).items():
        units.pending[unit] = urgency
    units.free = room
    return units


def test_the_most_urgent_near_one_runs():
    schedule = Settling(1, OFTEN)
    assert schedule.run(units_of([1, 2, 3], {0: 1, 1: 9, 2: 4})) == 2
    assert schedule.run(units_of([1, 2], {0: 1})) == NONE
    assert schedule.run(units_of([3], {3: -np.inf, 2: -5})) == 3, "more urgent than anything, not nothing to do"


def test_a_far_one_is_fetched_when_no_near_one_waits():
    schedule = Settling(1, OFTEN)
    assert schedule.fetch(units_of([1], {1: 9, 4: 1})) == NONE
    assert schedule.fetch(units_of([1], {5: 9, 4: 1})) == 4
    assert schedule.fetch(units_of([1])) == NONE


def test_no_more_are_fetched_or_run_than_there_are_members():
    units = units_of([], {3: 1, 4: 2, 5: 3})
    for members, expected in ((1, NONE), (2, 4)):
        schedule = Settling(members, OFTEN)
        if members == 1:
            assert schedule.fetch(units) == 3
            units.fetched(3)
        assert schedule.fetch(units) == expected
    units.arrived(3)
    units.started(3)
    assert Settling(1, OFTEN).fetch(units) == NONE
    assert Settling(2, OFTEN).fetch(units) == 4

    units.fetched(4)
    assert Settling(2, OFTEN).fetch(units) == NONE, "one runs and one comes"
    assert Settling(3, OFTEN).fetch(units) == 5


def foreseeing(latest=(3, 4), runs=0, **how):
    """One runs, and these were fetched last because something waited there; nothing waits now."""
    units = units_of([runs], **{"room": 2, **how})
    for unit in latest:
        units.pending[unit] = 1
        come(units, unit)
        run(units, unit)
    units.pending[:] = NOTHING
    units.started(runs)
    return units


@pytest.mark.parametrize(
    ("latest", "expected"), [((3, 4), 5), ((4, 3), 2), ((3, 5), NONE), ((6, 7), NONE), ((4, 4), NONE)]
)
def test_the_next_in_a_row_of_two_is_foreseen(latest, expected):
    assert Settling(2, OFTEN).fetch(foreseeing(latest)) == expected


@pytest.mark.parametrize(("latest", "expected"), [((2, 1), 0), ((1, 0), NONE), ((3,), NONE)])
def test_the_first_can_be_foreseen_and_one_is_no_row(latest, expected):
    assert Settling(2, OFTEN).fetch(foreseeing(latest, runs=6)) == expected


def test_what_waits_goes_before_what_is_foreseen():
    units = foreseeing()
    units.pending[7] = 3
    assert Settling(2, OFTEN).fetch(units) == 7


def test_nothing_is_foreseen_without_an_idle_place_or_twice():
    assert Settling(2, OFTEN).fetch(foreseeing(room=0)) == 5, "3 and 4 are near, and nothing waits in them"
    busy = foreseeing(room=0)
    for unit in (3, 4):
        busy.started(unit)
    assert Settling(4, OFTEN).fetch(busy) == NONE, "all that is near runs"
    busy.free = 1
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
    schedule, units = Settling(2, OFTEN), foreseeing()
    units.fetched(5)
    assert schedule.run(units) == NONE, "still on its way"
    units.arrived(5)
    assert schedule.run(units) == 5
    units.pending[3] = 1
    assert schedule.run(units) == 3, "what is known to wait goes first"
    units.pending[3] = NOTHING
    run(units, 5)
    assert schedule.run(units) == NONE, "once"
    alone = foreseeing()
    come(alone, 5)
    alone.finished(0)
    assert schedule.run(alone) == NONE and schedule.done(alone), "nothing runs that could mark a vertex in it"


def test_the_one_that_has_not_run_for_longest_makes_room():
    units = units_of([0, 1, 2], room=0)
    run(units, 0)
    assert Settling(1, OFTEN).evict(units) == 1
    units.pending[1] = 5
    assert Settling(1, OFTEN).evict(units) == 2
    units.pending[:] = 5
    assert Settling(1, OFTEN).evict(units) == 1, "something waits in all of them"
    for unit in range(3):
        units.started(unit)
    assert Settling(1, OFTEN).evict(units) == NONE


def test_done_when_nothing_waits_comes_or_runs():
    schedule, units = Settling(2, OFTEN), units_of([0], {0: 1})
    assert not schedule.done(units)
    units.started(0)
    units.pending[0] = NOTHING
    assert not schedule.done(units), "what runs may make others wait"
    units.finished(0)
    assert schedule.done(units)
    units.fetched(3)
    assert not schedule.done(units)


def test_it_pauses_after_so_many_runs():
    schedule, units = Settling(2, 3), units_of([0, 1], {0: 1, 4: 2})
    run(units, 0, 0)
    assert (schedule.run(units), schedule.done(units)) == (0, False)
    run(units, 0)
    assert (schedule.run(units), schedule.fetch(units), schedule.done(units)) == (NONE, NONE, True)
    units.started(0)
    assert not schedule.done(units), "what was begun is ended first"


def test_the_most_urgent_of_none():
    assert most_urgent(units_of(count=0), np.zeros(0, np.bool_)) == NONE
    assert most_urgent(units_of([1], {1: 3}), np.zeros(8, np.bool_)) == NONE


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_order_of_events_works_off_all_that_waits(data):
    """Runs make others wait, a few times; nothing that runs or comes is evicted, and it ends with nothing waiting."""
    count, places, members = data.draw(st.integers(1, 7)), data.draw(st.integers(2, 4)), data.draw(st.integers(1, 3))
    unit_of = st.integers(0, count - 1)
    pending = data.draw(st.dictionaries(unit_of, unit_of))
    schedule, units = Settling(members, OFTEN), units_of(count=count, room=places, pending=pending)
    budget = data.draw(st.integers(0, 12))  # of wakes
    for _ in range(2000):
        if schedule.done(units):
            break
        kind, unit = data.draw(st.sampled_from(events(schedule, units, members)))
        if kind == "fetched" and not units.free:
            gone = schedule.evict(units)
            assert units.places[gone] == NEAR
            units.evicted(gone)
            units.free += 1
        getattr(units, kind)(unit)
        units.free -= kind == "fetched"
        if kind == "started":
            units.pending[unit] = NOTHING
        if kind == "finished" and budget:
            budget -= 1
            units.pending[data.draw(unit_of)] = data.draw(unit_of)
        assert (units.places != FAR).sum() + units.free == places
    assert schedule.done(units)
    assert (units.pending == NOTHING).all()


def events(schedule, units, members):
    found = [("arrived", p) for p in np.flatnonzero(units.places == COMING)]
    found += [("finished", p) for p in np.flatnonzero(units.places == RUNNING)]
    if (unit := schedule.run(units)) != NONE and units.running < members:
        found.append(("started", unit))
    if (unit := schedule.fetch(units)) != NONE and (units.free or schedule.evict(units) != NONE):
        found.append(("fetched", unit))
    assert found, "stuck"
    return found
