"""Fixtures for all tests: where the real graphs lie, and small graphs to build on."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import longest, quick

from isthmus import sizes
from isthmus.cli import signals
from isthmus.kernels.compile import code_cache, compile_clock

# Decided now: tests that set ISTHMUS_CACHE in this process still find the machine code that was kept.
code_cache.kernels_folder()

DATA = Path(os.environ.get("ISTHMUS_DATA", Path(__file__).parent.parent.parent / "shared" / "data"))


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real graphs; tests that need it skip where it is not."""
    if not DATA.is_dir():
        pytest.skip(f"real graphs are not at {DATA}; set ISTHMUS_DATA to their folder")
    return DATA


class Everything(set[str]):
    def __contains__(self, text: object) -> bool:
        return True


@pytest.fixture(autouse=True)
def no_news(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands and functions in this process do not say that they compile, which depends on earlier test runs."""
    monkeypatch.setattr(compile_clock.OUTSIDE, "told", Everything())


@pytest.fixture(autouse=True)
def no_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands in this process leave its signals alone: those of tests that send some must come up as usual."""
    monkeypatch.setattr(signals, "listen", lambda: None)


@pytest.fixture
def sized() -> Iterator[Callable[..., Any]]:
    """Set sizes until the test ends: sized(piece=300)."""
    with contextlib.ExitStack() as stack:
        yield lambda **changes: stack.enter_context(sizes.using(**changes))


def pytest_configure(config: pytest.Config) -> None:
    """Graphs of tests are small, and go the way of large ones all the same. Commands that tests start go their own
    way.
    """
    sizes.now = dataclasses.replace(sizes.now, few_bytes=0, few_keys=0, few_arcs=0)
    # Started in the background by a shell; tests send themselves this signal.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick",
        action="store_true",
        help="the inner loop: fast files whole, a slice of every other one (tests/quick.py)",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    longest.first(items, Path(__file__).parent)
    if not config.getoption("--quick"):
        return
    items[:], left = quick.choose(items, Path(__file__).parent)
    config.hook.pytest_deselected(items=left)
    for item in items:
        quick.shorten(item)
