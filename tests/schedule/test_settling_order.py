"""Working partitions to a standstill: near before far, urgent before others, and never stuck."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.schedule.standings import come, marks, run

from isthmus.schedule.schedule import COMING, FAR, NEAR, NONE, RUNNING, Standing
from isthmus.schedule.settling_order import NOTHING, Settling, most_urgent

OFTEN = 1 << 30


def standing_of(near=(), pending=(), count=8, room=2):
    """Some partitions near, and urgencies of those where something waits."""
    standing = Standing(count, marks(count, near))
    standing.pending[:] = NOTHING
    for unit, urgency in dict(pending).items():
        standing.pending[unit] = urgency
    standing.room = room
    return standing


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
    standing = standing_of([], {3: 1, 4: 2, 5: 3})
    for members, expected in ((1, NONE), (2, 4)):
        schedule = Settling(members, OFTEN)
        if members == 1:
            assert schedule.fetch(standing) == 3
            standing.fetched(3)
        assert schedule.fetch(standing) == expected
    standing.arrived(3)
    standing.started(3)
    assert Settling(1, OFTEN).fetch(standing) == NONE
    assert Settling(2, OFTEN).fetch(standing) == 4

    standing.fetched(4)
    assert Settling(2, OFTEN).fetch(standing) == NONE, "one runs and one comes"
    assert Settling(3, OFTEN).fetch(standing) == 5


def foreseeing(latest=(3, 4), runs=0, **how):
    """One runs, and these were fetched last because something waited there; nothing waits now."""
    standing = standing_of([runs], **{"room": 2, **how})
    for unit in latest:
        standing.pending[unit] = 1
        come(standing, unit)
        run(standing, unit)
    standing.pending[:] = NOTHING
    standing.started(runs)
    return standing


@pytest.mark.parametrize(
    ("latest", "expected"), [((3, 4), 5), ((4, 3), 2), ((3, 5), NONE), ((6, 7), NONE), ((4, 4), NONE)]
)
def test_the_next_in_a_row_of_two_is_foreseen(latest, expected):
    assert Settling(2, OFTEN).fetch(foreseeing(latest)) == expected


@pytest.mark.parametrize(("latest", "expected"), [((2, 1), 0), ((1, 0), NONE), ((3,), NONE)])
def test_the_first_can_be_foreseen_and_one_is_no_row(latest, expected):
    assert Settling(2, OFTEN).fetch(foreseeing(latest, runs=6)) == expected


def test_what_waits_goes_before_what_is_foreseen():
    standing = foreseeing()
    standing.pending[7] = 3
    assert Settling(2, OFTEN).fetch(standing) == 7


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
    schedule, standing = Settling(2, OFTEN), foreseeing()
    standing.fetched(5)
    assert schedule.run(standing) == NONE, "still on its way"
    standing.arrived(5)
    assert schedule.run(standing) == 5
    standing.pending[3] = 1
    assert schedule.run(standing) == 3, "what is known to wait goes first"
    standing.pending[3] = NOTHING
    run(standing, 5)
    assert schedule.run(standing) == NONE, "once"
    alone = foreseeing()
    come(alone, 5)
    alone.finished(0)
    assert schedule.run(alone) == NONE and schedule.done(alone), "nothing runs that could mark a vertex in it"


def test_the_one_that_has_not_run_for_longest_makes_room():
    standing = standing_of([0, 1, 2], room=0)
    run(standing, 0)
    assert Settling(1, OFTEN).evict(standing) == 1
    standing.pending[1] = 5
    assert Settling(1, OFTEN).evict(standing) == 2
    standing.pending[:] = 5
    assert Settling(1, OFTEN).evict(standing) == 1, "something waits in all of them"
    for unit in range(3):
        standing.started(unit)
    assert Settling(1, OFTEN).evict(standing) == NONE


def test_done_when_nothing_waits_comes_or_runs():
    schedule, standing = Settling(2, OFTEN), standing_of([0], {0: 1})
    assert not schedule.done(standing)
    standing.started(0)
    standing.pending[0] = NOTHING
    assert not schedule.done(standing), "what runs may make others wait"
    standing.finished(0)
    assert schedule.done(standing)
    standing.fetched(3)
    assert not schedule.done(standing)


def test_it_pauses_after_so_many_runs():
    schedule, standing = Settling(2, 3), standing_of([0, 1], {0: 1, 4: 2})
    run(standing, 0, 0)
    assert (schedule.run(standing), schedule.done(standing)) == (0, False)
    run(standing, 0)
    assert (schedule.run(standing), schedule.fetch(standing), schedule.done(standing)) == (NONE, NONE, True)
    standing.started(0)
    assert not schedule.done(standing), "what was begun is ended first"


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
    schedule, standing = Settling(members, OFTEN), standing_of(count=count, room=places, pending=pending)
    budget = data.draw(st.integers(0, 12))  # of wakes
    for _ in range(2000):
        if schedule.done(standing):
            break
        kind, unit = data.draw(st.sampled_from(events(schedule, standing, members)))
        if kind == "fetched" and not standing.room:
            gone = schedule.evict(standing)
            assert standing.places[gone] == NEAR
            standing.evicted(gone)
            standing.room += 1
        getattr(standing, kind)(unit)
        standing.room -= kind == "fetched"
        if kind == "started":
            standing.pending[unit] = NOTHING
        if kind == "finished" and budget:
            budget -= 1
            standing.pending[data.draw(unit_of)] = data.draw(unit_of)
        assert (standing.places != FAR).sum() + standing.room == places
    assert schedule.done(standing)
    assert (standing.pending == NOTHING).all()


def events(schedule, standing, members):
    found = [("arrived", p) for p in np.flatnonzero(standing.places == COMING)]
    found += [("finished", p) for p in np.flatnonzero(standing.places == RUNNING)]
    if (unit := schedule.run(standing)) != NONE and standing.running < members:
        found.append(("started", unit))
    if (unit := schedule.fetch(standing)) != NONE and (standing.room or schedule.evict(standing) != NONE):
        found.append(("fetched", unit))
    assert found, "stuck"
    return found
