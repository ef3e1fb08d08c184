"""Files of tests that take longest. They go first: otherwise a worker gets one of them when the others have nearly
ended.
"""

from __future__ import annotations

from pathlib import Path

import pytest

# By processor time, from 50 to 10 seconds; `pytest --durations=50` shows what to add.
LONGEST = (
    "conformance/test_cuda",
    "runtime/test_faults",
    "runtime/test_published",
    "stream/test_on_disk",
    "runtime/test_session",
    "test_papers",
    "runtime/checkpoint/test_checkpoint",
    "devices/cuda/kernels/test_ptx",
    "kernels/programs/test_delta_stepping",
    "conformance/test_gaps",
    "conformance/test_conformance",
    "runtime/near/test_budget",
    "stream/test_far_lists",
    "cli/test_faults",
    "test_benchmarks",
    "cli/commands/test_compare",
    "faults/test_memory",
    "faults/test_log",
    "faults/test_writing",
    "faults/test_checkpoints",
    "faults/test_full",
    "networkx/test_networkx_suite",
    "runtime/executor/test_settling_partitions",
    "link/test_ssd",
    "runtime/executor/test_task_work",
    "conformance/test_changing",
    "stream/results/test_publication",
    "faults/test_damage",
    "programs/test_program",
    "runtime/executor/test_launches",
    "test_examples",
    "programs/algorithms/test_pagerank",
    "graph/overlay/test_overlay_graph",
    "cli/commands/test_stream",
)
PLACES = {f"{name}.py": place for place, name in enumerate(LONGEST)}


def first(items: list[pytest.Item], root: Path) -> None:
    """Sort tests by file, those of the longest files first, and all others as they were."""
    items.sort(key=lambda item: PLACES.get(item.path.relative_to(root).as_posix(), len(LONGEST)))
