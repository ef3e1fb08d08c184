"""Scaph's k-level queue: the paper's figure, then every order of events."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.schedule import rounds
from isthmus.schedule.rounds import FAR, NONE, QUEUED, RUNNING

K = 20


def masks(count, chosen):
    mask = np.zeros(count, np.bool_)
    mask[list(chosen)] = True
    return mask


def state_of(levels, waiting=(), count=9):
    """Partitions queued in these levels, in this order; others are on their way."""
    wanted = masks(count, [*(p for level in levels for p in level), *waiting])
    state = rounds.begin(wanted, np.zeros(count, np.bool_))
    runs = state.runs.copy()
    for number, level in enumerate(levels):
        for partition in level:
            state = rounds.arrived(state, partition)
            runs[partition] = number
    return replace(state, runs=runs)


def take(state, active=None, k=K):
    """Run what comes next, to its end."""
    chosen = rounds.next_run(state, np.ones(state.runs.size) if active is None else active, k)
    return chosen, state if chosen == NONE else rounds.finished(rounds.started(state, chosen), chosen)


@pytest.mark.parametrize(("levels", "then"), [([[3], [7, 4, 8, 6]], 1), ([[3, 7, 4], [8, 6]], 7)])
def test_the_papers_queue(levels, then):
    """Figure 11: once 3 of the first level has run, it runs again after 7, 4, 8 and 6, as they stand in either level."""
    state = state_of([*levels, [1]], waiting=[0])
    order = []
    for _ in range(7):
        chosen, state = take(state)
        order.append(chosen)
    assert order == [3, 7, 4, 8, 6, 3, then]


def test_first_runs_go_first():
    state = state_of([[], [1, 2]], waiting=[5])
    assert rounds.next_run(state, np.ones(9), K) == 1
    assert rounds.next_run(rounds.arrived(state, 5), np.ones(9), K) == 5


def test_nothing_runs_again_unless_a_transfer_is_pending():
    assert rounds.next_run(state_of([[], [1, 2]], waiting=[5]), np.ones(9), K) == 1
    idle = state_of([[], [1, 2]])
    assert rounds.next_run(idle, np.ones(9), K) == NONE
    assert idle.over


def test_a_partition_with_nothing_active_is_not_run_again_but_runs_first():
    state = state_of([[], [1, 2]], waiting=[5])
    assert rounds.next_run(state, np.array([1, 0, 1, 1, 1, 1, 1, 1, 1]), K) == 2
    assert rounds.next_run(state, np.zeros(9), K) == NONE
    assert rounds.next_run(state_of([[3]]), np.zeros(9), K) == 3  # else the iteration would never end


def test_no_more_than_k_runs():
    state = state_of([[0]], waiting=[5])
    ran = []
    for _ in range(6):
        chosen, state = take(state, k=3)
        ran.append(chosen)
    assert ran == [0, 0, 0, NONE, NONE, NONE]


@pytest.mark.parametrize(
    ("near", "link", "k"),
    [(224, 11.4, 20), (732, 12.3, 60), (1, 4, 1)],  # the first is the paper's
)
def test_k_is_bounded_by_the_bandwidths(near, link, k):
    assert rounds.levels(near, link) == k


def test_the_most_run_partition_makes_room():
    assert rounds.next_evicted(state_of([[3], [7, 4], [8, 6]], waiting=[0])) == 8
    assert rounds.next_evicted(state_of([[3], [7, 4]], waiting=[0])) == 7


def test_a_partition_that_has_not_run_or_is_running_stays():
    """The published engine would take a first-level partition when there is no other level."""
    assert rounds.next_evicted(state_of([[3, 4]], waiting=[0])) == NONE
    assert rounds.next_evicted(rounds.started(state_of([[], [3]], waiting=[0]), 3)) == NONE


def test_what_the_last_iteration_left_goes_before_all_others():
    state = rounds.begin(masks(4, [0, 1]), masks(4, [0, 2]))
    state = rounds.finished(rounds.started(state, 0), 0)
    assert rounds.next_evicted(state) == 2
    assert rounds.next_evicted(rounds.evicted(state, 2)) == 0
    assert rounds.next_run(rounds.evicted(state, 0), np.ones(4), K) == NONE  # 2 is near, but not wanted


def test_partitions_that_stayed_need_no_transfer():
    state = rounds.begin(masks(4, [0, 1, 3]), masks(4, [1, 2]))
    assert rounds.next_transfer(state) == 0
    assert rounds.next_transfer(rounds.sent_for(state, 0)) == 3
    assert rounds.next_run(state, np.ones(4), K) == 1


def test_an_iteration_without_high_value_is_over_at_once():
    state = rounds.begin(np.zeros(3, np.bool_), np.ones(3, np.bool_))
    assert state.over
    assert rounds.next_transfer(state) == NONE
    assert rounds.next_run(state, np.ones(3), K) == NONE


def test_steps_leave_the_state_before_as_it_was():
    state = state_of([[0]], waiting=[5])
    places, runs = state.places.copy(), state.runs.copy()
    rounds.evicted(rounds.finished(rounds.started(state, 0), 0), 0)
    assert (state.places == places).all()
    assert (state.runs == runs).all()


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_order_of_events_ends_with_every_partition_run(data):
    """Room is never exceeded, first runs happen once each at least, re-runs only while transfers are pending."""
    count, room, k = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    partitions = st.integers(0, count - 1)
    near = data.draw(st.sets(partitions, max_size=room))
    state = rounds.begin(masks(count, data.draw(st.sets(partitions))), masks(count, near))
    workers = data.draw(st.integers(1, 2))
    for _ in range(40 * count * k):
        if state.over:
            break
        active = np.array(data.draw(st.lists(st.integers(0, 1), min_size=count, max_size=count)))
        state = data.draw(st.sampled_from(steps(state, room, workers, active, k)))
        assert (state.places != FAR).sum() <= room
        assert (state.runs <= k).all()
    assert state.over
    assert (state.runs[~state.wanted] == 0).all()


def steps(state, room, workers, active, k):
    """States that may come next: a transfer begins or ends, a run begins or ends."""
    found = [rounds.arrived(state, p) for p in np.flatnonzero(state.places == rounds.COMING)]
    found += [rounds.finished(state, p) for p in np.flatnonzero(state.places == RUNNING)]
    wish = rounds.next_transfer(state)
    if wish != NONE:
        if (state.places != FAR).sum() < room:
            found.append(rounds.sent_for(state, wish))
        elif (gone := rounds.next_evicted(state)) != NONE:
            assert state.places[gone] == QUEUED
            assert state.runs[gone] > 0 or not state.wanted[gone]
            found.append(rounds.sent_for(rounds.evicted(state, gone), wish))
    runnable = rounds.next_run(state, active, k)
    if runnable != NONE and (state.places == RUNNING).sum() < workers:
        assert state.runs[runnable] == 0 or state.waiting.any()
        found.append(rounds.started(state, runnable))
    assert found, "stuck"
    return found
