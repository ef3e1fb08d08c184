"""Cards: numba-cuda's simulator through the same interface as a GPU, and the lazy one of the tests, which must find
mistakes.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.gpus import LazyCard

from isthmus.devices.cuda.card import ADVICE, Card, CudaDriverError, NumbaCard, Shared
from isthmus.devices.cuda.kernels import lists, rows
from isthmus.kernels.compile import cuda_module

simulator = pytest.mark.skipif(
    not cuda_module.simulated(), reason="set NUMBA_ENABLE_CUDASIM=1 to run kernels in numba-cuda's simulator"
)


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


def test_all_work_of_a_stream_is_waited_for(card: Card) -> None:
    stream, near, back = card.stream(), card.near(9, np.int64), np.zeros(9, np.int64)
    card.copy(near, np.arange(9), stream)
    card.copy_back(back, near, stream)
    card.drain(stream)
    assert back.tolist() == list(range(9))
    card.free(near)


def test_prefix_sums(card: Card) -> None:
    stream, near, back = card.stream(), card.near(7, np.int64), np.zeros(7, np.int64)
    card.copy(near, np.array([3, 0, 1 << 40, 2, 0, 0, 5]), stream)
    card.scan(near[:6], stream)
    card.copy_back(back, near, stream)
    card.finish(card.record(stream))
    assert back.tolist() == [3, 3, 3 + (1 << 40), 5 + (1 << 40), 5 + (1 << 40), 5 + (1 << 40), 5]
    card.free(near)


def test_kernels_see_what_the_host_writes_to_an_array_of_its_own(card: Card) -> None:
    own, near, stream = np.arange(40, dtype=np.uint32), card.near(40, np.uint32), card.stream()
    shared = card.register(own)
    own[7] = 1000
    everything = np.zeros(1, np.int64)
    starts = card.near(1, np.int64)
    card.copy(starts, everything, stream)
    card.launch(lists.build(card.gpu).copy_lists, stream, 40, starts, starts, starts, shared.device, near)
    back = np.zeros(40, np.uint32)
    card.copy_back(back, near, stream)
    card.finish(card.record(stream))
    assert shared.host is own
    assert back.tolist() == own.tolist()
    card.free(shared)


class Registrar:
    """A driver that registers arrays, and notes when it lets go of them."""

    def __init__(self) -> None:
        self.registered: list[int] = []

    @contextlib.contextmanager
    def mapped(self, array: Any) -> Any:
        self.registered.append(id(array))
        yield array[:]
        self.registered.remove(id(array))


@simulator
def test_registrations_end_when_they_are_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    card, driver, array = NumbaCard(0), Registrar(), np.arange(5)
    monkeypatch.setattr(NumbaCard, "_here", lambda self: contextlib.nullcontext())
    card._cuda, card._simulated = driver, False
    shared = card.register(array)
    assert driver.registered == [id(array)]
    assert np.shares_memory(shared.device, array)
    card.free(shared)
    assert driver.registered == []
    card.free(shared)  # others hold memory that the garbage collector frees


class Scans:
    """cuda-cccl's module, as far as it is used."""

    OpKind = SimpleNamespace(PLUS="plus")

    @staticmethod
    def inclusive_scan(*, d_in: Any, d_out: Any, op: str, init_value: Any, num_items: int, stream: Any) -> None:
        assert (op, init_value.tolist(), init_value.dtype, stream) == ("plus", [0], d_in.dtype, "stream")
        d_out[:num_items] = np.cumsum(d_in[:num_items])


@simulator
def test_prefix_sums_are_those_of_cuda_cccl(monkeypatch: pytest.MonkeyPatch) -> None:
    card, values = NumbaCard(0), np.array([1, 2, 3])
    monkeypatch.setattr(NumbaCard, "_here", lambda self: contextlib.nullcontext())
    monkeypatch.setattr(cuda_module, "compute", Scans)
    card._simulated = False
    card.scan(values, "stream")
    assert values.tolist() == [1, 3, 6]


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

    gpus = SimpleNamespace(current=0)

    def stream(self) -> Any:
        raise RuntimeError("[2] Call to cuStreamCreate results in CUDA_ERROR_OUT_OF_MEMORY")

    def event(self) -> Any:
        raise RuntimeError("[2] Call to cuEventCreate results in CUDA_ERROR_OUT_OF_MEMORY")

    def __getitem__(self, how: Any) -> Any:
        """A kernel whose code finds no room."""
        raise RuntimeError("[2] Call to cuLibraryLoadData results in CUDA_ERROR_OUT_OF_MEMORY")

    def pinned_array(self, count: int, dtype: Any) -> Any:
        raise RuntimeError("something else")

    @contextlib.contextmanager
    def mapped(self, array: Any) -> Any:
        raise RuntimeError("[2] Call to cuMemHostRegister results in CUDA_ERROR_OUT_OF_MEMORY")
        yield


