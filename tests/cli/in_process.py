"""Commands that tests run in their own process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from tests.cli.outcome import Outcome

from isthmus.cli.main import main


def caller(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *first: str) -> Callable[..., Outcome]:
    """A function that runs `isthmus FIRST ARGUMENTS` here."""

    def run(*arguments: Any) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["isthmus", *first, *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        return Outcome(int(stopped.value.code or 0), *capsys.readouterr())

    return run
