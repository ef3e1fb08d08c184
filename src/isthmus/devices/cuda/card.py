"""A GPU as the rest of Isthmus sees it: memory, streams, events, copies and launches, and nothing else.

Work on a stream runs in order; work on two streams does not. A thread of the host waits for its own work in `finish`,
while others submit more. So a thread that reuses memory first waits for the event behind its last use; a card in the
tests delays all work for as long as events allow, and so finds every wait that is missing.

| memory | the host | kernels |
|---|---|---|
| `near` | copies only | fast |
| `pinned` | as any array | no |
| `mapped` | as any array | over the link, by requests of up to 128 bytes (zero-copy) |
| `managed` | as any array, after `finish` | fast; pages migrate where they are used |
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from isthmus.devices.cuda import dlpack
from isthmus.devices.cuda.kernels.skeleton import BLOCK
from isthmus.kernels.compile import cuda_module

Array = Any  # of NumPy, or of the device
BLOCKS_PER_PROCESSOR = 8  # of 256 threads: as many as a multiprocessor of any architecture can hold
SIMULATED_THREADS, SIMULATED_BYTES = 64, 1 << 32  # of a launch, each a thread of Python; and of the device


ADVICE = {  # names of CUmem_advise
    "read-mostly": "CU_MEM_ADVISE_SET_READ_MOSTLY",
    "preferred-location": "CU_MEM_ADVISE_SET_PREFERRED_LOCATION",
    "accessed-by": "CU_MEM_ADVISE_SET_ACCESSED_BY",
}


@dataclass(frozen=True)
class Shared:
    """Memory that host and kernels both use, as each of them sees it."""

    host: Array
    device: Array


class AlreadyLocked(Exception):
    """Memory is page-locked already."""


class CudaDriverError(Exception):
    """The driver reports an error where Isthmus calls it itself. Named as numba-cuda's own, so that `shim.of_driver`
    finds both.
    """


def copied(shared: Shared, array: Array) -> Shared:
    shared.host[:] = array
    return shared


class Card(ABC):
    """A GPU. `threads` is the size of every launch, `gpu` whether kernels are built for a GPU."""

    name: str
    gpu: bool
    repeats: bool  # work runs in an order that does not change from run to run
    in_order = False  # the threads of a launch run one after the other, as on the modelled device's host
    threads: int
    notes: tuple[str, ...] = ()  # for the trace
    dlpack_device: tuple[int, int]  # kind and number of the device, as DLPack calls it

    def begin_thread(self) -> None:  # noqa: B027
        """Call this in a thread of the host before it takes parts of near arrays there. Calls of it again cost
        nothing.
        """

    @abstractmethod
    def near(self, count: int, dtype: Any) -> Array:
        """Memory of the device. Its content is not defined."""

    @abstractmethod
    def pinned(self, count: int, dtype: Any) -> Array:
        """Page-locked memory of the host, from which copies are asynchronous."""

    @abstractmethod
    def mapped_room(self, count: int, dtype: Any) -> Shared:
        """Page-locked memory that kernels read over the link. Its content is not defined."""

    def mapped(self, array: Array) -> Shared:
        """The same with a copy of a host array."""
        return copied(self.mapped_room(array.size, array.dtype), array)

    @abstractmethod
    def register(self, array: Array) -> Shared:
        """The same without a copy: the host's own array is page-locked until it is freed, and kernels see what the host
        writes.

        Raises AlreadyLocked if it is page-locked already.
        """

    @abstractmethod
    def managed_room(self, count: int, dtype: Any) -> Shared:
        """Memory that host and kernels both use. Its content is not defined."""

    def managed(self, array: Array) -> Shared:
        """The same with a copy of a host array."""
        return copied(self.managed_room(array.size, array.dtype), array)

    @abstractmethod
    def free(self, memory: Array | Shared) -> None:
        """Free memory that `near`, `pinned`, `mapped`, `register` or `managed` has returned."""

    @abstractmethod
    def advise(self, memory: Shared, advice: str) -> None:
        """Tell the driver how kernels will use managed memory: one of ADVICE, or an empty text."""

    @abstractmethod
    def prefetch(self, memory: Shared, begin: int, end: int, stream: Any) -> None:
        """Bring bytes begin:end of managed memory near before kernels ask for them."""

    @abstractmethod
    def keep(self, memory: Array | Shared) -> None:
        """Let memory outlive the run that took it: it is freed when the last reference to it goes. No work may still
        use it.
        """

    @abstractmethod
    def pointer(self, memory: Array | Shared) -> int:
        """The address of memory, as kernels use it."""

    @abstractmethod
    def stream(self) -> Any: ...

    @abstractmethod
    def copy(self, near: Array, host: Array, stream: Any) -> None:
        """Copy a host array to near memory of its size, asynchronously if it is page-locked."""

    @abstractmethod
    def copy_back(self, host: Array, near: Array, stream: Any) -> None:
        """The other way round. The host's memory holds the copy after `finish`."""

    @abstractmethod
    def launch(self, kernel: Any, stream: Any, *arguments: Any) -> None: ...

    @abstractmethod
    def scan(self, values: Array, stream: Any) -> None:
        """Replace values in near memory by their prefix sums, each with its own value in it."""

    @abstractmethod
    def record(self, stream: Any) -> Any:
        """An event behind all work that the stream has so far."""

    @abstractmethod
    def finish(self, event: Any) -> None:
        """Let the host wait for an event."""

    @abstractmethod
    def drain(self, stream: Any) -> None:
        """Let the host wait for all work that the stream has so far. This takes no memory, as an event would."""

    @abstractmethod
    def free_bytes(self) -> int:
        """Memory of the device that nobody uses."""


