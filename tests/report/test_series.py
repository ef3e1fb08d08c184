"""Traces in bins: sums stay sums, means stay means, and the map shows the engine that really came."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.policies.policy import COMPACTION, FILTER, NOTHING, ZERO_COPY
from isthmus.report.series import BINS, ROWS, UNKNOWN, choice_map, series
from isthmus.runtime.trace.iteration import Iteration
from isthmus.runtime.trace.trace import Trace


def iteration(number, choices=None, **facts):
    record = Iteration(number, 10 * number, 100 * number, seconds=1.0, wait=0.5, kernel=0.2, decide=0.1, **facts)
    record.engines["filter"].update(tasks=1, bytes=1000 * number, requests=number)
    record.partitions = {"filter": 3, "zero_copy": 1}
    record.choices = None if choices is None else np.array(choices, np.uint8)
    return record


@pytest.mark.parametrize("count", [1, 7, BINS, BINS + 1, 1000, 12345])
def test_bins_keep_sums_and_means(count):
    trace = Trace([iteration(k) for k in range(count)])
    data = series(trace)
    assert data.sizes.sum() == count
    assert data.sizes.size <= BINS
    assert data.moved.sum() == sum(1000 * k for k in range(count))
    assert data.requested.sum() == sum(range(count))
    assert (data.active_vertices * data.sizes).sum() == pytest.approx(sum(10 * k for k in range(count)))
    assert [values[0] for values in data.seconds.values()] == pytest.approx([0.5, 0.2, 0.1, 0.2])
    assert data.shares()["filter"] == pytest.approx(0.75)
    assert data.shares()["zero_copy"] == pytest.approx(0.25)
    assert data.bounds[0] == 0.5
    assert data.bounds[-1] == count + 0.5


def test_of_a_modelled_device_only_its_own_seconds_count():
    data = series(Trace([iteration(k, modelled=k / 1000) for k in range(5)]))
    assert {name: values.tolist() for name, values in data.seconds.items()} == {
        "modelled": [0, 0.001, 0.002, 0.003, 0.004]
    }
    assert data.modelled and not series(Trace([iteration(0)])).modelled


def test_a_trace_without_iterations():
    data = series(Trace())
    assert (data.iterations, data.sizes.size, data.moved.size) == (0, 0, 0)
    assert choice_map(Trace(), 1) is None


def test_hit_rates_weigh_edges_not_iterations():
    one = Iteration(0, 1, active_edges=1000, hit_edges=0)
    two = Iteration(1, 1, active_edges=10, hit_edges=10)
    assert series(Trace([one, two])).hit_rate.tolist() == [0, 1]
    many = Trace([one, two] * BINS)
    assert series(many).hit_rate == pytest.approx(10 / 1010)


def test_the_map_shows_choices_as_they_were():
    trace = Trace(
        [iteration(0, [FILTER, NOTHING]), iteration(1, [ZERO_COPY, FILTER]), iteration(2, [NOTHING, COMPACTION])]
    )
    found = choice_map(trace, 1)
    assert found.codes.tolist() == [[FILTER, ZERO_COPY, NOTHING], [NOTHING, FILTER, COMPACTION]]
    assert (found.partitions, found.row_step) == (2, 1)


def test_a_row_of_many_partitions_shows_the_commonest_engine_that_came():
    choices = [NOTHING, NOTHING, ZERO_COPY] * ROWS
    choices[:3] = [FILTER, FILTER, ZERO_COPY]
    found = choice_map(Trace([iteration(0, choices)]), 1)
    assert found.row_step == 3
    assert found.codes[:, 0].tolist() == [FILTER] + [ZERO_COPY] * (ROWS - 1)


def test_choices_that_were_not_recorded_are_not_invented():
    still = Iteration(3, 1)  # nothing moved
    trace = Trace([iteration(0, [FILTER]), iteration(1, [FILTER]), iteration(2), still, iteration(4)])
    assert choice_map(trace, 1).codes.tolist() == [[FILTER, FILTER, UNKNOWN, NOTHING, UNKNOWN]]


def test_thinned_choices_make_wider_bins():
    """A trace thins evenly; with a bin for every kept iteration no column is without one."""
    trace = Trace([iteration(k, [FILTER, ZERO_COPY] if k % 4 == 0 else None) for k in range(41)])
    found = choice_map(trace, 1)
    assert found.step == 4
    assert found.codes.tolist() == [[FILTER] * 11, [ZERO_COPY] * 11]


def test_sides_of_different_length():
    found = choice_map(Trace([iteration(0, [FILTER]), iteration(1, [FILTER, ZERO_COPY])]), 1)
    assert found.codes.tolist() == [[FILTER, FILTER], [NOTHING, ZERO_COPY]]
