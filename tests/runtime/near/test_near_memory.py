"""What a session holds: loaded once, kept while there is room, let go of in order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.devices.cpu import DeviceMemory
from isthmus.devices.model.device import ModelMemory
from isthmus.devices.model.figures import find
from isthmus.graph.store.files import BLOCK
from isthmus.policies.recipes import recipe
from isthmus.programs.algorithms.bfs import BFS
from isthmus.programs.algorithms.core_number import CoreNumber
from isthmus.programs.algorithms.sssp import SSSP
from isthmus.runtime.near.budget import Split
from isthmus.runtime.near.near_memory import NearMemory
from isthmus.threads import Team

RECIPE = recipe("filter")
ROOM = 1 << 30


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Any:
    draw = np.random.default_rng(1)
    edges = (*draw.integers(0, 500, (2, 5000)), draw.integers(1, 9, 5000).astype(np.int32))
    with ist.ingest(edges, tmp_path_factory.mktemp("pipeline") / "g.isthmus") as graph:
        yield graph


@pytest.fixture
def near_memory(graph: Any) -> Any:
    team = Team(1)
    near_memory = NearMemory(DeviceMemory(graph.snapshot, team, False, "auto"), team)
    yield near_memory
    near_memory.close()
    team.close()


def near(budget: int = ROOM) -> Split:
    return Split(budget, 0, 0, 0, 0, True, 0)


def far(edges: int = 1 << 20, cache: int = 0, budget: int = ROOM) -> Split:
    return Split(budget, 0, 0, 0, edges, False, cache)


def prepare(near_memory: NearMemory, program: Any, split: Split) -> Any:
    near_memory.release(program, split, RECIPE)
    return near_memory.prepare(program, split, RECIPE, lambda text: None)


def test_near_arrays_are_loaded_once(near_memory: NearMemory) -> None:
    prepare(near_memory, BFS(0), near())
    first = near_memory.count_anew()
    prepare(near_memory, BFS(1), near())
    assert first.bytes == 0
    prepare(near_memory, SSSP(0), near())
    assert list(near_memory._arrays) == ["out.targets", "out.weights"]
    assert first.bytes == near_memory.needs(SSSP(0))[1].blocks * BLOCK, "the weights alone"


def test_the_least_recently_used_goes_first(near_memory: NearMemory) -> None:
    prepare(near_memory, SSSP(0), near())
    prepare(near_memory, CoreNumber(True, False), near())
    assert set(near_memory._arrays) == {"out.targets", "out.weights", "in.targets"}
    weights = near_memory._arrays["out.weights"].nbytes
    prepare(near_memory, BFS(0), near(weights))
    assert set(near_memory._arrays) == {"out.targets", "in.targets"}, (
        "the weights were used longest ago, and one of both fits"
    )
    prepare(near_memory, BFS(0), near(0))
    assert set(near_memory._arrays) == {"out.targets"}
    assert set(near_memory._lists) == {"out"}


def test_what_stays_is_told(near_memory: NearMemory) -> None:
    """So that a program does not take the same bytes for itself."""
    prepare(near_memory, CoreNumber(True, False), near())
    other = near_memory._arrays["in.targets"].nbytes + 8 * len(near_memory._lists["in"])
    assert near_memory.release(BFS(0), near(), RECIPE) == other
    assert near_memory.release(BFS(0), near(0), RECIPE) == 0


def test_a_desk_serves_again_for_the_same_edges_only(near_memory: NearMemory) -> None:
    pipeline = prepare(near_memory, BFS(0), far())
    assert prepare(near_memory, BFS(3), far()) is pipeline
    other = prepare(near_memory, SSSP(0), far())
    assert other is not pipeline, "it reads weights as well"
    assert prepare(near_memory, SSSP(0), far(edges=1 << 19)) is not other, "of another size"


def test_a_desk_of_nearly_the_right_size_is_kept(near_memory: NearMemory) -> None:
    prepare(near_memory, BFS(0), far(1 << 20, 1 << 16))
    reuse_split = near_memory.reuse_split(BFS(1), far((1 << 20) + 4096), RECIPE)
    assert (reuse_split.edges, reuse_split.cache) == (1 << 20, 1 << 16)
    large = far(4 << 20)
    assert near_memory.reuse_split(BFS(1), large, RECIPE) is large, "less than half of what there could be"
    small = far(1 << 18, budget=1 << 18)
    assert near_memory.reuse_split(BFS(1), small, RECIPE) is small, "it does not fit"
    assert near_memory.reuse_split(SSSP(0), far(), RECIPE).cache == 0, "other edges"


def test_a_desk_without_a_cache_is_not_kept_for_a_program_that_has_one(near_memory: NearMemory) -> None:
    """It would read the same edges in every iteration, with memory to keep them."""
    prepare(near_memory, BFS(0), far(1 << 20))
    cached = far(1 << 18, 3 << 18)
    assert near_memory.reuse_split(BFS(1), cached, RECIPE) is cached
    prepare(near_memory, BFS(1), cached)
    assert near_memory.reuse_split(BFS(0), far(1 << 20), RECIPE).cache == 3 << 18, "the other way round it is"


def test_a_desk_takes_no_memory_from_a_program_that_needs_it(
    near_memory: NearMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(near_memory, BFS(0), far(1 << 18, 3 << 18))
    own = far(1 << 19, budget=2 << 20)
    assert near_memory.reuse_split(BFS(1), own, RECIPE).cache == 3 << 18
    monkeypatch.setattr(BFS, "needs_spare_memory", True)
    assert near_memory.reuse_split(BFS(1), own, RECIPE) is own
    assert near_memory.reuse_split(BFS(1), far(1 << 20), RECIPE).cache == 3 << 18, (
        "it takes no more than the program's own"
    )


def test_a_desk_is_closed_once_and_whole(near_memory: NearMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error while threads end leaves no open file, and no closed pipeline for the next program."""
    pipeline = prepare(near_memory, BFS(0), far())
    close, closed = pipeline.link.close, []

    def failing() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(pipeline.readers, "close", failing)
    monkeypatch.setattr(pipeline.link, "close", lambda: closed.append(close()))
    with pytest.raises(ZeroDivisionError):
        near_memory.drop()
    assert len(closed) == 1
    assert prepare(near_memory, BFS(0), far()) is not pipeline


def test_a_desk_makes_room_for_near_edges(near_memory: NearMemory) -> None:
    prepare(near_memory, BFS(0), far())
    prepare(near_memory, CoreNumber(True, False), near())
    assert near_memory._pipeline is not None, "there is room for both"
    prepare(near_memory, CoreNumber(True, False), near(1 << 10))
    assert near_memory._pipeline is None


def test_dropping_leaves_near_edges(near_memory: NearMemory) -> None:
    prepare(near_memory, BFS(0), far())
    prepare(near_memory, CoreNumber(True, False), near())
    near_memory.drop()
    assert near_memory._pipeline is None
    assert set(near_memory._arrays) == {"out.targets", "in.targets"}


def test_what_a_modelled_link_counted_for_a_failed_run_is_forgotten(graph: Any) -> None:
    team = Team(1)
    near_memory = NearMemory(ModelMemory(graph.snapshot, team, False, "auto", find("rtx2080ti")), team)
    link = prepare(near_memory, BFS(0), near()).link
    link.copy_back(1000)
    link.copy_back(1000, 2)
    near_memory.drop()
    assert prepare(near_memory, BFS(0), near()).link is link
    assert link.take().back_bytes == link.take(2).back_bytes == 0
    near_memory.close()
    team.close()
