"""Two threads on the same few vertices, again and again until both really worked at once."""

from __future__ import annotations

import threading
import time

# so that the team of the runtime works on pieces.
MOVING = {"policy": "filter", "memory": "50%", "far": "ram", "threads": 2}


def overlapping(run, check, seconds=60.0):
    """Repeat `run(watch)` until the members of a team have worked on one iteration at the same time several times."""
    met = 0
    end = time.monotonic() + seconds
    while met < 5 and time.monotonic() < end:
        inside, seen = set(), set()
        lock = threading.Lock()

        def around(piece, inside=inside, seen=seen, lock=lock):
            def work(member):
                with lock:
                    inside.add(member)
                    seen.add(len(inside))
                try:
                    piece(member)
                finally:
                    with lock:
                        inside.discard(member)

            return work

        check(run(around))
        met += 2 in seen
    assert met, "two threads never ran at once: this shows nothing"