@simulator
def test_a_full_device_is_a_memory_error(monkeypatch: pytest.MonkeyPatch) -> None:
    card = NumbaCard(0)
    monkeypatch.setattr(NumbaCard, "_device", property(lambda self: cuda_module.cuda().gpus[0]))
    card._cuda = Full()
    with pytest.raises(MemoryError, match="OUT_OF_MEMORY"):
        card.near(10, np.uint8)
    with pytest.raises(RuntimeError, match="something else"):
        card.pinned(10, np.uint8)
    for work in (card.stream, lambda: card.record(0), lambda: card.launch(Full(), 0)):
        with pytest.raises(MemoryError, match="OUT_OF_MEMORY"):
            work()
    card._simulated = False
    with pytest.raises(MemoryError, match="OUT_OF_MEMORY"):
        card.register(np.zeros(10, np.uint8))


class Gpu:
    def __init__(self, number: int, stack: list[int]) -> None:
        self.number, self._stack = number, stack

    def __enter__(self) -> None:
        self._stack.append(self.number)

    def __exit__(self, *details: object) -> None:
        assert self._stack.pop() == self.number


class Gpus(threading.local):
    """numba-cuda's devices: each thread has a stack of current ones."""

    def __init__(self) -> None:
        self.stack: list[int] = []

    def __getitem__(self, number: int) -> Gpu:
        return Gpu(number, self.stack)

    @property
    def current(self) -> Gpu | None:
        return Gpu(self.stack[-1], self.stack) if self.stack else None


def test_a_device_stays_the_current_one_of_a_thread_that_had_none() -> None:
    """So no part of an array is taken where numba-cuda would use GPU 0."""
    gpus, found = Gpus(), []
    card = object.__new__(NumbaCard)
    card._cuda, card._number, card._begun = SimpleNamespace(gpus=gpus, stream=lambda: "stream"), 1, threading.local()

    def use(before: list[int]) -> None:
        gpus.stack.extend(before)
        card.begin_thread()
        found.append(list(gpus.stack))
        for _ in range(2):
            card.stream()
        found.append(list(gpus.stack))

    for before in ([], [0]):
        thread = threading.Thread(target=use, args=(before,))
        thread.start()
        thread.join()
    assert found == [[1], [1], [0], [0]]


class Pending:
    """A driver that has memory to free, and wraps arrays."""

    def __init__(self) -> None:
        self.free = 5
        self.deallocations = SimpleNamespace(clear=lambda: setattr(self, "free", 7))

    def current_context(self) -> Any:
        return SimpleNamespace(
            deallocations=self.deallocations, get_memory_info=lambda: SimpleNamespace(free=self.free)
        )

    def managed_array(self, count: int, dtype: Any) -> Any:
        return np.empty(count, dtype)

    def as_cuda_array(self, made: Any) -> Any:
        return SimpleNamespace(wraps=made)


def test_memory_of_both_sides_is_wrapped_and_deferred_frees_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    card = object.__new__(NumbaCard)
    monkeypatch.setattr(NumbaCard, "_here", lambda self: contextlib.nullcontext())
    card._cuda, card._simulated = Pending(), False
    shared, empty = card.managed(np.arange(3, dtype=np.uint8)), card.managed(np.empty(0, np.uint8))
    assert shared.host.tolist() == shared.device.wraps.tolist() == [0, 1, 2]
    assert (empty.host.size, empty.device.wraps.view(np.int64).size) == (0, 1)
    assert card.free_bytes() == 7


