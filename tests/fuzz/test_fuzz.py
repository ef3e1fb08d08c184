"""Some seconds of fuzzing for each format, the same inputs every time. `python -m tests.fuzz.run FORMAT MINUTES` goes
on for longer.
"""

from __future__ import annotations

import random
import time

import pytest
from tests.fuzz.mutate import mutated
from tests.fuzz.targets import OPTIONS, attempt, damaged, entries

SECONDS, MOST = 2.0, 400  # for a format


@pytest.mark.parametrize("format", OPTIONS)
def test_the_corpus_itself(format, tmp_path):
    """Every entry is read or refused; the sound ones must be read, or nothing behind the first check is ever
    reached.
    """
    read = 0
    for entry in entries(format):
        path = entry if entry.is_file() or format == "isthmus" else sorted(entry.iterdir())[0]
        read += any(attempt(format, path, random.Random(seed)) for seed in range(3))
    assert read >= 1


@pytest.mark.parametrize("format", OPTIONS)
def test_damaged_inputs_are_read_or_refused(format, tmp_path):
    stop, tried = time.monotonic() + SECONDS, 0
    while tried < MOST and time.monotonic() < stop:
        dice = random.Random(f"{format} {tried}")
        attempt(format, damaged(format, tmp_path, dice), dice)
        tried += 1
    assert tried >= 3


def test_mutations_change_the_input():
    dice = random.Random(1)
    data = bytes(range(200))
    assert sum(mutated(data, dice) != data for _ in range(200)) > 150