@contextmanager
def memory_errors() -> Iterator[None]:
    """Raise MemoryError for an error of the driver, whose class is numba-cuda's own, that says that memory is full.

    And AlreadyLocked for one that says so.
    """
    try:
        yield
    except Exception as error:
        if "OUT_OF_MEMORY" in str(error):
            raise MemoryError(str(error)) from error
        if "HOST_MEMORY_ALREADY_REGISTERED" in str(error):
            raise AlreadyLocked(str(error)) from error
        raise


class NumbaCard(Card):
    """A GPU through numba-cuda, or its simulator. Every thread of the host may use it."""

    gpu = True

    def __init__(self, number: int) -> None:
        self._number, self._cuda = number, cuda_module.cuda()
        self._begun = threading.local()  # what each thread of the host knows
        self._registered: dict[int, Any] = {}  # arrays of the host, by id; the caller that registers one holds it
        self.repeats = self._simulated = cuda_module.simulated()
        self.name = f"cuda:{number}"
        self.dlpack_device = (dlpack.CPU, 0) if self._simulated else (dlpack.CUDA, number)
        self.notes = (
            ("kernels ran in numba-cuda's simulator: measured seconds mean nothing",) if self._simulated else ()
        )
        self.threads = (
            SIMULATED_THREADS if self._simulated else self._device.MULTIPROCESSOR_COUNT * BLOCKS_PER_PROCESSOR * BLOCK
        )

    @property
    def _device(self) -> Any:
        return self._cuda.gpus[self._number]

    def _here(self) -> AbstractContextManager[Any]:
        """The device as the current one of this thread."""
        self.begin_thread()
        return self._device  # type: ignore[no-any-return]

    def begin_thread(self) -> None:
        """Let the device be, and stay, the current one of a thread that has none.

        numba-cuda takes a part of an array only where a device is current; in a thread without one it makes GPU 0 the
        current one, takes memory of that GPU for it, and leaves it so (`require_context`).
        """
        if not hasattr(self._begun, "here"):
            if self._cuda.gpus.current is None:
                self._device.__enter__()
            self._begun.here = True

    def near(self, count: int, dtype: Any) -> Array:
        return self._made(self._cuda.device_array, count, dtype)

    def pinned(self, count: int, dtype: Any) -> Array:
        return self._made(self._cuda.pinned_array, count, dtype)

    def mapped_room(self, count: int, dtype: Any) -> Shared:
        return self._shared(self._cuda.mapped_array, count, np.dtype(dtype))

    def register(self, array: Array) -> Shared:
        if self._simulated or not array.size:  # the driver registers no empty array
            return Shared(array, array) if self._simulated else self.mapped(array)
        with memory_errors(), self._here():
            registration = self._cuda.mapped(array)
            device = registration.__enter__()
        self._registered[id(array)] = registration
        return Shared(array, device)

    def _made(self, make: Any, count: int, dtype: Any) -> Array:
        """An array, or MemoryError. The driver refuses to make an empty one."""
        with memory_errors(), self._here():
            made = make(max(1, count), dtype)
        return made if count else made[:0]

    def managed_room(self, count: int, dtype: Any) -> Shared:
        if self._simulated:  # it has no managed memory: all memory is the host's
            memory = np.empty(count, dtype)
            return Shared(memory, memory)
        return self._shared(self._cuda.managed_array, count, np.dtype(dtype))

    def _shared(self, make: Any, count: int, dtype: Any) -> Shared:
        """Room for an array; for an empty one, 8 bytes, which can be viewed as any type.

        The host's view is a plain array, which the processor's kernels take as well. A mapped or managed array of
        numba-cuda has no views of other types; the device array that wraps it does, and owns it.
        """
        made = self._made(make, count or -(-8 // dtype.itemsize), dtype)
        host = np.asarray(made)[:count]
        if self._simulated:
            return Shared(host, made)
        with self._here():
            return Shared(host, self._cuda.as_cuda_array(made))

    def free(self, memory: Array | Shared) -> None:
        """Numba frees memory when the last reference to it goes; registrations end here."""
        registration = self._registered.pop(id(memory.host), None) if isinstance(memory, Shared) else None
        if registration is not None:
            with self._here():
                registration.__exit__(None, None, None)

    def advise(self, memory: Shared, advice: str) -> None:
        if not self._simulated and advice:
            driver = cuda_module.driver()
            self._told(
                driver.cuMemAdvise,
                memory,
                0,
                memory.host.nbytes,
                getattr(driver.CUmem_advise, ADVICE[advice]),
                self._location(),
            )

    def prefetch(self, memory: Shared, begin: int, end: int, stream: Any) -> None:
        if not self._simulated:
            self._told(cuda_module.driver().cuMemPrefetchAsync, memory, begin, end, self._location(), 0, int(stream))

    def _told(self, call: Any, memory: Shared, begin: int, end: int, *more: Any) -> None:
        """Call a function of the driver about bytes begin:end of managed memory."""
        if begin < end:
            with memory_errors(), self._here():
                (error,) = call(self.pointer(memory) + begin, end - begin, *more)
                if int(error):
                    raise CudaDriverError(f"{self.name}: {call.__name__}: {error.name}")

    def _location(self) -> Any:
        driver = cuda_module.driver()
        location = driver.CUmemLocation()
        location.type, location.id = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, self._number
        return location

    def keep(self, memory: Array | Shared) -> None:
        """So memory is freed anyway."""

    def pointer(self, memory: Array | Shared) -> int:
        array = memory.device if isinstance(memory, Shared) else memory
        if self._simulated:
            host: Any = getattr(array, "_ary", array)  # an array of the simulator wraps one of NumPy
            return int(host.ctypes.data)
        return int(array.__cuda_array_interface__["data"][0])

    def stream(self) -> Any:
        with memory_errors(), self._here():
            return self._cuda.stream()

    def copy(self, near: Array, host: Array, stream: Any) -> None:
        if host.size:  # numba-cuda takes the strides of empty arrays for a difference
            with self._here():
                near.copy_to_device(host, stream=stream)

    def copy_back(self, host: Array, near: Array, stream: Any) -> None:
        if host.size:
            with self._here():
                near.copy_to_host(host, stream=stream)

    def launch(self, kernel: Any, stream: Any, *arguments: Any) -> None:
        threads = min(BLOCK, self.threads)
        with memory_errors(), self._here():  # the first launch of a kernel loads its code
            kernel[self.threads // threads, threads, stream](*arguments)

    def scan(self, values: Array, stream: Any) -> None:
        if self._simulated:
            values.copy_to_device(np.cumsum(values.copy_to_host()))
            return
        compute, zero = cuda_module.compute(), np.zeros(1, values.dtype)
        with memory_errors(), self._here():  # it takes memory for sums of parts
            compute.inclusive_scan(
                d_in=values, d_out=values, op=compute.OpKind.PLUS, init_value=zero, num_items=values.size, stream=stream
            )

    def record(self, stream: Any) -> Any:
        with memory_errors(), self._here():
            event = self._cuda.event(timing=False) if not self._simulated else self._cuda.event()
            event.record(stream)
        return event

    def finish(self, event: Any) -> None:
        with self._here():
            event.synchronize()

    def drain(self, stream: Any) -> None:
        with self._here():
            stream.synchronize()

    def free_bytes(self) -> int:
        if self._simulated:
            return SIMULATED_BYTES
        with self._here():
            context = self._cuda.current_context()
            context.deallocations.clear()  # numba-cuda frees memory later, several arrays at once
            return int(context.get_memory_info().free)
