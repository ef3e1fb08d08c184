"""Signals such as Ctrl-C and SIGTERM raise exceptions, so that temporary files are removed. No signal is lost.

While machine code is compiled or loaded, a signal's exception is raised inside a callback of the compiler, which drops
it. So every signal is also recorded, and code that reports progress checks the record.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

heard: list[int] = []
checkpoints: list[Path] = []  # folders that stay after an interrupted command


def listen() -> None:
    """Handle SIGINT, SIGTERM and SIGHUP, unless they are ignored (as nohup does) or have a handler already."""
    defaults = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL}
    for number, usual in defaults.items():
        if signal.getsignal(number) == usual:
            signal.signal(number, hear)
    hook = sys.unraisablehook

    def dropped(what: Any) -> None:
        if not isinstance(what.exc_value, KeyboardInterrupt | SystemExit):
            hook(what)

    sys.unraisablehook = dropped


def hear(number: int, frame: object) -> None:
    heard.append(number)
    check()


def check() -> None:
    """Raise an exception if a signal has arrived."""
    if heard:
        raise KeyboardInterrupt if heard[0] == signal.SIGINT else SystemExit(128 + heard[0])


def left() -> str:
    """What an interrupted command leaves behind, as text for people."""
    from isthmus.runtime.checkpoint import found

    for newest in [kept for folder in checkpoints for kept in found(folder)[-1:]]:
        return f"run the same command again to resume from {newest}"
    return "nothing was changed"
