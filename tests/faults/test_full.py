"""A slice of the campaign of full disks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults import full

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.timeout(400)  # it may have to compile
def test_a_full_disk_damages_nothing() -> None:
    """In a process of its own: it forks, which needs a process without threads."""
    if (why := full.trouble()) is not None:
        pytest.skip(f"no tmpfs can be mounted here: {why}")
    command = [sys.executable, "-m", "tests.faults.full", "--step", "23"]
    outcome = subprocess.run(command, cwd=ROOT, text=True, capture_output=True)
    assert " sizes, 0 problems; " in outcome.stdout, outcome.stdout + outcome.stderr
    assert " refused" in outcome.stdout and " done" in outcome.stdout
