"""The modelled clock: host cores, a link and a device work in parallel, each on one thing at a time.

A job has up to three steps: the host packs its lists if needed, its bytes cross the link into a near buffer, then a
kernel processes them. Each step waits for the one before. A transfer also waits for a free buffer (and, where streams
are limited, for a free stream); a kernel frees its buffer when it ends. A free resource takes the earliest submitted
job that can use it. A streamed job has no buffer: its kernel fetches the bytes itself (zero-copy, mapped pages), so it
starts with its transfer and ends when both are done. A kernel that faults fetches its pages itself, too, but does not
go on meanwhile: a fault blocks the translations of its multiprocessor until it is resolved (Grus, Wang et al., TACO
2021, section 2), so its job is not streamed.

`now` is the time of the device. The caller submits jobs, asks which one is `ready`, and says what the device does:
`run` a job, run another kernel on near data, or `wait` for the next job. So a schedule can look at `pending` transfers
before it decides (Scaph reruns partitions only while transfers are pending). The same calls in the same order give
exactly the same times.

    clock = Clock(buffers=4, cores=10)
    for task in tasks:
        clock.submit(host=..., link=..., device=...)
    timeline = clock.finish()

Simplifications: both directions share the link; kernels of several streams run one after the other; a kernel that
waits for the link does not block the device.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Any

HOST, LINK, DEVICE = "host", "link", "device"
NEVER = float("inf")


@dataclass(eq=False)
class Job:
    """A task to pack, transfer and run. Times are modelled instants; NEVER if not known yet."""

    number: int
    link: float  # seconds of transfer
    device: float  # seconds of its kernel, unless `run` is told otherwise
    buffered: bool
    streamed: bool
    what: Any
    submitted: float
    packed: float  # when the host had packed it
    near: float = NEVER  # when its kernel may start
    moved: float = NEVER  # when its last byte has crossed the link
    done: float = NEVER


@dataclass(frozen=True)
class Span:
    """An interval in which a resource is busy."""

    resource: str
    start: float
    end: float
    job: int | None = None  # its number
    cores: int = 1  # of the host


@dataclass
class Timeline:
    """One stretch of modelled time, such as an iteration."""

    start: float
    end: float = 0.0
    cores: int = 1
    spans: list[Span] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return self.end - self.start

    def busy(self, resource: str) -> float:
        """Seconds that a resource was busy; for the host, the mean over its cores."""
        seconds = sum((span.end - span.start) * span.cores for span in self.spans if span.resource == resource)
        return seconds / self.cores if resource == HOST else seconds

    def pending(self, at: float) -> int:
        """Transfers submitted but not finished at an instant."""
        return sum(job.submitted <= at < job.moved for job in self.jobs)


class Clock:
    """Modelled time. At most `buffers` transfers are near or under way at once, and at most `streams` jobs if given."""

    def __init__(self, buffers: int = 4, cores: int = 1, streams: int | None = None) -> None:
        self.now = 0.0  # of the device: when its last kernel ended
        self._cores = [0.0] * cores  # when each becomes free
        self._link = 0.0
        self._buffers = [0.0] * buffers
        self._streams = None if streams is None else [0.0] * streams
        self._queue: list[Job] = []  # not yet on the link
        self._coming: list[Job] = []  # on the link or near, not yet run; the earlier arrival first
        self._last = 0.0  # when everything started so far has ended
        self._line = Timeline(0.0, cores=cores)

    def submit(
        self,
        host: float = 0.0,
        link: float = 0.0,
        device: float = 0.0,
        *,
        cores: int | None = None,
        streamed: bool = False,
        buffered: bool | None = None,
        what: Any = None,
    ) -> Job:
        """Submit a job now. Packing uses all host cores unless told otherwise; `what` is for the caller.

        A streamed job has no buffer and other jobs have one, unless `buffered` says otherwise.
        """
        packed = self._pack(host, cores or len(self._cores)) if host else self.now
        buffered = not streamed if buffered is None else buffered
        job = Job(len(self._line.jobs), link, device, buffered, streamed, what, self.now, packed)
        self._line.jobs.append(job)
        self._queue.append(job)
        return job

    @property
    def pending(self) -> int:
        """Transfers that have not finished now."""
        self._advance(self.now)
        return len(self._queue) + sum(job.moved > self.now for job in self._line.jobs if job.moved < NEVER)

    def ready(self) -> Job | None:
        """The job whose kernel can start now; of several, the one that arrived first."""
        self._advance(self.now)
        return self._coming[0] if self._coming and self._coming[0].near <= self.now else None

    def wait(self) -> Job:
        """Let the device idle until a job is ready."""
        while not self._coming:
            start, job = self._next()
            if job is None:
                raise RuntimeError(
                    f"the modelled clock cannot advance: {len(self._queue)} transfers wait and no buffer will be freed"
                )
            self._start(job, start)
        self.now = max(self.now, self._coming[0].near)
        self._advance(self.now)
        return self._coming[0]

    def run(self, job: Job | None = None, seconds: float | None = None, keep: bool = False) -> None:
        """Run a kernel on the device: of a job that is ready, or on near data.

        The job's buffer is freed when its kernel ends; with `keep`, `release` frees it.
        """
        if job is not None and (job not in self._coming or job.near > self.now):
            raise ValueError(f"job {job.number} is not ready at {self.now}")
        end = self.now + (seconds if seconds is not None else job.device if job else 0.0)
        self._advance(end)
        self._note(DEVICE, self.now, end, job)
        self.now = end
        if job is not None:
            self._coming.remove(job)
            job.done = max(end, job.moved)
            self._last = max(self._last, job.done)
            if self._streams is not None:
                heapq.heappush(self._streams, job.done)
            if not keep:
                self.release(job)

    def release(self, job: Job) -> None:
        """Free a kept buffer."""
        if job.buffered:
            heapq.heappush(self._buffers, max(self.now, job.done))
            job.buffered = False

    def alone(self, resource: str, seconds: float) -> None:
        """Work that overlaps with nothing: it waits for everything before it, and everything after waits for it."""
        self._drain()
        start, end = self._last, self._last + seconds
        self._note(resource, start, end, None, len(self._cores) if resource == HOST else 1)
        self._make_free(end)

    def finish(self) -> Timeline:
        """Run the remaining jobs in order of arrival, wait for everything, and start a new timeline; returns the old
        one.
        """
        self._drain()
        self._make_free(self._last)
        line, self._line = self._line, Timeline(self.now, cores=len(self._cores))
        line.end = self.now
        return line

    def _drain(self) -> None:
        while self._queue or self._coming:
            self.run(self.ready() or self.wait())
        self._last = max(self._last, self.now)

    def _make_free(self, at: float) -> None:
        """Make every resource free from an instant on."""
        self.now = self._link = self._last = at
        self._cores = [at] * len(self._cores)

    def _pack(self, seconds: float, cores: int) -> float:
        """Let some cores pack; returns when they finish."""
        if cores > len(self._cores):
            raise ValueError(f"the host has {len(self._cores)} cores, and {cores} were asked for")
        self._cores.sort()
        start = max(self.now, self._cores[cores - 1])
        end = start + seconds
        self._cores[:cores] = [end] * cores
        self._line.spans.append(Span(HOST, start, end, len(self._line.jobs), cores))
        self._last = max(self._last, end)
        return end

    def _next(self) -> tuple[float, Job | None]:
        """The start and job of the next transfer; none can start while every buffer or stream is in use."""
        stream = 0.0 if self._streams is None else self._streams[0] if self._streams else NEVER
        buffer = self._buffers[0] if self._buffers else NEVER
        best, chosen = NEVER, None
        for job in self._queue:
            start = max(self._link, job.packed, stream, buffer if job.buffered else 0.0)
            if start < best:
                best, chosen = start, job
        return best, chosen

    def _start(self, job: Job, start: float) -> None:
        self._queue.remove(job)
        self._link = job.moved = start + job.link
        job.near = start if job.streamed else job.moved
        if job.buffered:
            heapq.heappop(self._buffers)
        if self._streams is not None:
            heapq.heappop(self._streams)
        self._note(LINK, start, job.moved, job)
        self._coming.append(job)

    def _advance(self, until: float) -> None:
        """Start every transfer that can start by an instant."""
        while self._queue:
            start, job = self._next()
            if job is None or start > until:
                return
            self._start(job, start)

    def _note(self, resource: str, start: float, end: float, job: Job | None, cores: int = 1) -> None:
        if end > start:
            self._line.spans.append(Span(resource, start, end, job.number if job else None, cores))
            self._last = max(self._last, end)
