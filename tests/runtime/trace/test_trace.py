"""A trace is a list of iterations, however many of them are packed."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from isthmus import sizes
from isthmus.runtime.trace import trace as traces
from isthmus.runtime.trace.iteration import Iteration
from isthmus.runtime.trace.packed_iterations import Packed
from isthmus.runtime.trace.trace import Trace


def iteration(number, choices=None):
    record = Iteration(
        number, 3 * number, 5 * number, seconds=number / 8, wait=number / 16, kernel=0.25, hit_edges=number % 2
    )
    record.modelled = number / 4 if number % 3 else None
    record.engines["filter"].update(tasks=1, bytes=4096 * number, requests=number)
    if number % 5 == 0:
        record.engines["cache"]["tasks"] += 2
    record.partitions = {"filter": 1 + number % 7}
    record.choices = choices
    return record


def facts(found):
    return [each.as_dict() for each in found]


def test_packed_iterations_are_those_that_were_appended():
    expected = [iteration(k) for k in range(100)]
    with sizes.using(live_iterations=8):
        trace = Trace()
        for k in range(100):
            trace.append(iteration(k))
            assert (len(trace), facts(trace.iterations[-3:])) == (k + 1, facts(expected[max(0, k - 2) : k + 1]))
    assert facts(trace) == facts(trace.iterations) == facts(expected)
    assert facts(trace.iterations[7:60:9]) == facts(expected[7:60:9])
    assert trace.iterations[50] == expected[50]
    assert trace.iterations[-100].number == 0
    for place in (100, -101):
        with pytest.raises(IndexError):
            trace.iterations[place]
    for name in (
        "active_vertices",
        "active_edges",
        "seconds",
        "wait",
        "kernel",
        "decide",
        "hit_edges",
        "bytes",
        "requests",
    ):
        assert trace.total(name) == pytest.approx(sum(getattr(each, name) for each in expected)), name
    assert trace.total("modelled") == pytest.approx(sum(each.modelled or 0 for each in expected))
    assert trace.engines() == {
        "cache": {"tasks": 40, "bytes": 0, "requests": 0},
        "filter": {"tasks": 100, "bytes": 4096 * 4950, "requests": 4950},
    }
    assert facts(pickle.loads(pickle.dumps(trace))) == facts(expected)


def test_the_first_and_the_last_iteration_may_change():
    with sizes.using(live_iterations=4):
        trace = Trace()
        for k in range(20):
            trace.append(iteration(k))
            trace.iterations[-1].engines["filter"]["bytes"] += 1
    trace.iterations[0].engines["unified"]["bytes"] += 77
    assert trace.total("bytes") == 4096 * 190 + 20 + 77
    assert trace.engines()["unified"] == {"tasks": 0, "bytes": 77, "requests": 0}


@pytest.mark.parametrize("live", [3, 1000])
def test_traces_in_a_row_are_numbered_on(live):
    """As passes of a call, one of which was resumed after 40 iterations."""
    with sizes.using(live_iterations=live):
        whole = Trace()
        for first, count in ((0, 1), (40, 17), (0, 0), (0, 30)):
            whole.extend(Trace([iteration(first + k, np.full(3, k, np.uint8)) for k in range(count)]))
    assert [each.number for each in whole] == list(range(48))
    assert [each.active_vertices for each in whole] == [3 * k for k in (0, *range(40, 57), *range(30))]
    assert [each.choices.tolist() for each in whole] == [[k] * 3 for k in (0, *range(17), *range(30))]
    assert whole.engines()["filter"]["tasks"] == 48


def test_choices_are_thinned_evenly(monkeypatch):
    monkeypatch.setattr(traces, "CHOICES_KEPT", 20 * (100 + traces.ARRAY_BYTES))
    with sizes.using(live_iterations=16):
        trace = Trace([iteration(k, np.full(100, k % 256, np.uint8)) for k in range(1000)])
    kept = [each.number for each in trace if each.choices is not None]
    assert kept == list(range(0, 1000, 64)) == list(trace.choices())
    assert all((trace.iterations[k].choices == k % 256).all() for k in kept)


def test_a_packed_iteration_takes_less_than_100_bytes():
    chance = np.random.default_rng(1)
    records = [iteration(k) for k in range(1024)]
    for record in records:
        record.seconds, record.wait, record.kernel, record.decide, record.link = chance.random(5)
        record.active_vertices, record.active_edges = chance.integers(1 << 40, size=2).tolist()
    assert Packed(records).nbytes <= 100 * 1024
