"""Fixtures for all tests: where the real graphs lie, and small graphs to build on."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from isthmus import sizes

DATA = Path(os.environ.get("ISTHMUS_DATA", Path(__file__).parent.parent.parent / "shared" / "data"))


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real graphs; tests that need it skip where it is not."""
    if not DATA.is_dir():
        pytest.skip(f"real graphs are not at {DATA}; set ISTHMUS_DATA to their folder")
    return DATA


@pytest.fixture
def sized() -> Iterator[Callable[..., Any]]:
    """Set sizes until the test ends: sized(piece=300)."""
    with contextlib.ExitStack() as stack:
        yield lambda **changes: stack.enter_context(sizes.using(**changes))
