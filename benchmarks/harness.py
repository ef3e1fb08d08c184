"""What every benchmark shares: alternate the contestants, take medians, measure peak memory from outside."""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def alternate(contestants: dict[str, Callable[[], Any]], rounds: int, warm: int = 1) -> dict[str, float]:
    """Median seconds of each contestant, run in turns so that a slow moment of the machine hits all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(warm + rounds):
        for name, work in contestants.items():
            taken, _ = timed(work)
            if turn >= warm:
                seconds[name].append(taken)
    return {name: statistics.median(values) for name, values in seconds.items()}


@dataclass
class Child:
    """How a command went, seen from outside."""

    seconds: float
    peak_rss: int
    output: str


def child(command: list[str], **environment: str) -> Child:
    """Run a command; its peak resident memory is read from /proc while it runs.

    Not from wait4: that maximum starts with what this process held when it forked.
    """
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})
    peak = 0

    def look() -> None:
        nonlocal peak
        while process.poll() is None:
            with contextlib.suppress(OSError, ValueError, IndexError):
                status = Path(f"/proc/{process.pid}/status").read_text()
                peak = max(peak, int(status.split("VmHWM:")[1].split()[0]) * 1024)
            time.sleep(0.005)

    watcher = threading.Thread(target=look)
    watcher.start()
    output, _ = process.communicate()
    watcher.join()
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed with {process.returncode}\n{output}")
    return Child(time.perf_counter() - start, peak, output)


def isthmus(*words: str) -> list[str]:
    """The command line of this interpreter's Isthmus."""
    return [str(Path(sys.executable).parent / "isthmus"), *words]


def table(rows: list[list[str]]) -> str:
    """A Markdown table; the first row is the head."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines)


def verdict(figure: float, limit: float, at_most: bool = True) -> str:
    met = figure <= limit if at_most else figure >= limit
    return "met" if met else "MISSED"
