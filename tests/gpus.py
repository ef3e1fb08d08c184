"""A card for tests that is as lazy as streams and events allow, and keeps a record.

Work waits on its stream until the host waits for an event behind it; only then is it done, with all before it, and
nothing else. So code that forgets to wait reads old values, or memory that holds rubbish. Beyond that the card refuses

- work on memory that work still waiting on another stream uses, unless both only read it: no event orders the two;
- to free memory twice, or memory that waiting work uses.

Kernels run on the processor, thread by thread (`devices/cuda/kernels/head.py`).
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from isthmus.devices.cuda.card import AlreadyLocked, Array, Card, Shared

RUBBISH = 0xCD


@dataclass
class Work:
    """Something on a stream: what it is, how many bytes it copies, the memory that it reads and writes, and how to do
    it.
    """

    kind: str
    stream: int
    name: str
    bytes: int
    reads: list[Array]
    writes: list[Array]
    do: Callable[[], None]
    arguments: tuple[Any, ...] = ()


@dataclass
class Event:
    stream: int
    place: int  # how much work the stream had


@dataclass
class LazyCard(Card):
    """A card without a GPU. `fails_at`: how many allocations succeed before memory is full."""

    name: str = "cuda:0"
    gpu: bool = False
    repeats: bool = True
    in_order: bool = True
    threads: int = 512
    fails_at: int | None = None
    bytes: int = 1 << 30
    record_of: list[Work] = field(default_factory=list, repr=False)  # all work, in order of submission
    done: list[Work] = field(default_factory=list, repr=False)  # in order of completion
    held: dict[int, Array] = field(default_factory=dict, repr=False)
    far: set[int] = field(default_factory=set, repr=False)  # of these, what kernels only read
    # What outlives its run.
    kept: weakref.WeakValueDictionary[int, Array] = field(default_factory=weakref.WeakValueDictionary)
    advice: list[tuple[int, str]] = field(default_factory=list)  # bytes of managed memory, and what the driver was told
    dlpack_device: tuple[int, int] = (1, 0)  # its memory is the host's
    taken: int = 0

    def __post_init__(self) -> None:
        self._streams: list[list[Work]] = []
        self._finished: list[int] = []
        self._lock = threading.RLock()

    def _take(self, array: Array) -> Array:
        with self._lock:
            if self.fails_at is not None and self.taken >= self.fails_at:
                raise MemoryError("the card is full")
            self.taken += 1
            self.held[id(array)] = array
        return array

    def _room(self, count: int, dtype: Any) -> Array:
        made = np.empty(count, dtype)
        made.view(np.uint8)[:] = RUBBISH
        return self._take(made)

    def near(self, count: int, dtype: Any) -> Array:
        return self._room(count, dtype)

    def pinned(self, count: int, dtype: Any) -> Array:
        return self._room(count, dtype)

    def mapped_room(self, count: int, dtype: Any) -> Shared:
        made = self._room(count, dtype)
        self.far.add(id(made))
        return Shared(made, made[:])

    def register(self, array: Array) -> Shared:
        if any(np.may_share_memory(array, other) for other in self.held.values()):
            raise AlreadyLocked("registered twice")
        shared = Shared(self._take(array), array[:])
        self.far.add(id(array))
        return shared

    def managed_room(self, count: int, dtype: Any) -> Shared:
        made = self._room(count, dtype)
        return Shared(made, made[:])

    def advise(self, memory: Shared, advice: str) -> None:
        assert not memory.host.size or any(np.may_share_memory(memory.host, held) for held in self.held.values())
        self.advice.append((memory.host.nbytes, advice))

    def prefetch(self, memory: Shared, begin: int, end: int, stream: int) -> None:
        assert 0 <= begin <= end <= memory.host.nbytes
        self._submit(Work("prefetch", stream, "prefetch", end - begin, [memory.host], [], lambda: None))

    def free(self, memory: Array | Shared) -> None:
        array = memory.host if isinstance(memory, Shared) else memory
        with self._lock:
            assert id(array) in self.held, "freed twice, or never allocated"
            for waiting in self._waiting():
                assert not any(np.may_share_memory(array, used) for used in waiting.reads + waiting.writes), (
                    f"freed under {waiting.name}"
                )
            del self.held[id(array)]
            self.far.discard(id(array))

    def keep(self, memory: Array | Shared) -> None:
        array = memory.host if isinstance(memory, Shared) else memory
        self.free(memory)
        self.kept[id(array)] = array

    def pointer(self, memory: Array | Shared) -> int:
        return int((memory.device if isinstance(memory, Shared) else memory).ctypes.data)

    def stream(self) -> int:
        with self._lock:
            self._streams.append([])
            self._finished.append(0)
            return len(self._streams) - 1

    def copy(self, near: Array, host: Array, stream: int) -> None:
        assert near.nbytes == host.nbytes and near.dtype == host.dtype
        self._submit(Work("copy", stream, "copy", near.nbytes, [host], [near], lambda: np.copyto(near, host)))

    def copy_back(self, host: Array, near: Array, stream: int) -> None:
        assert near.nbytes == host.nbytes and near.dtype == host.dtype
        self._submit(Work("copy_back", stream, "copy_back", near.nbytes, [near], [host], lambda: np.copyto(host, near)))

    def launch(self, kernel: Any, stream: int, *arguments: Any) -> None:
        used = [each for each in flat(arguments) if isinstance(each, np.ndarray)]
        with self._lock:
            far = [self.held[each] for each in self.far]
        reads, writes = [], []
        for each in used:
            (reads if any(np.may_share_memory(each, only_read) for only_read in far) else writes).append(each)
        self._submit(
            Work(
                "launch", stream, kernel.__name__, 0, reads, writes, lambda: kernel(self.threads, *arguments), arguments
            )
        )

    def scan(self, values: Array, stream: int) -> None:
        self._submit(Work("scan", stream, "scan", 0, [], [values], lambda: np.copyto(values, np.cumsum(values))))

    def record(self, stream: int) -> Event:
        with self._lock:
            return Event(stream, len(self._streams[stream]))

    def finish(self, event: Event) -> None:
        with self._lock:
            while self._finished[event.stream] < event.place:
                work = self._streams[event.stream][self._finished[event.stream]]
                self._finished[event.stream] += 1
                self._check(work)
                work.do()
                self.done.append(work)

    def drain(self, stream: int) -> None:
        with self._lock:
            event = Event(stream, len(self._streams[stream]))
        self.finish(event)

    def free_bytes(self) -> int:
        return self.bytes

    def forget(self) -> None:
        """Forget the work that is done, and so the memory that it used."""
        with self._lock:
            self._streams = [stream[begin:] for stream, begin in zip(self._streams, self._finished, strict=True)]
            self._finished = [0] * len(self._streams)
            self.record_of.clear()
            self.done.clear()

    def _submit(self, work: Work) -> None:
        with self._lock:
            self._streams[work.stream].append(work)
            self.record_of.append(work)

    def uses(self, memory: Array) -> bool:
        """Whether waiting work uses memory."""
        with self._lock:
            return any(
                np.may_share_memory(memory, used) for work in self._waiting() for used in work.reads + work.writes
            )

    def _waiting(self) -> list[Work]:
        return [work for stream, begin in zip(self._streams, self._finished, strict=True) for work in stream[begin:]]

    def _check(self, work: Work) -> None:
        for other in self._waiting():
            if other.stream == work.stream:
                continue
            clash = [(a, b) for a in work.writes for b in other.reads + other.writes] + [
                (a, b) for a in work.reads for b in other.writes
            ]
            for mine, theirs in clash:
                assert not np.shares_memory(mine, theirs), (
                    f"{work.name} and {other.name} use the same memory, and no event orders them"
                )


def flat(arguments: Any) -> list[Any]:
    return [each for one in arguments for each in (flat(one) if isinstance(one, tuple) else [one])]


@dataclass
class FailingCard(LazyCard):
    """A card on which a kernel fails: after some waits, none succeeds, and work is lost. The host's memory can still be
    let go.
    """

    waits: int = 0  # those that succeed

    def finish(self, event: Event) -> None:
        with self._lock:
            self.waits -= 1
            if self.waits < 0:
                self._finished = [len(stream) for stream in self._streams]
                raise OSError("the card has failed")
        super().finish(event)


class Near(np.ndarray[Any, Any]):
    """Near memory of which a thread takes parts only after it has begun with the card."""

    begun = threading.local()

    def __getitem__(self, key: Any) -> Any:
        assert getattr(self.begun, "here", False), "a thread took a part of near memory before it began"
        return super().__getitem__(key)


@dataclass
class StrictCard(LazyCard):
    """A card that finds threads which do not begin (`Card.begin_thread`)."""

    def begin_thread(self) -> None:
        Near.begun.here = True

    def near(self, count: int, dtype: Any) -> Array:
        self.begin_thread()
        made = super().near(count, dtype)
        del self.held[id(made)]
        near = made.view(Near)
        self.held[id(near)] = near
        return near

    def launch(self, kernel: Any, stream: int, *arguments: Any) -> None:
        self.begin_thread()
        super().launch(kernel, stream, *plain(arguments))


def plain(arguments: Any) -> Any:
    """Arguments as kernels take them: with NumPy's own arrays."""
    if isinstance(arguments, tuple):
        return tuple(plain(each) for each in arguments)
    return arguments.view(np.ndarray) if isinstance(arguments, Near) else arguments


