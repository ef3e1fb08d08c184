"""Commands that tests run in their own process, in a folder of stores."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from tests.cli.outcome import Outcome

from isthmus.cli.main import main


def caller(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """A function that runs `isthmus ARGUMENTS` here."""

    def run(*arguments: Any) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["isthmus", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        return Outcome(int(stopped.value.code or 0), *capsys.readouterr())

    return run
