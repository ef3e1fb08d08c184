"""A slice of the campaign against forged checkpoints (`checkpoints.py`)."""

from __future__ import annotations

import pytest
from tests.faults import checkpoints
from tests.faults.damage import FAULTS


@pytest.mark.timeout(300)  # some 20 s, and as long again to compile
def test_forged_checkpoints_of_every_algorithm() -> None:
    """All of their arrays, one after another, with all bits set; then what is drawn."""
    told: list[str] = []
    tally = checkpoints.run(160, few=True, say=told.append)
    assert [tally[fault] for fault in FAULTS] == [0] * len(FAULTS), "\n".join(told)
    assert tally["refused"] > 80
    assert tally["allowed"] > 10, "numbers that are no indices may be any"