@pytest.mark.skipif(cuda_module.simulated(), reason="the simulator has arrays of its own")
def test_only_device_arrays_of_numba_have_views() -> None:
    """So others are wrapped. The module can be imported without a driver."""
    pytest.importorskip("numba_cuda", reason="needs the packages of the test extra")
    arrays = importlib.import_module("numba.cuda.cudadrv.devicearray")
    assert hasattr(arrays.DeviceNDArray, "is_c_contiguous")
    assert not hasattr(arrays.MappedNDArray, "is_c_contiguous") and not hasattr(
        arrays.ManagedNDArray, "is_c_contiguous"
    )


class Driver:
    """The functions of the driver for managed memory, which write down what they are told."""

    class CUmem_advise:  # noqa: N801
        CU_MEM_ADVISE_SET_READ_MOSTLY, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_MEM_ADVISE_SET_ACCESSED_BY = (
            "read",
            "preferred",
            "accessed",
        )

    class CUmemLocationType:
        CU_MEM_LOCATION_TYPE_DEVICE = "device"

    class CUmemLocation:
        type = id = None

    def __init__(self, error: int = 0) -> None:
        self.told: list[Any] = []
        self.error = type("Error", (int,), {"name": "CUDA_ERROR_NOT_SUPPORTED"})(error)

    def cuMemAdvise(self, pointer: int, count: int, advice: str, location: Any) -> Any:  # noqa: N802
        self.told.append((pointer, count, advice, location.type, location.id))
        return (self.error,)

    def cuMemPrefetchAsync(self, pointer: int, count: int, location: Any, flags: int, stream: int) -> Any:  # noqa: N802
        self.told.append((pointer, count, location.type, location.id, flags, stream))
        return (self.error,)


def test_the_driver_is_told_about_managed_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    monkeypatch.setattr(cuda_module, "driver", lambda: driver)
    card = object.__new__(NumbaCard)
    monkeypatch.setattr(NumbaCard, "_here", lambda self: contextlib.nullcontext())
    card._simulated, card._number, card.name = False, 1, "cuda:1"
    memory = Shared(np.zeros(100, np.uint8), type("Array", (), {"__cuda_array_interface__": {"data": (4096, False)}})())
    for advice in ("", "read-mostly", "preferred-location", "accessed-by"):
        card.advise(memory, advice)
    card.prefetch(memory, 10, 30, 7)
    card.prefetch(memory, 30, 30, 7)
    assert driver.told == [
        (4096, 100, "read", "device", 1), (4096, 100, "preferred", "device", 1), (4096, 100, "accessed", "device", 1),
        (4106, 20, "device", 1, 0, 7),
    ]  # fmt: skip
    driver.error = type(driver.error)(801)
    with pytest.raises(CudaDriverError, match="cuda:1: cuMemAdvise: CUDA_ERROR_NOT_SUPPORTED") as failed:
        card.advise(memory, "read-mostly")
    assert cuda_module.of_driver(failed.value) and not isinstance(failed.value, OSError)
    driver.error = type("Error", (int,), {"name": "CUDA_ERROR_OUT_OF_MEMORY"})(2)
    with pytest.raises(MemoryError, match="cuda:1: cuMemPrefetchAsync: CUDA_ERROR_OUT_OF_MEMORY"):
        card.prefetch(memory, 10, 30, 7)


def test_the_names_of_the_driver_exist() -> None:
    """In the bindings that come with numba-cuda, which can be imported without a driver."""
    bindings = pytest.importorskip("cuda.bindings.driver", reason="needs the packages of the test extra")
    for name in ADVICE.values():
        assert hasattr(bindings.CUmem_advise, name)
    location = bindings.CUmemLocation()
    location.type, location.id = bindings.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, 1
    assert location.id == 1
    assert "CUmemLocation" in bindings.cuMemAdvise.__doc__ and "CUmemLocation" in bindings.cuMemPrefetchAsync.__doc__
    assert int(bindings.CUresult.CUDA_SUCCESS) == 0


def test_memory_that_is_kept_and_its_address(card: Card) -> None:
    managed, near = card.managed(np.arange(5.0)), card.near(4, np.int64)
    for memory in (managed, near):
        assert card.pointer(memory) > 0
    stream = card.stream()
    card.advise(managed, "read-mostly")
    card.prefetch(managed, 0, 40, stream)
    card.finish(card.record(stream))
    card.keep(near)
    card.keep(managed)
    assert managed.host.tolist() == [0, 1, 2, 3, 4]
