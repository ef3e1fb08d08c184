"""Parts of a run's time add up to the total, also where clocks overlap."""

from __future__ import annotations

import pytest

from isthmus.report.time_parts import PARTS, time_parts
from isthmus.runtime.trace.iteration import Iteration
from isthmus.runtime.trace.trace import Trace


@pytest.mark.parametrize(("wait", "kernel"), [(1.0, 2.0), (0.0, 0.0), (4.0, 4.0)])
def test_parts_add_up(wait: float, kernel: float) -> None:
    seconds = {"total": 9.0, "compile": 2.0, "set_up": 1.0, "load": 0.5, "iterate": 5.0, "wait": wait, "kernel": kernel}
    found = time_parts(seconds, Trace([Iteration(0, 1, decide=0.5)]))
    assert tuple(found) == PARTS
    assert sum(found.values()) == pytest.approx(9)
    assert min(found.values()) >= 0
    if wait + kernel < 5:
        assert (found["I/O wait"], found["compute"], found["deciding"]) == (wait, kernel, 0.5)
    else:
        assert found["I/O wait"] == found["compute"] == pytest.approx(5 * 4 / 8.5)
    assert (found["compiling"], found["set-up"], found["loading"]) == (2, 1, 0.5)
