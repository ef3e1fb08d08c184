"""The time of a run by activity, in parts that add up to the total."""

from __future__ import annotations

from typing import Any

from isthmus.runtime.trace.trace import Trace

PARTS = ("compiling", "set-up", "loading", "I/O wait", "compute", "deciding", "other")


def time_parts(seconds: dict[str, float], trace: Trace) -> dict[str, float]:
    """Seconds by part. `other` has no clock of its own; overlapping parts of iterations share their time."""
    spent = {"I/O wait": seconds["wait"], "compute": seconds["kernel"], "deciding": float(trace.total("decide"))}
    available = min(seconds["iterate"], seconds["total"] - seconds["compile"])
    scale = min(1.0, available / sum(spent.values())) if sum(spent.values()) > 0 else 1.0
    found: dict[str, Any] = {"compiling": seconds["compile"], "set-up": seconds["set_up"], "loading": seconds["load"]}
    found |= {name: value * scale for name, value in spent.items()}
    found["other"] = max(0.0, seconds["total"] - sum(found.values()))
    return {name: found[name] for name in PARTS}
