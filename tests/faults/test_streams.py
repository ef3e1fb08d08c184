"""A slice of the campaign against streams on forged stores (`streams.py`)."""

from __future__ import annotations

import pytest
from tests.faults import damage, streams


@pytest.mark.timeout(300)  # some 20 s, and longer to compile
def test_streams_on_forged_stores() -> None:
    told: list[str] = []
    tally = streams.run(120, say=told.append)
    assert [tally[fault] for fault in damage.FAULTS] == [0] * len(damage.FAULTS), "\n".join(told)
    assert tally["right"] == 12, "sound stores"
    assert tally["refused"] > 50
