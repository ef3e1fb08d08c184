"""What a session holds: loaded once, kept while there is room, let go of in order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.devices.model.figures import find
from isthmus.graph.store.files import BLOCK
from isthmus.policies.recipes import recipe
from isthmus.programs.algorithms.bfs import BFS
from isthmus.programs.algorithms.core_number import CoreNumber
from isthmus.programs.algorithms.sssp import SSSP
from isthmus.runtime.near.budget import Split
from isthmus.runtime.near.near_memory import Holdings
from isthmus.threads import Team

RECIPE = recipe("filter")
ROOM = 1 << 30


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Any:
    draw = np.random.default_rng(1)
    edges = (*draw.integers(0, 500, (2, 5000)), draw.integers(1, 9, 5000).astype(np.int32))
    with ist.ingest(edges, tmp_path_factory.mktemp("desk") / "g.isthmus") as graph:
        yield graph


@pytest.fixture
def holdings(graph: Any) -> Any:
    team = Team(1)
    holdings = Holdings(graph.snapshot, team, None, False, "auto")
    yield holdings
    holdings.close()
    team.close()


def near(budget: int = ROOM) -> Split:
    return Split(budget, 0, 0, 0, 0, True, 0)


def far(edges: int = 1 << 20, cache: int = 0, budget: int = ROOM) -> Split:
    return Split(budget, 0, 0, 0, edges, False, cache)


def lay(holdings: Holdings, program: Any, split: Split) -> Any:
    holdings.release(program, split, RECIPE)
    return holdings.lay(program, split, RECIPE, lambda text: None)


def test_near_arrays_are_loaded_once(holdings: Holdings) -> None:
    lay(holdings, BFS(0), near())
    first = holdings.count_anew()
    lay(holdings, BFS(1), near())
    assert first.bytes == 0
    lay(holdings, SSSP(0), near())
    assert list(holdings._arrays) == ["out.targets", "out.weights"]
    assert first.bytes == holdings.needs(SSSP(0))[1].blocks * BLOCK, "the weights alone"


def test_the_least_recently_used_goes_first(holdings: Holdings) -> None:
    lay(holdings, SSSP(0), near())
    lay(holdings, CoreNumber(True, False), near())
    assert set(holdings._arrays) == {"out.targets", "out.weights", "in.targets"}
    weights = holdings._arrays["out.weights"].nbytes
    lay(holdings, BFS(0), near(weights))
    assert set(holdings._arrays) == {"out.targets", "in.targets"}, (
        "the weights were used longest ago, and one of both fits"
    )
    lay(holdings, BFS(0), near(0))
    assert set(holdings._arrays) == {"out.targets"}
    assert set(holdings._lists) == {"out"}


def test_what_stays_is_told(holdings: Holdings) -> None:
    """So that a program does not take the same bytes for itself."""
    lay(holdings, CoreNumber(True, False), near())
    other = holdings._arrays["in.targets"].nbytes + 8 * len(holdings._lists["in"])
    assert holdings.release(BFS(0), near(), RECIPE) == other
    assert holdings.release(BFS(0), near(0), RECIPE) == 0


def test_a_desk_serves_again_for_the_same_edges_only(holdings: Holdings) -> None:
    desk = lay(holdings, BFS(0), far())
    assert lay(holdings, BFS(3), far()) is desk
    other = lay(holdings, SSSP(0), far())
    assert other is not desk, "it reads weights as well"
    assert lay(holdings, SSSP(0), far(edges=1 << 19)) is not other, "of another size"


def test_a_desk_of_nearly_the_right_size_is_kept(holdings: Holdings) -> None:
    lay(holdings, BFS(0), far(1 << 20, 1 << 16))
    fitted = holdings.fitted(BFS(1), far((1 << 20) + 4096), RECIPE)
    assert (fitted.edges, fitted.cache) == (1 << 20, 1 << 16)
    large = far(4 << 20)
    assert holdings.fitted(BFS(1), large, RECIPE) is large, "less than half of what there could be"
    small = far(1 << 18, budget=1 << 18)
    assert holdings.fitted(BFS(1), small, RECIPE) is small, "it does not fit"
    assert holdings.fitted(SSSP(0), far(), RECIPE).cache == 0, "other edges"


def test_a_desk_without_a_cache_is_not_kept_for_a_program_that_has_one(holdings: Holdings) -> None:
    """It would read the same edges in every iteration, with memory to keep them."""
    lay(holdings, BFS(0), far(1 << 20))
    cached = far(1 << 18, 3 << 18)
    assert holdings.fitted(BFS(1), cached, RECIPE) is cached
    lay(holdings, BFS(1), cached)
    assert holdings.fitted(BFS(0), far(1 << 20), RECIPE).cache == 3 << 18, "the other way round it is"


def test_a_desk_takes_no_memory_from_a_program_that_needs_it(
    holdings: Holdings, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(holdings, BFS(0), far(1 << 18, 3 << 18))
    own = far(1 << 19, budget=2 << 20)
    assert holdings.fitted(BFS(1), own, RECIPE).cache == 3 << 18
    monkeypatch.setattr(BFS, "needs_spare_memory", True)
    assert holdings.fitted(BFS(1), own, RECIPE) is own
    assert holdings.fitted(BFS(1), far(1 << 20), RECIPE).cache == 3 << 18, "it takes no more than the program's own"


def test_a_desk_is_closed_once_and_whole(holdings: Holdings, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error while threads end leaves no open file, and no closed desk for the next program."""
    desk = lay(holdings, BFS(0), far())
    close, closed = desk.link.close, []

    def failing() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(desk.executor, "close", failing)
    monkeypatch.setattr(desk.link, "close", lambda: closed.append(close()))
    with pytest.raises(ZeroDivisionError):
        holdings.drop()
    assert len(closed) == 1
    assert lay(holdings, BFS(0), far()) is not desk


def test_a_desk_makes_room_for_near_edges(holdings: Holdings) -> None:
    lay(holdings, BFS(0), far())
    lay(holdings, CoreNumber(True, False), near())
    assert holdings._desk is not None, "there is room for both"
    lay(holdings, CoreNumber(True, False), near(1 << 10))
    assert holdings._desk is None


def test_dropping_leaves_near_edges(holdings: Holdings) -> None:
    lay(holdings, BFS(0), far())
    lay(holdings, CoreNumber(True, False), near())
    holdings.drop()
    assert holdings._desk is None
    assert set(holdings._arrays) == {"out.targets", "in.targets"}


def test_what_a_modelled_link_counted_for_a_failed_run_is_forgotten(graph: Any) -> None:
    team = Team(1)
    holdings = Holdings(graph.snapshot, team, find("rtx2080ti"), False, "auto")
    link = lay(holdings, BFS(0), near()).link
    link.copy_back(1000)
    link.copy_back(1000, 2)
    holdings.drop()
    assert lay(holdings, BFS(0), near()).link is link
    assert link.take().back_bytes == link.take(2).back_bytes == 0
    holdings.close()
    team.close()
