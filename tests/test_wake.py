"""Waking vertices from a program, and even parts for a team: what programs with phases are built on."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.frontier import Frontier, queue_size
from isthmus.threads import Team


def active(frontier):
    return frontier.rows(0, frontier.vertices).tolist()


def test_a_run_of_vertices():
    frontier = Frontier(10, 2)
    frontier.start(np.array([0]))
    frontier.wake(3, 6)
    frontier.advance()
    assert (active(frontier), frontier.count, frontier.list) == ([3, 4, 5], 3, None)
    frontier.advance()
    assert not frontier.any()


def test_chosen_vertices_join_those_already_marked():
    frontier = Frontier(10, 2)
    frontier.start(None)
    assert frontier.none_next()
    frontier.next_marks[7] = 1
    frontier.queues[1, 0] = 7
    frontier.used[1] = 1
    frontier.wake_all(np.array([2, 7, 9]))
    assert not frontier.none_next()
    frontier.advance()
    assert frontier.list.tolist() == active(frontier) == [2, 7, 9]
    frontier.wake_all(np.array([], np.int64))
    assert frontier.none_next()


def test_more_than_a_queue_holds():
    vertices = queue_size(0) + 50
    frontier = Frontier(vertices, 1)
    frontier.start(np.array([1]))
    frontier.wake_all(np.arange(vertices))
    frontier.advance()
    assert (frontier.list, frontier.count) == (None, vertices)
    assert active(frontier) == list(range(vertices))


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 8])
def test_even_parts(threads, size):
    team = Team(threads)
    try:
        parts = team.split(lambda first, last: list(range(first, last)), size)
    finally:
        team.close()
    assert [i for part in parts for i in part] == list(range(size))
    assert len(parts) <= threads
    assert all(parts)
