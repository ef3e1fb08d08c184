"""The inner loop: which tests `make check` runs. All of what is pure and fast, a thin slice of every other file."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import settings

WHOLE = ("policies", "schedule", "test_checks", "test_covering", "test_imports", "test_memory", "test_sizes")
# Files and tests that take many seconds each; `make test` runs them.
NEVER = (
    "test_papers",
    "test_networkx_tests_pass",
    "test_damage",
    "test_writing",
    "test_log",
    "test_bits",
    "test_full",
    "test_benchmarks",
    "test_examples",
    "test_browser",
    "test_no_improvement_is_lost",
    "test_a_larger_graph",
    "test_trees_of_a_larger_graph",
    "test_machine_code_that_cannot_be_kept_is_no_error",
    "test_all_kernels_compile_for_all_architectures_and_none_spills",
)
SLICE = 20  # of a file's tests, one in so many, and its first
EXAMPLES = 8  # of a property, at most


def choose(items: list[pytest.Item], root: Any) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """(tests to run, tests to leave out)."""
    seen: dict[Any, int] = defaultdict(int)
    run, left = [], []
    for item in items:
        words = [word.removesuffix(".py") for word in item.path.relative_to(root).parts] + [item.name.split("[")[0]]
        whole = any(word in WHOLE for word in words)
        wanted = not any(word in NEVER for word in words) and (whole or seen[item.path] % SLICE == 0)
        seen[item.path] += 1
        (run if wanted else left).append(item)
    return run, left


def shorten(item: pytest.Item) -> None:
    """Fewer examples of a property."""
    own = getattr(getattr(item, "obj", None), "_hypothesis_internal_use_settings", None)
    if own is not None and own.max_examples > EXAMPLES:
        item.obj._hypothesis_internal_use_settings = settings(own, max_examples=EXAMPLES)  # type: ignore[attr-defined]
