"""A slice of the campaign against streams with a log."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults import tracing

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.timeout(400)  # it may have to compile
def test_no_fault_loses_a_batch_that_was_acknowledged() -> None:
    """In a process of its own: it forks, which needs a process without threads."""
    command = [sys.executable, "-m", "tests.faults.log", "--points", "30", "--seed", "7"]
    outcome = subprocess.run(command, cwd=ROOT, text=True, capture_output=True)
    assert outcome.stdout.startswith("30 points, 0 problems; "), outcome.stdout + outcome.stderr


@pytest.mark.timeout(400)
@pytest.mark.skipif(not tracing.available(), reason="there is no strace")
def test_faults_at_system_calls() -> None:
    command = [sys.executable, "-m", "tests.faults.log", "--system", "--points", "30", "--seed", "7"]
    outcome = subprocess.run(command, cwd=ROOT, text=True, capture_output=True)
    assert outcome.stdout.startswith("30 points, 0 problems; "), outcome.stdout + outcome.stderr
