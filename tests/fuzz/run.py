"""Fuzz by hand, for minutes or hours: python -m tests.fuzz.run FORMAT [MINUTES] [SEED].

The input at hand is always in the folder that is printed first, so that it is there even if the process dies of it.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.targets import OPTIONS, attempt, damaged


def main(format: str, minutes: float = 1.0, seed: int | None = None) -> None:
    seed = int(time.time()) if seed is None else seed
    folder = Path(tempfile.mkdtemp(prefix=f"fuzz-{format}-"))
    print(f"{format}: seed {seed}, inputs in {folder}", flush=True)
    accepted = tried = 0
    stop = time.monotonic() + 60 * minutes
    while time.monotonic() < stop:
        dice = random.Random(f"{seed} {tried}")
        path = damaged(format, folder, dice)
        try:
            accepted += attempt(format, path, dice)
        except BaseException:
            print(f"{format}: fault at input {tried} of seed {seed}: {path}", flush=True)
            raise
        tried += 1
    print(f"{format}: {tried} inputs, {accepted} accepted, no fault")


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in OPTIONS:
        sys.exit(f"usage: python -m tests.fuzz.run {{{','.join(OPTIONS)}}} [MINUTES] [SEED]")
    main(sys.argv[1], *(kind(word) for kind, word in zip((float, int), sys.argv[2:], strict=False)))
