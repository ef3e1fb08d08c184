"""A slice of the campaign of first uses (`first_use.py`)."""

from __future__ import annotations

import pytest
from tests.faults import first_use


@pytest.mark.timeout(400)  # the first process may have to compile
def test_threads_that_use_an_algorithm_first_at_once() -> None:
    told: list[str] = []
    assert first_use.run(4, told.append) == 0, "\n".join(told)
