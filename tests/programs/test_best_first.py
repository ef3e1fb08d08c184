"""Dense frontiers are parted by value; nobody is lost, and fewer edges are followed."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import isthmus as ist
from isthmus.frontier import Frontier
from isthmus.graph.lists import Lists
from isthmus.policies.recipes import RECIPES
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


def test_fewer_edges_are_followed_for_the_same_answer(tmp_path):
    graph = ist.generate("rmat", tmp_path / "g.isthmus", scale=14, seed=1, weights="1:255")
    with_it, without = (
        ist.sssp(graph, 0, memory="10%", threads=1, without=("recompute", *off)) for off in ((), ("best_first",))
    )
    assert np.array_equal(with_it.values, without.values)
    assert with_it.trace.total("active_edges") < 0.9 * without.trace.total("active_edges")


@pytest.mark.parametrize("device", ["cpu", "model:rtx2080ti"])
@pytest.mark.parametrize("algorithm", [ist.sssp, ist.widest_path])
def test_only_auto_defers(algorithm, device, monkeypatch, sized):
    """The published systems follow every active vertex, so their recipes must, too."""
    sized(least_buffer=4 << 10)
    graph = ist.generate("rmat", scale=11, seed=1, weights="1:255")
    deferred = []
    monkeypatch.setattr(BestFirst, "part", lambda *given: deferred.append(given))
    runs = {}
    for policy in [*RECIPES, *(f"{name}:{variant}" for name in RECIPES for variant in RECIPES[name].variants)]:
        algorithm(graph, 0, policy=policy, memory="1%", far="ram", device=device)
        runs[policy] = len(deferred)
        deferred.clear()
    assert {policy for policy, calls in runs.items() if calls} == {"auto"}
    algorithm(graph, 0, policy="auto", memory="1%", far="ram", device=device, without=("best_first",))
    assert not deferred
