"""Commands that tests run as processes of their own, with pipes or a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

COMMAND = [sys.executable, "-m", "isthmus.cli.main"]


def process(*arguments: Any, **more: Any) -> subprocess.CompletedProcess[str]:
    """`isthmus ARGUMENTS`, when it has ended."""
    return subprocess.run([*COMMAND, *map(str, arguments)], text=True, capture_output=True, **more)


def on_a_terminal(
    *arguments: Any, both: bool = False, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`isthmus ARGUMENTS`, when it has ended. Its standard error is a terminal; with `both`, its standard output is the
    same one.
    """
    ours, theirs = pty.openpty()
    command = [*COMMAND, *map(str, arguments)]
    with tempfile.TemporaryFile("w+") as out:
        running = subprocess.Popen(command, stdout=theirs if both else out, stderr=theirs, env=env)
        os.close(theirs)
        shown = b"".join(parts(ours)).decode(errors="replace")
        code = running.wait(60)
        out.seek(0)
        return subprocess.CompletedProcess(command, code, out.read(), shown)


def parts(terminal: int) -> Iterator[bytes]:
    """What a terminal gets until its other end is closed. Closes it."""
    try:
        while part := os.read(terminal, 65536):
            yield part
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(terminal)
