"""A pytest plugin for NetworkX's tests: which of them called functions of the backend, and how these ended.

NetworkX's conftest runs its tests on a backend (`NETWORKX_TEST_BACKEND`). Calls that the backend refuses are left to
NetworkX (`NETWORKX_FALLBACK_TO_NX`), so that a test is not given up at the first of them.
"""

from __future__ import annotations

import functools
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from isthmus.networkx import backend  # noqa: F401  # it declares the claims
from isthmus.networkx.claims import CLAIMS, Claim

RANKS = ("passed", "skipped", "xfailed", "failed")  # a test with several reports counts as the last of these


class Counting:
    """Outcomes by test, functions of the backend that tests called, and calls that were refused."""

    def __init__(self) -> None:
        self.now = ""
        self.outcomes: dict[str, str] = {}
        self.reasons: dict[str, str] = {}  # why tests were skipped or failed as expected, and whole files were skipped
        self.called: dict[str, set[str]] = {}
        self.refused: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.now = item.nodeid
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        outcome = "xfailed" if report.skipped and hasattr(report, "wasxfail") else report.outcome
        self.outcomes[report.nodeid] = max(self.outcomes.get(report.nodeid, "passed"), outcome, key=RANKS.index)
        if report.skipped:
            self.reasons[report.nodeid] = why(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self.reasons[report.nodeid] = why(report)

    def pytest_sessionfinish(self) -> None:
        kept = {
            "outcomes": self.outcomes,
            "reasons": self.reasons,
            "refused": self.refused,
            "called": {name: sorted(tests) for name, tests in self.called.items()},
        }
        Path(os.environ["ISTHMUS_COUNTS"]).write_text(json.dumps(kept))

    def watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **given: Any) -> Any:
            self.called.setdefault(function.__name__, set()).add(self.now)
            return function(*args, **given)

        return call


def why(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The reason of a skip or of an expected failure."""
    if hasattr(report, "wasxfail"):
        return str(report.wasxfail).removeprefix("reason: ")
    return str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr).removeprefix("Skipped: ")


def pytest_configure(config: pytest.Config) -> None:
    counting = Counting()
    config.pluginmanager.register(counting)
    for name, claim in CLAIMS.items():
        CLAIMS[name] = Claim(counting.watched(claim.function), claim.rules)
    refusal = Claim.refusal

    def counted(claim: Claim, args: Any, kwargs: Any) -> str | None:
        reason = refusal(claim, args, kwargs)
        if reason is not None:
            counting.refused[f"{claim.function.__name__}: {reason.split(', got')[0]}"] += 1
        return reason

    Claim.refusal = counted  # type: ignore[method-assign]
