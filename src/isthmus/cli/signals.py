"""Ctrl-C and polite kills unwind the stack, so that temporary files go away; none is lost.

While machine code is compiled or loaded, an exception that a signal raises comes up inside a callback of the
compiler, which can only drop it. So every signal is also written down, and whoever reports progress checks.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

heard: list[int] = []
checkpoints: list[Path] = []  # folders that outlive an interrupted command


def listen() -> None:
    """Hear SIGINT, SIGTERM and SIGHUP, unless they are ignored (as nohup does) or somebody else's business."""
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
    """Stop here if a signal has been heard."""
    if heard:
        raise KeyboardInterrupt if heard[0] == signal.SIGINT else SystemExit(128 + heard[0])


def left() -> str:
    """What an interrupted command leaves behind, in words."""
    from isthmus.runtime.checkpoint import found

    for newest in [kept for folder in checkpoints for kept in found(folder)[-1:]]:
        return f"the same command, given again, goes on from {newest}"
    return "nothing was changed"
