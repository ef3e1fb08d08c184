"""A slice of the campaign against damaged and forged stores (`damage.py`)."""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.faults import damage

from isthmus.errors import StoreError


@pytest.mark.timeout(300)  # some 40 s, and as long again to compile
def test_two_hundred_stores() -> None:
    told: list[str] = []
    tally = damage.run(200, 20, say=told.append)
    assert [tally[fault] for fault in damage.FAULTS] == [0] * len(damage.FAULTS), "\n".join(told)
    assert tally["right"] > 20, "damage that a run does not read changes nothing"
    assert tally["refused"] > 400


class Staged:
    """A campaign in which everything that can go wrong does."""

    folder = Path(os.devnull)

    def examine(self, number: int, say: Any) -> None:
        say(f"run {number}", None, f"store {number}")
        say(
            f"run {number}", *damage.outcome(lambda: self.answer(number), {"values": np.arange(3)}, lenient=number == 3)
        )

    def answer(self, number: int) -> Any:
        if number == 4:
            raise StoreError("one line")
        if number == 5:
            raise StoreError("two\nlines")
        if number == 6:
            raise ZeroDivisionError
        if number in (7, 8):
            faulthandler.disable()  # pytest's, which would show where
            os.kill(os.getpid(), signal.SIGSEGV if number == 7 else signal.SIGABRT)
        if number == 9:
            time.sleep(60)
        return {"values": np.arange(3) + (number in (2, 3))}


def test_whatever_goes_wrong_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(damage, "LIMIT", 2.0)
    found = {number: (what, result) for number, what, result, _ in damage.examined(Staged(), list(range(11)), 2)}
    expected = [
        "right",
        "right",
        "wrong",
        "allowed",
        "refused",
        "traceback",
        "traceback",
        "crash",
        "crash",
        "hang",
        "right",
    ]
    assert found == {number: (f"store {number}: run {number}", result) for number, result in enumerate(expected)}


def test_answers_that_differ_do_not_agree() -> None:
    one = {"vertex": np.array(["a", "b"], object), "value": np.array([1.0, np.nan])}
    others = [
        {**one, "vertex": np.array(["a", "c"], object)},
        {**one, "value": np.array([1.1, np.nan])},
        {**one, "value": np.array([1.0, 1.0])},
        {"vertex": one["vertex"]},
        {**one, "value": np.array([1, 2])},
        {**one, "value": np.array([1.0])},
    ]
    assert damage.agree(one, {**one, "value": np.array([1.0 + 1e-9, np.nan])})
    assert not any(damage.agree(one, other) for other in others)
