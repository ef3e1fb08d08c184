"""The states of units, which every schedule is asked about."""

from __future__ import annotations

import numpy as np
import pytest
from tests.schedule.unit_states import marks, run

from isthmus.schedule.schedule import COMING, FAR, NEAR, NONE, RUNNING, Schedule, UnitStates, first


class Never(Schedule):
    """Has nothing to do."""

    def fetch(self, units: UnitStates) -> int:
        return NONE

    def run(self, units: UnitStates) -> int:
        return NONE

    def done(self, units: UnitStates) -> bool:
        return True


def test_all_units_begin_far_and_have_not_run() -> None:
    units = UnitStates(3)
    assert units.places.tolist() == [FAR] * 3
    assert units.runs.tolist() == units.pending.tolist() == [0] * 3
    assert (units.coming, units.running, units.total_runs, units.sent, units.free) == (0, 0, 0, [], 0)
    assert not units.asked_for.any()


def test_none_is_no_unit() -> None:
    assert NONE < 0
    assert len({FAR, COMING, NEAR, RUNNING}) == 4


def test_some_are_near_from_the_start() -> None:
    assert UnitStates(3, marks(3, [1])).places.tolist() == [FAR, NEAR, FAR]


def test_a_unit_comes_runs_and_goes() -> None:
    units = UnitStates(3)
    units.fetched(2)
    assert (units.places[2], units.coming, units.sent, units.asked_for.tolist()) == (
        COMING,
        1,
        [2],
        [False, False, True],
    )
    units.arrived(2)
    assert (units.places[2], units.coming) == (NEAR, 0)
    units.started(2)
    assert (units.places[2], units.running, units.runs[2]) == (RUNNING, 1, 0)
    units.finished(2)
    assert (units.places[2], units.running, units.runs[2], units.total_runs) == (NEAR, 0, 1, 1)
    units.evicted(2)
    assert (units.places[2], units.runs[2]) == (FAR, 1)
    assert units.asked_for[2], "ever"


def test_turns_say_what_changed_last() -> None:
    units = UnitStates(4, np.ones(4, np.bool_))
    assert units.turns.tolist() == [0, 1, 2, 3]
    run(units, 1, 0)
    assert units.turns.tolist() == [7, 5, 2, 3], "each start and each end is a step"


@pytest.mark.parametrize(
    ("among", "keys", "expected"),
    [
        ([], [], NONE),
        ([0, 0], [1, 2], NONE),
        ([1, 1], [2, 1], 1),
        ([1, 1], [1, 1], 0),
        ([1, 0, 1], [5, 1, 4], 2),
        ([1, 1], [0, -1], 1),
    ],
)
def test_the_smallest_key_goes_first(among: list[int], keys: list[int], expected: int) -> None:
    assert first(np.array(among, np.bool_), np.array(keys, np.int64)) == expected


@pytest.mark.parametrize("name", ["fetch", "run", "done"])
def test_what_a_schedule_must_say(name: str) -> None:
    lacking = type(
        "Lacking", (Schedule,), {other: getattr(Never, other) for other in ("fetch", "run", "done") if other != name}
    )
    with pytest.raises(TypeError, match=f"abstract.*{name}"):
        lacking()


def test_what_a_schedule_need_not_say() -> None:
    schedule, units = Never(), UnitStates(1)
    assert schedule.evict(units) == NONE
    assert not schedule.again(0, 1)
    assert (schedule.under_way, schedule.alone) == (None, False)
