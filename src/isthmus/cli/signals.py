"""Signals such as Ctrl-C and SIGTERM raise exceptions, so that temporary files are removed. No signal is lost.

While machine code is compiled or loaded, a signal's exception is raised inside a callback of the compiler, which drops
it. So every signal is also recorded, and code that reports progress checks the record. A command that has not ended
PATIENCE seconds after a signal is ended by a thread; the next command removes the temporary files that it leaves.

While a command starts, it has nothing to remove: `leave_at_once` handles signals until `listen`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

PATIENCE = 2.0  # seconds; removing temporary files takes a tenth of that, and longer on a busy disk
DEFAULTS: dict[int, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}
received: list[int] = []
checkpoints: list[Path] = []  # folders that stay after an interrupted command
left_over: list[str] = []  # sentences for people about other results of an interrupted command
leaving = False  # the command is ending because of an error or a signal: further signals change nothing


def leave_at_once() -> None:
    """End the process at SIGINT, SIGTERM and SIGHUP, unless they are ignored (nohup) or have a handler."""
    for number, usual in DEFAULTS.items():
        if signal.getsignal(number) == usual:
            signal.signal(number, leave)


def leave(number: int, frame: object) -> None:
    """End the process, with a message after Ctrl-C."""
    if number == signal.SIGINT:
        os.write(2, b"error: interrupted; nothing was changed\n")
    os._exit(128 + number)


def listen() -> None:
    """Handle SIGINT, SIGTERM and SIGHUP, unless they are ignored or have a handler. May be called again."""
    global leaving
    leaving = False
    if receive in map(signal.getsignal, DEFAULTS):
        return
    for number, usual in DEFAULTS.items():
        if signal.getsignal(number) in (usual, leave):
            signal.signal(number, receive)
    hook = sys.unraisablehook

    def dropped(what: Any) -> None:
        """Report no errors after a signal: objects that it left incomplete may fail when they are deleted."""
        # The exception itself may be missing.
        if not received and not issubclass(what.exc_type, KeyboardInterrupt | SystemExit):
            hook(what)

    sys.unraisablehook = dropped
    end_late_ones()


def end_late_ones() -> None:
    """Start the thread that ends a command which does not end by itself."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)  # written to even while the main thread is in a long call
    threading.Thread(target=end_late, args=(reader,), name="signals", daemon=True).start()


def end_late(reader: int) -> None:
    """Wait for a signal, then give the command PATIENCE seconds to end."""
    try:
        while (number := os.read(reader, 1)[0]) not in DEFAULTS or signal.getsignal(number) is not receive:
            continue
    except OSError:  # the pipe cannot be read: a command that hangs after a signal is not ended
        return
    time.sleep(PATIENCE)
    if number == signal.SIGINT:
        os.write(2, b"error: interrupted; the next command removes the temporary files\n")
    os._exit(128 + number)


def receive(number: int, frame: object) -> None:
    received.append(number)
    if not leaving:
        check()


def check() -> None:
    """Raise an exception if a signal has arrived."""
    if received:
        raise KeyboardInterrupt if received[0] == signal.SIGINT else SystemExit(128 + received[0])


def left() -> str:
    """A sentence for people about the results of an interrupted command."""
    from isthmus.runtime.checkpoint.checkpoint import found

    for newest in [last for folder in checkpoints for last in found(folder)[-1:]]:
        return f"run the same command again to resume from {newest}"
    return left_over[-1] if left_over else "nothing was changed"
