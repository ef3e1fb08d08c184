"""Cards: numba-cuda's simulator through the same interface as a GPU, and the lazy one of the tests, which must find mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.gpus import LazyCard

from isthmus.kernels.cuda import rows, shim
from isthmus.kernels.cuda.card import Card, NumbaCard

simulator = pytest.mark.skipif(not shim.simulated(), reason="set NUMBA_ENABLE_CUDASIM=1 to run kernels in numba-cuda's simulator")


@pytest.fixture(params=["lazy", pytest.param("simulator", marks=simulator)])
def card(request: pytest.FixtureRequest) -> Card:
    return LazyCard() if request.param == "lazy" else NumbaCard(0)


def test_work_on_a_stream_is_done_in_order(card: Card) -> None:
    stream, near, back = card.stream(), card.near(100, np.int64), np.zeros(100, np.int64)
    card.copy(near, np.arange(100), stream)
    card.launch(rows.build(card.gpu).fill, stream, near[:50], 7)
    card.copy_back(back, near, stream)
    card.finish(card.record(stream))
    assert back.tolist() == [7] * 50 + list(range(50, 100))
    card.free(near)


def test_memory_that_both_sides_use(card: Card) -> None:
    managed, mapped, stream = card.managed(np.ones(9)), card.mapped(np.arange(5)), card.stream()
    card.launch(rows.build(card.gpu).fill, stream, managed.device, 3.0)
    card.finish(card.record(stream))
    assert managed.host.tolist() == [3.0] * 9
    assert mapped.host.tolist() == list(range(5))
    assert card.near(0, np.int64).size == card.managed(np.empty(0)).host.size == card.mapped(np.empty(0)).host.size == 0
    assert card.free_bytes() > 1 << 20


def test_the_lazy_card_does_nothing_before_it_must() -> None:
    card = LazyCard()
    stream, near = card.stream(), card.near(4, np.uint8)
    card.copy(near, np.zeros(4, np.uint8), stream)
    assert near.tolist() == [0xCD] * 4
    card.finish(card.record(stream))
    assert near.tolist() == [0] * 4


def test_the_lazy_card_finds_memory_that_is_used_before_its_event() -> None:
    card = LazyCard()
    kernels, copies, near = card.stream(), card.stream(), card.near(64, np.int64)
    card.launch(rows.build(False).fill, kernels, near[:32], 1)
    card.copy(near[16:48], np.zeros(32, np.int64), copies)
    with pytest.raises(AssertionError, match="copy and fill use the same memory, and no event orders them"):
        card.finish(card.record(copies))


def test_the_lazy_card_finds_memory_that_is_freed_too_early_or_twice() -> None:
    card = LazyCard()
    stream, near = card.stream(), card.near(64, np.int64)
    card.launch(rows.build(False).fill, stream, near, 1)
    with pytest.raises(AssertionError, match="freed under fill"):
        card.free(near)
    card.finish(card.record(stream))
    card.free(near)
    with pytest.raises(AssertionError, match="freed twice"):
        card.free(near)


class Full:
    """A driver whose memory is full."""

    def device_array(self, count: int, dtype: Any) -> Any:
        raise RuntimeError("[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY")

    def pinned_array(self, count: int, dtype: Any) -> Any:
        raise RuntimeError("something else")


@simulator
def test_a_full_device_is_a_memory_error(monkeypatch: pytest.MonkeyPatch) -> None:
    card = NumbaCard(0)
    monkeypatch.setattr(NumbaCard, "_device", property(lambda self: shim.cuda().gpus[0]))
    card._cuda = Full()
    with pytest.raises(MemoryError, match="OUT_OF_MEMORY"):
        card.near(10, np.uint8)
    with pytest.raises(RuntimeError, match="something else"):
        card.pinned(10, np.uint8)
