"""Dense frontiers are parted by value; nobody is lost, and fewer edges are followed."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import isthmus as ist
from isthmus.frontier import Frontier
from isthmus.graph.lists import Lists
from isthmus.programs import best_first
from isthmus.programs.best_first import BestFirst
from isthmus.threads import Team


@pytest.fixture
def team():
    members = Team(2)
    yield members
    members.close()


def dense(values, degree, team, sign=1):
    """A frontier of everyone, marked, and facts about a graph of that mean degree."""
    n = values.size
    frontier = Frontier(n, 2)
    frontier.marks[:n] = 1
    frontier.take_marks(n)
    facts = SimpleNamespace(vertices=n, lists=Lists.of(np.arange(n + 1, dtype=np.int64) * degree), team=team)
    BestFirst(sign).part(values, frontier, facts)
    return frontier


@pytest.mark.parametrize("sign", [1, -1])
def test_a_share_goes_first_and_the_others_wait(sign, team):
    values = np.random.default_rng(1).permutation(1000) * sign
    frontier = dense(values, 10, team, sign)
    kept, waiting = np.flatnonzero(frontier.marks[:1000]), np.flatnonzero(frontier.next_marks[:1000])
    assert frontier.count == kept.size and 90 <= kept.size <= 110
    assert np.array_equal(np.sort(np.concatenate([kept, waiting])), np.arange(1000))
    assert (values[kept] * sign).max() < (values[waiting] * sign).min()
    frontier.advance()
    assert frontier.count == waiting.size and frontier.list is None


def test_equal_values_all_stay(team):
    assert dense(np.full(1000, 7), 10, team).count == 1000


def test_few_edges_are_not_parted(team):
    n = 1000
    frontier = Frontier(n, 1)
    frontier.marks[:10] = 1
    frontier.take_marks(10)
    facts = SimpleNamespace(vertices=n, lists=Lists.of(np.arange(n + 1, dtype=np.int64) * 4), team=team)
    BestFirst(1).part(np.arange(n), frontier, facts)
    assert frontier.count == 10


def test_fewer_edges_are_followed_for_the_same_answer(tmp_path, monkeypatch):
    graph = ist.generate("rmat", tmp_path / "g.isthmus", scale=14, seed=1, weights="1:255")
    run = lambda: ist.sssp(graph, 0, memory="10%", threads=1, without=("recompute",))  # noqa: E731
    with_it = run()
    monkeypatch.setattr(best_first, "WORTH", 0)  # never
    without = run()
    assert np.array_equal(with_it.values, without.values)
    assert with_it.trace.total("active_edges") < 0.9 * without.trace.total("active_edges")
