"""A slice of the campaign against damaged and forged stores (`damage.py`)."""

from __future__ import annotations

import pytest
from tests.faults import damage


@pytest.mark.timeout(300)  # some 40 s, and as long again to compile
def test_two_hundred_stores() -> None:
    told: list[str] = []
    tally = damage.run(200, 20, say=told.append)
    assert [tally[fault] for fault in damage.FAULTS] == [0] * len(damage.FAULTS), "\n".join(told)
    assert tally["right"] > 20, "damage that a run does not read changes nothing"
    assert tally["refused"] > 400
