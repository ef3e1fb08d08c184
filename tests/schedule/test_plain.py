"""Every unit once, in the order given, and again as often as allowed."""

from __future__ import annotations

import pytest
from tests.schedule.standings import come

from isthmus.schedule.plain import Plain
from isthmus.schedule.schedule import NONE, Standing


def test_units_are_fetched_in_the_order_given() -> None:
    order = [2, 0, 1, *range(3, 400)]
    schedule, standing, found = Plain(order), Standing(400), []
    while (unit := schedule.fetch(standing)) != NONE:
        assert not schedule.done(standing)
        found.append(unit)
        come(standing, unit)
    assert found == order
    assert schedule.done(standing)


def test_they_run_in_the_order_in_which_they_come() -> None:
    schedule, standing = Plain([0, 1]), Standing(2)
    assert schedule.run(standing) == NONE
    standing.ready.extend([1, 0, 1])
    assert schedule.run(standing) == 1
    standing.ready.popleft()
    assert schedule.run(standing) == 0


def test_done_when_all_have_come_and_nothing_is_left() -> None:
    schedule, standing = Plain([0, 1]), Standing(2)
    assert not schedule.done(standing)
    come(standing, 0)
    assert not schedule.done(standing), "one was never asked for"
    standing.fetched(1)
    standing.ready.append(1)
    assert not schedule.done(standing), "one is on its way, though something of it has come"
    standing.arrived(1)
    assert not schedule.done(standing), "one waits to run"
    standing.ready.popleft()
    standing.started(1)
    assert schedule.done(standing), "whoever runs it will end it"


def test_without_units_it_is_done_at_once() -> None:
    assert Plain([]).done(Standing(0))
    assert Plain([]).fetch(Standing(0)) == NONE


def test_units_that_are_near_already_run_and_are_not_fetched() -> None:
    """Units behind those in the order: a cache holds them."""
    schedule, standing = Plain(range(1), [0, 0]), Standing(2)
    standing.ready.append(1)
    assert (schedule.fetch(standing), schedule.run(standing), schedule.done(standing)) == (0, 1, False)


@pytest.mark.parametrize(
    ("unit", "runs", "expected"),
    [(0, 1, False), (1, 1, True), (1, 2, False), (2, 1, True), (2, 3, True), (2, 4, False)],
)
def test_further_runs_are_bounded_by_unit(unit: int, runs: int, expected: bool) -> None:
    assert Plain(range(3), [0, 1, 3]).again(unit, runs) == expected


def test_none_run_again_unless_it_is_said() -> None:
    assert not Plain(range(3)).again(1, 1)
