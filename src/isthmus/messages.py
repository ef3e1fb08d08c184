"""How messages reach the user: options are named as the caller writes them, and notes about an answer are warnings.

From Python an option is `header=True` and a note is an `IsthmusWarning`. On the command line the same option is
`--header`, and the commands print the notes themselves.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from isthmus.errors import IsthmusWarning

FLAGS = {"weight_dtype": "--weight-type"}  # options that the command line names differently
OPPOSITES = {"directed": "--undirected", "on_disk": "--in-memory"}  # what False is called, if not --no-NAME

_shell = False  # a plain global: errors are also raised in threads, which would not see a context variable


@contextlib.contextmanager
def in_shell() -> Iterator[None]:
    """Inside `with`, the caller is the command line."""
    global _shell
    before, _shell = _shell, True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IsthmusWarning)
            yield
    finally:
        _shell = before


def option(name: str, value: Any = None) -> str:
    """An option as the caller writes it, with a value or (None) without."""
    if not _shell:
        return f"{name}=" if value is None else f"{name}={value!r}"
    flag = FLAGS.get(name, f"--{name.replace('_', '-')}")
    if value is False:
        return OPPOSITES.get(name, f"--no-{flag[2:]}")
    return flag if value is None or value is True else f"{flag} {value}"


def warn(notes: Iterable[str]) -> None:
    """Warn a Python user, at the line of their own that called Isthmus."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "isthmus":
        level, frame = level + 1, frame.f_back
    for note in notes:
        warnings.warn(note, IsthmusWarning, stacklevel=level)
