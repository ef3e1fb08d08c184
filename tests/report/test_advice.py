"""Which recipe to take, and why."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.report.advice import advice


def run(
    seconds: float, moved: int = 10**6, requests: int = 100, iterations: int = 9, wait: float = 0.1, **more: Any
) -> dict[str, Any]:
    facts = {
        "seconds": {"total": seconds, "wait": wait},
        "transfer": {"bytes": moved, "requests": requests},
        "iterations": iterations,
    }
    return {**facts, "policy": "filter", **more}


@pytest.mark.parametrize(
    ("best", "reason"),
    [
        ({"moved": 400_000}, "since it moved 400 kB instead of 1 MB"),
        ({"requests": 20}, "since it made 20 requests instead of 100"),
        ({"iterations": 5}, "since it took 5 iterations instead of 9"),
        ({"wait": 0.05}, "since it waited 0.050 s for the disk instead of 0.100 s"),
        ({}, "with about the same transfers"),
    ],
)
def test_a_reason(best: dict[str, Any], reason: str) -> None:
    found = advice({"filter": run(3), "emogi": run(1, **best), "subway": run(2)})
    assert found == f"Take emogi: it is 2 times as fast as subway, the next, {reason}."


def test_ties() -> None:
    assert advice({"filter": run(1), "auto": run(1.04), "emogi": run(3)}) == (
        "Take auto: it is as fast as filter, the fastest here, and it adapts to other graphs and budgets."
    )
    assert advice({"filter": run(1), "subway": run(1.02), "emogi": run(1.03), "auto": run(2)}) == (
        "Take filter: it is the fastest, though hardly faster than subway and emogi."
    )


def test_no_choice() -> None:
    assert advice({"filter": run(1)}) == ""
    near = {name: run(1, policy="resident") for name in ("filter", "auto")}
    assert advice(near).startswith("Take auto: all edges fit in near memory")


def test_modelled_seconds_decide() -> None:
    slow, fast = run(1), run(9)
    slow["seconds"]["modelled"], fast["seconds"]["modelled"] = 2.0, 1.0
    found = advice({"filter": slow, "emogi": fast})
    assert found == "Take emogi: it is 2 times as fast as filter, the next, with about the same transfers."
