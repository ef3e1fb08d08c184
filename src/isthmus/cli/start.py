"""Where the `isthmus` command starts: signals are handled before imports that take a second."""

from __future__ import annotations

from typing import NoReturn

from isthmus.cli import signals


def main() -> NoReturn:
    signals.leave_at_once()
    from isthmus.cli.main import main as run

    run()
