"""Every unit once, in the order given, and again as often as allowed."""

from __future__ import annotations

import pytest
from tests.schedule.unit_states import come

from isthmus.schedule.plain import Plain
from isthmus.schedule.schedule import NONE, UnitStates


def test_units_are_fetched_in_the_order_given() -> None:
    order = [2, 0, 1, *range(3, 400)]
    schedule, units, found = Plain(order), UnitStates(400), []
    while (unit := schedule.fetch(units)) != NONE:
        assert not schedule.done(units)
        found.append(unit)
        come(units, unit)
    assert found == order
    assert schedule.done(units)


def test_they_run_in_the_order_in_which_they_come() -> None:
    schedule, units = Plain([0, 1]), UnitStates(2)
    assert schedule.run(units) == NONE
    units.ready.extend([1, 0, 1])
    assert schedule.run(units) == 1
    units.ready.popleft()
    assert schedule.run(units) == 0


def test_done_when_all_have_come_and_nothing_is_left() -> None:
    schedule, units = Plain([0, 1]), UnitStates(2)
    assert not schedule.done(units)
    come(units, 0)
    assert not schedule.done(units), "one was never asked for"
    units.fetched(1)
    units.ready.append(1)
    assert not schedule.done(units), "one is on its way, though something of it has come"
    units.arrived(1)
    assert not schedule.done(units), "one waits to run"
    units.ready.popleft()
    units.started(1)
    assert schedule.done(units), "whoever runs it will end it"


def test_without_units_it_is_done_at_once() -> None:
    assert Plain([]).done(UnitStates(0))
    assert Plain([]).fetch(UnitStates(0)) == NONE


def test_units_that_are_near_already_run_and_are_not_fetched() -> None:
    """Units behind those in the order: a cache holds them."""
    schedule, units = Plain(range(1), [0, 0]), UnitStates(2)
    units.ready.append(1)
    assert (schedule.fetch(units), schedule.run(units), schedule.done(units)) == (0, 1, False)


@pytest.mark.parametrize(
    ("unit", "runs", "expected"),
    [(0, 1, False), (1, 1, True), (1, 2, False), (2, 1, True), (2, 3, True), (2, 4, False)],
)
def test_further_runs_are_bounded_by_unit(unit: int, runs: int, expected: bool) -> None:
    assert Plain(range(3), [0, 1, 3]).again(unit, runs) == expected


def test_none_run_again_unless_it_is_said() -> None:
    assert not Plain(range(3)).again(1, 1)
