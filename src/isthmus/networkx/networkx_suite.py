"""NetworkX's own tests, run on the backend: which of them cannot pass, and why."""

from __future__ import annotations

from typing import Any

CANNOT = {  # by file and test
    (
        "test_strongly_connected.py",
        "test_condensation_mapping_and_members",
    ): "it expects components in the order in which NetworkX's "
    "search ends; here they are in the order of their first nodes"
}


def on_start_tests(items: list[Any]) -> None:
    """Mark the tests that are known not to pass; NetworkX calls this before they start."""
    import pytest

    for item in items:
        reason = CANNOT.get((item.path.name, item.name))
        if reason is not None:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
