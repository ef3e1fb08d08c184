"""The modelled clock: host cores, a link and a device, each busy with one thing at a time, all three at once.

A job is a task on its way: the host may have to pack its lists, its bytes cross the link into a near buffer, then a
kernel works on them. What is next in a job waits for what is before; a transfer also waits for a buffer (and, where
streams are limited, for a stream), which the kernel before gives back. A resource that becomes free takes the job
that was submitted first among those that can use it. A streamed job has no buffer: its kernel fetches the bytes itself
(zero-copy, managed pages), so it starts with its transfer and is done when both are.

Time is that of the device. Whoever drives the clock submits jobs, asks which one is `ready`, and says what the device does:
`run` a job, run another kernel on what is near already, or `wait` for the next job. So a schedule can look at
`pending` transfers before it decides (Scaph runs partitions again only while some are). All is exact arithmetic in
the order of the calls: the same calls give the same times.

    clock = Clock(buffers=4, cores=10)
    for task in tasks:
        clock.submit(host=..., link=..., device=...)
    timeline = clock.finish()

Left out: the two directions of the link share it; kernels of several streams run one after the other; a kernel that
waits for the link does not keep others from the device.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Any

HOST, LINK, DEVICE = "host", "link", "device"
NEVER = float("inf")


@dataclass(eq=False)
class Job:
    """A task on its way to the device. Times are modelled instants; NEVER while they are not known."""

    number: int
    link: float  # seconds of transfer
    device: float  # seconds of its kernel, unless `run` is told otherwise
    buffered: bool
    streamed: bool
    what: Any
    submitted: float
    packed: float  # when the host was done with it
    near: float = NEVER  # when its kernel may start
    moved: float = NEVER  # when its last byte has crossed the link
    done: float = NEVER


@dataclass(frozen=True)
class Span:
    """A resource at work."""

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
        """Seconds that a resource was at work; of the host, the mean over its cores."""
        seconds = sum((span.end - span.start) * span.cores for span in self.spans if span.resource == resource)
        return seconds / self.cores if resource == HOST else seconds

    def pending(self, at: float) -> int:
        """Transfers that had been asked for and were not over at an instant."""
        return sum(job.submitted <= at < job.moved for job in self.jobs)


class Clock:
    """Modelled time. `buffers` transfers can be near or on their way at once; `streams` jobs, where that is limited."""

    def __init__(self, buffers: int = 4, cores: int = 1, streams: int | None = None) -> None:
        self.now = 0.0  # of the device: what it was last told to do is over
        self._cores = [0.0] * cores  # from when on each is free
        self._link = 0.0
        self._buffers = [0.0] * buffers
        self._streams = None if streams is None else [0.0] * streams
        self._queue: list[Job] = []  # not yet on the link
        self._coming: list[Job] = []  # on the link or near, not yet run; the earlier arrival first
        self._last = 0.0  # when the last thing begun so far is over
        self._line = Timeline(0.0, cores=cores)

    def submit(
        self, host: float = 0.0, link: float = 0.0, device: float = 0.0, *,
        cores: int | None = None, streamed: bool = False, buffered: bool | None = None, what: Any = None,
    ) -> Job:  # fmt: skip
        """A job that starts now. The host part takes all cores unless told otherwise; `what` is for the caller.

        A streamed job has no buffer, others do, unless `buffered` says so.
        """
        packed = self._pack(host, cores or len(self._cores)) if host else self.now
        buffered = not streamed if buffered is None else buffered
        job = Job(len(self._line.jobs), link, device, buffered, streamed, what, self.now, packed)
        self._line.jobs.append(job)
        self._queue.append(job)
        return job

    @property
    def pending(self) -> int:
        """Transfers that are not over now."""
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
                raise RuntimeError(f"the modelled clock stands still: {len(self._queue)} transfers, and no buffer that is given back")
            self._start(job, start)
        self.now = max(self.now, self._coming[0].near)
        self._advance(self.now)
        return self._coming[0]

    def run(self, job: Job | None = None, seconds: float | None = None, keep: bool = False) -> None:
        """The device works: on a job that is ready, or on what is near already.

        The job's buffer is free when its kernel is done, unless it is kept: then `release` gives it back.
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
        """Give a kept buffer back."""
        if job.buffered:
            heapq.heappush(self._buffers, max(self.now, job.done))
            job.buffered = False

    def alone(self, resource: str, seconds: float) -> None:
        """Something that nothing overlaps with: it waits for all that was begun, and all that follows waits for it."""
        self._drain()
        start, end = self._last, self._last + seconds
        self._note(resource, start, end, None, len(self._cores) if resource == HOST else 1)
        self._settle(end)

    def finish(self) -> Timeline:
        """Run what is left, in the order it arrives, and wait for everything; what follows is another timeline."""
        self._drain()
        self._settle(self._last)
        line, self._line = self._line, Timeline(self.now, cores=len(self._cores))
        line.end = self.now
        return line

    def _drain(self) -> None:
        while self._queue or self._coming:
            self.run(self.ready() or self.wait())
        self._last = max(self._last, self.now)

    def _settle(self, at: float) -> None:
        """Every resource is free from an instant on."""
        self.now = self._link = self._last = at
        self._cores = [at] * len(self._cores)

    def _pack(self, seconds: float, cores: int) -> float:
        """Give some cores work; returns when it is over."""
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
        """When a transfer starts next, and which; none can while every buffer or stream is held."""
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
        """Start every transfer that can start by then."""
        while self._queue:
            start, job = self._next()
            if job is None or start > until:
                return
            self._start(job, start)

    def _note(self, resource: str, start: float, end: float, job: Job | None, cores: int = 1) -> None:
        if end > start:
            self._line.spans.append(Span(resource, start, end, job.number if job else None, cores))
            self._last = max(self._last, end)
