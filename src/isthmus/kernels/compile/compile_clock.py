"""What the first use of a kernel costs: its time is counted apart, and the user is told.

Kernels are compiled, or loaded, when they are first called, by any thread, often in the middle of a run. `clock` stands
still meanwhile, so that this time is never booked as work on edges. Messages go to the runs under way, each through its
own `say` function; if no run is under way, to `OUTSIDE`: standard error, unless the command line has replaced it.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

Say = Callable[[str], None]


class Stopwatch:
    """Seconds of this process. It is started by one thread at a time, the one that holds Numba's lock; starts nest."""

    def __init__(self, whole: Stopwatch | None = None) -> None:
        self._whole = whole  # runs whenever this one does
        self._depth = 0
        # Seconds so far, and since when it runs; replaced in one step.
        self.state: tuple[float, float | None] = (0.0, None)

    def __enter__(self) -> None:
        if self._whole is not None:
            self._whole.__enter__()
        self._depth += 1
        if self._depth == 1:
            self.state = self.state[0], time.perf_counter()

    def __exit__(self, *details: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.state = self.seconds, None
        if self._whole is not None:
            self._whole.__exit__()

    @property
    def seconds(self) -> float:
        spent, since = self.state
        return spent if since is None else spent + time.perf_counter() - since


PREPARING = Stopwatch()  # kernels are compiled, or kept machine code is loaded
COMPILING = Stopwatch(PREPARING)


def clock() -> float:
    """Seconds, as of time.perf_counter, without those in which kernels were compiled or loaded."""
    spent, since = PREPARING.state
    return (time.perf_counter() if since is None else since) - spent


class Listener:
    """A run that gets messages through `say`, each text once. `what` is compiled for it."""

    def __init__(self, what: str, say: Say) -> None:
        self.what, self.say = what, say
        self.told: set[str] = set()


def on_standard_error(text: str) -> None:
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):  # closed
            print(f"isthmus: {text}", file=sys.stderr, flush=True)


OUTSIDE = Listener("kernels", on_standard_error)
LISTENERS: list[Listener] = []


@contextlib.contextmanager
def telling(what: str, say: Say | None) -> Iterator[None]:
    """Inside `with`, `say` gets the messages about compiling `what`; without it, `OUTSIDE` does."""
    listener = Listener(what, OUTSIDE.say if say is None else say)
    LISTENERS.append(listener)
    try:
        yield
    finally:
        LISTENERS.remove(listener)


def tell(text: Callable[[str], str]) -> None:
    """Send every listener the text about what is compiled for it, once. Runs with the same `say` get the same text
    once.
    """
    messages: list[tuple[Say, str]] = []
    for listener in LISTENERS[:] or [OUTSIDE]:
        message = text(listener.what)
        if message not in listener.told:
            listener.told.add(message)
            if (listener.say, message) not in messages:
                messages.append((listener.say, message))
    for say, message in messages:
        say(message)
