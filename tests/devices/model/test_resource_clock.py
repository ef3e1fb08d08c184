"""The modelled clock: worked by hand, then properties of any schedule."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.devices.model.resource_clock import DEVICE, HOST, LINK, Clock, Job, Timeline


def played(*jobs: dict[str, float], buffers: int = 4, cores: int = 1, streams: int | None = None) -> Timeline:
    clock = Clock(buffers, cores, streams)
    for job in jobs:
        clock.submit(**job)  # type: ignore[arg-type]
    return clock.finish()


def busy(line: Timeline) -> list[float]:
    return [line.busy(resource) for resource in (HOST, LINK, DEVICE)]


def test_one_job_is_a_chain() -> None:
    line = played({"host": 1, "link": 2, "device": 3})
    assert line.seconds == 6
    assert [(span.resource, span.start, span.end) for span in line.spans] == [
        (HOST, 0, 1),
        (LINK, 1, 3),
        (DEVICE, 3, 6),
    ]


def test_jobs_overlap() -> None:
    """Three alike: the link is never idle but at the end, the device works on the job before."""
    line = played(*[{"link": 2, "device": 2}] * 3)
    assert line.seconds == 8
    assert busy(line) == [0, 6, 6]


def test_the_slowest_resource_decides() -> None:
    assert played(*[{"host": 1, "link": 5, "device": 1}] * 4).seconds == 1 + 4 * 5 + 1
    assert played(*[{"host": 5, "link": 1, "device": 1}] * 4).seconds == 4 * 5 + 1 + 1
    assert played(*[{"host": 1, "link": 1, "device": 5}] * 4).seconds == 1 + 1 + 4 * 5


def test_one_buffer_means_no_overlap() -> None:
    jobs = [{"link": 2.0, "device": 3.0}] * 3
    assert played(*jobs, buffers=1).seconds == 15
    assert played(*jobs, buffers=2).seconds == 2 + 3 * 3
    assert played(*jobs, buffers=3).seconds == 11, "two were enough"


def test_a_transfer_waits_for_the_kernel_that_frees_its_buffer() -> None:
    line = played({"link": 1, "device": 10}, {"link": 1, "device": 1}, {"link": 1, "device": 1}, buffers=2)
    third = [span for span in line.spans if span.resource == LINK][2]
    assert (third.start, line.seconds) == (11, 13)


def test_what_is_ready_goes_first() -> None:
    """HyTGraph: filter and zero-copy tasks cross the link while the host still packs."""
    line = played({"host": 5, "link": 1, "device": 1}, {"link": 3, "device": 1}, {"link": 1, "device": 1})
    assert [span.job for span in line.spans if span.resource == LINK] == [1, 2, 0]
    assert line.seconds == 7


def test_cores_pack_side_by_side() -> None:
    clock = Clock(cores=2)
    for _ in range(4):
        clock.submit(host=3, link=1, cores=1)
    line = clock.finish()
    assert line.seconds == 3 + 3 + 1 + 1
    assert line.busy(HOST) == 6, "the mean of both cores"
    assert played(*[{"host": 3, "link": 1}] * 4, cores=2).seconds == 13, "all cores, one job after the other"
    with pytest.raises(ValueError, match="the host has 2 cores, and 3 were asked for"):
        clock.submit(host=1, cores=3)


def test_a_streamed_job_works_while_its_bytes_come() -> None:
    assert played({"link": 4, "device": 3, "streamed": True}).seconds == 4
    assert played({"link": 3, "device": 4, "streamed": True}).seconds == 4
    assert played({"link": 4, "device": 3}).seconds == 7


def test_a_streamed_job_needs_no_buffer() -> None:
    clock = Clock(buffers=1)
    kept = clock.submit(link=1, device=1)
    clock.submit(link=2, device=2, streamed=True)
    clock.run(clock.wait(), keep=True)
    assert clock.finish().seconds == 4, "its bytes came while the first kernel ran"
    clock.release(kept)


def test_streams() -> None:
    jobs = [{"link": 1.0, "device": 1.0, "streamed": True}] * 3
    assert played(*jobs, streams=1).seconds == 3
    assert played(*[{"link": 1.0, "device": 1.0}] * 3, streams=1).seconds == 6
    assert played(*[{"link": 1.0, "device": 1.0}] * 3, streams=2).seconds == 4


def test_nothing_overlaps_with_what_is_done_alone() -> None:
    clock = Clock()
    clock.alone(DEVICE, 1)
    clock.alone(LINK, 2)
    clock.submit(link=1, device=1)
    clock.alone(LINK, 5)
    line = clock.finish()
    assert line.seconds == 10
    assert busy(line) == [0, 8, 2]


def test_iterations_follow_each_other() -> None:
    clock = Clock()
    clock.submit(link=1, device=1)
    first = clock.finish()
    clock.submit(link=2, device=1)
    second = clock.finish()
    assert (first.start, first.end, second.start, second.end) == (0, 2, 2, 5)
    assert busy(second) == [0, 2, 1]


def test_an_empty_iteration() -> None:
    clock = Clock()
    assert clock.finish().seconds == 0
    with pytest.raises(RuntimeError, match="cannot advance: 0 transfers"):
        clock.wait()


def test_pending_transfers() -> None:
    clock = Clock()
    clock.submit(link=2, device=1)
    clock.submit(link=3, device=1)
    assert clock.pending == 2
    clock.run(clock.wait())
    assert (clock.now, clock.pending) == (3, 1)
    clock.run(clock.wait())
    assert clock.pending == 0
    line = clock.finish()
    assert [line.pending(at) for at in (0, 1.9, 2, 4.9, 5)] == [2, 2, 1, 1, 0]


def test_scaph_runs_again_while_transfers_are_pending() -> None:
    """Two partitions come, 10 s apart; the device runs the first again, twice, instead of waiting."""
    clock = Clock(buffers=2)
    clock.submit(link=1, what="a")
    clock.submit(link=10, what="b")
    order = []
    while len(order) < 2 or clock.pending:
        job = clock.ready()
        if job is None and not order:
            job = clock.wait()
        if job is None and clock.pending:
            clock.run(seconds=4)
            order.append("again")
            continue
        assert job is not None
        clock.run(job, 2, keep=True)
        order.append(job.what)
    assert order == ["a", "again", "again"]
    assert clock.now == 11
    job = clock.ready()
    assert job is not None and job.what == "b"
    clock.run(job, 2)
    line = clock.finish()
    assert (line.seconds, line.busy(DEVICE)) == (13, 12)


def test_a_kept_buffer_is_given_back() -> None:
    clock = Clock(buffers=1)
    first = clock.submit(link=1)
    second = clock.submit(link=1)
    clock.run(clock.wait(), 1, keep=True)
    assert clock.ready() is None
    with pytest.raises(RuntimeError, match="cannot advance: 1 transfers"):
        clock.wait()
    clock.run(seconds=3)
    clock.release(first)
    assert clock.wait() is second
    assert clock.now == 6


def test_a_job_that_is_not_ready_cannot_run() -> None:
    clock = Clock()
    job = clock.submit(link=1)
    with pytest.raises(ValueError, match="job 0 is not ready at 0"):
        clock.run(job)
    clock.run(clock.wait())
    with pytest.raises(ValueError, match="job 0 is not ready"):
        clock.run(job)


SECONDS = st.integers(0, 6)
JOBS = st.lists(
    st.fixed_dictionaries(
        {"host": SECONDS, "link": SECONDS, "device": SECONDS, "streamed": st.booleans(), "cores": st.integers(1, 3)}
    ),
    max_size=9,
)


@settings(deadline=None)
@given(JOBS, st.integers(1, 4), st.sampled_from([None, 1, 2]), st.booleans())
def test_any_schedule(jobs: list[dict[str, int]], buffers: int, streams: int | None, reruns: bool) -> None:
    """Bounds, dependencies, one thing at a time, and no more buffers than there are."""
    clock = Clock(buffers, 3, streams)
    made: list[Job] = []
    for job in jobs:
        made.append(clock.submit(**job))  # type: ignore[arg-type]
    if reruns:
        clock.run(seconds=2)
    line = clock.finish()
    device = [span for span in line.spans if span.resource == DEVICE]
    link = [span for span in line.spans if span.resource == LINK]
    for spans in (device, link):
        assert all(a.end <= b.start for a, b in itertools.pairwise(spans)), "one at a time"
    for at in {span.start for span in line.spans}:
        assert sum(s.cores for s in line.spans if s.resource == HOST and s.start <= at < s.end) <= 3
    total = sum(job["host"] + job["link"] + job["device"] for job in jobs) + 2 * reruns
    assert max(line.busy(HOST), line.busy(LINK), line.busy(DEVICE)) <= line.seconds <= total
    assert line.busy(LINK) == sum(job["link"] for job in jobs)
    for spec, job in zip(jobs, made, strict=True):
        assert job.packed >= spec["host"] and job.near >= job.packed
        assert job.done >= max(job.moved, job.near + spec["device"])
        assert job.moved >= job.packed + spec["link"]
        kernel = next((span for span in device if span.job == job.number), None)
        assert kernel is None or kernel.start >= job.near
    for at in {job.moved - job.link for job in made}:
        held = [job for job in made if job.moved - job.link <= at < job.done]
        assert sum(not spec["streamed"] for spec, job in zip(jobs, made, strict=True) if job in held) <= buffers
        assert streams is None or len(held) <= streams
    assert line.end == max([job.done for job in made] + [span.end for span in line.spans], default=0)


@settings(deadline=None)
@given(JOBS, st.integers(1, 4))
def test_the_link_never_idles_without_need(jobs: list[dict[str, int]], buffers: int) -> None:
    clock = Clock(buffers, 3)
    made = [clock.submit(**job) for job in jobs]  # type: ignore[arg-type]
    clock.finish()
    # of two that start at once, one takes no time.
    spans = [(job.moved - job.link, job.moved, job.number) for job in made]
    for start, end, number in spans:
        job = made[number]
        before = [span[1] for span in spans if span < (start, end, number)]
        freed = sorted(
            other.done for other, spec in zip(made, jobs, strict=True) if not spec["streamed"] and other is not job
        )
        reasons = {0, job.packed, max(before, default=0), *(freed if not jobs[number]["streamed"] else [])}
        assert start in reasons, "a transfer starts when its bytes are packed, the link is free or a buffer is"


@given(JOBS)
def test_more_buffers_never_hurt_equal_jobs(jobs: list[dict[str, int]]) -> None:
    same = [{"link": 2, "device": 3}] * len(jobs)
    seconds = [played(*same, buffers=buffers).seconds for buffers in (1, 2, 3, 4)]
    assert seconds == sorted(seconds, reverse=True)


@given(JOBS, st.integers(1, 4))
def test_the_same_calls_give_the_same_times(jobs: list[dict[str, int]], buffers: int) -> None:
    lines = []
    for _ in range(2):
        clock = Clock(buffers, 3)
        for job in jobs:
            clock.submit(**job)  # type: ignore[arg-type]
        lines.append(clock.finish().spans)
    assert lines[0] == lines[1]


def test_thousands_of_iterations_take_seconds() -> None:
    """A road network needs thousands of iterations; a large graph dozens of tasks in each."""
    clock = Clock(cores=10)
    start = time.perf_counter()
    for _ in range(2000):
        for _ in range(24):
            clock.submit(host=1e-4, link=1e-3, device=5e-4)
        clock.alone(LINK, 1e-5)
        clock.finish()
    assert time.perf_counter() - start < 60
    assert clock.now == pytest.approx(2000 * (24e-3 + 1e-4 + 5e-4 + 1e-5))
