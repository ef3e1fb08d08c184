"""A slice of the campaign of faults while writing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults import tracing

ROOT = Path(__file__).parent.parent.parent


def test_no_fault_leaves_a_damaged_store_a_traceback_or_a_file() -> None:
    """In a process of its own: it forks, which needs a process without threads."""
    command = [sys.executable, "-m", "tests.faults.writing", "--points", "36", "--seed", "7"]
    outcome = subprocess.run(command, cwd=ROOT, text=True, capture_output=True)
    assert outcome.stdout == "36 points, 0 problems\n", outcome.stdout + outcome.stderr


@pytest.mark.timeout(400)
@pytest.mark.skipif(not tracing.available(), reason="there is no strace")
def test_faults_at_system_calls() -> None:
    command = [sys.executable, "-m", "tests.faults.writing", "--system", "--points", "40", "--seed", "7"]
    outcome = subprocess.run(command, cwd=ROOT, text=True, capture_output=True)
    assert outcome.stdout == "40 points, 0 problems\n", outcome.stdout + outcome.stderr
