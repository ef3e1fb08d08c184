"""How a command ended that a test ran in its own process, and how long this machine takes to start one."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any, NamedTuple

# The command, with a minute to end after a signal, however busy the machine is. SIGHUP works, also if the tests were
# started by nohup.
PATIENT = [
    sys.executable,
    "-c",
    "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL); "
    "from isthmus.cli import signals, start; signals.PATIENCE = 60; start.main()",
]


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        (line,) = self.out.splitlines()
        return json.loads(line)

    def assert_refused(self, code: int, message: str) -> None:
        """Nothing was printed but an error that has this message."""
        assert (self.code, self.out) == (code, "")
        last = self.err.splitlines()[-1]
        assert last.startswith("error: ")
        assert message in last


USUAL = 0.5  # seconds to import Numba


def slowness() -> float:
    """How many times longer than usual a process takes to start here and now, at least 1: limits in seconds are
    multiplied by it.
    """

    def seconds() -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import numba"], check=True)
        return time.perf_counter() - start

    return max(1.0, min(seconds() for _ in range(3)) / USUAL)