@dataclass
class TimedCard(LazyCard):
    """A card whose work takes made-up seconds, told by its own clock."""

    now: float = 0.0
    copy_rates: tuple[float, float] = (1e9, 2e9)  # bytes per second, to the card and back
    latencies: tuple[float, float, float] = (2e-6, 3e-6, 7e-6)  # seconds of a copy, of one back, of a launch
    read_rates: tuple[float, ...] = (1e8, 2e8, 3e8, 4e8)  # bytes per second, by sectors of a request
    edge_rate: float = 5e7
    fill_rate: float = 8e9
    fault_seconds: float = 3e-5

    def clock(self) -> float:
        return self.now

    def finish(self, event: Event) -> None:
        with self._lock:
            before = len(self.done)
            super().finish(event)
            self.now += sum(self.seconds_of(work) for work in self.done[before:])

    def seconds_of(self, work: Work) -> float:
        if work.kind != "launch":
            back = work.kind == "copy_back"
            return self.latencies[back] + work.bytes / self.copy_rates[back]
        if work.name == "read_lines":
            _, lines, entries, *_ = work.arguments
            return self.latencies[2] + lines * entries * 4 / self.read_rates[entries // 8 - 1]
        if work.name == "chase":
            return self.latencies[2] + work.arguments[1] * self.fault_seconds
        if work.name == "push":
            return self.latencies[2] + work.arguments[5].sum() / self.edge_rate
        return self.latencies[2] + work.arguments[0].nbytes / self.fill_rate
