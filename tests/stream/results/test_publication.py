"""Ctrl-C while results are published (`stream/results/publication.py`): results of earlier batches stay as they were,
wherever it comes.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.stream.batch_application import BatchApplication

PROGRAMS = [ist.SSSP(source=0), ist.PageRank(tol=1e-6), ist.CoreNumber(), ist.MultiSourceBFS(sources=[0, 7])]
PACKAGE = str(Path(ist.__file__).parent)
BATCHES: list[dict[str, Any]] = [
    {"inserts": [(0, 9, 1), (4, 7, 1)], "deletes": [(2, 3)]}, {"inserts": [(0, 99, 1)]}, {"remove_vertices": [5]}
]  # fmt: skip


class Interrupt:
    """Raises KeyboardInterrupt at the line of this number, counted from the beginning of a publication; -1: counts
    only.

    Not at lines that begin with `with`: tracing comes there once more when a block ends, before a lock is released.
    Signals do not.
    """

    def __init__(self, at: int) -> None:
        self.at, self.lines = at, 0

    def __call__(self, frame: Any, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line" and not linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith(
            "with "
        ):
            self.lines += 1
            if self.lines == self.at:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self


@pytest.fixture
def stopping(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Interrupt]]:
    """While there is an interrupt in this list, publications meet it."""
    wanted, plain = list[Interrupt](), BatchApplication._publish

    def publish(self: BatchApplication, change: Any) -> None:
        sys.settrace(wanted[0] if wanted else None)
        try:
            plain(self, change)
        finally:
            sys.settrace(None)

    monkeypatch.setattr(BatchApplication, "_publish", publish)
    yield wanted
    sys.settrace(None)


def columns(result: Any) -> Any:
    return result.number, {name: result[name].tolist() for name in result.columns}


@pytest.fixture(scope="module")
def expected() -> Any:
    """The answers after the first batch."""
    with begun() as live:
        return {name: columns(live[name]) for name in live}


def begun() -> Any:
    live = ist.stream(ist.read((np.arange(9), np.arange(1, 10), np.ones(9, np.int64))), PROGRAMS, threads=1)
    live.apply(inserts=[(0, 3, 1)])
    return live


def stopped(batch: dict[str, Any], interrupt: Interrupt, stopping: list[Interrupt], expected: Any) -> None:
    """A stream in which a batch is stopped. It must show the answers of the batch before, then and for ever."""
    with begun() as live:
        before = {name: live[name] for name in live}  # nobody has looked at these
        stopping.append(interrupt)
        try:
            live.apply(**batch)
        except KeyboardInterrupt:
            for name in live:
                assert columns(before[name]) == columns(live[name]) == expected[name], (name, interrupt.at)
            with pytest.raises(
                ist.BatchError, match="a batch was stopped while it was applied: results stay as they were"
            ):
                live.apply()
        finally:
            stopping.clear()


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("batch", "step"), list(zip(BATCHES, (1, 4, 6), strict=True)), ids=["edges", "a new vertex", "a vertex leaves"]
)
def test_ctrl_c_at_every_line_of_a_publication(
    batch: dict[str, Any], step: int, stopping: list[Interrupt], expected: Any
) -> None:
    counted = Interrupt(-1)
    stopped(batch, counted, stopping, expected)
    assert counted.lines > 60
    for at in range(1, counted.lines + 1, step):
        stopped(batch, Interrupt(at), stopping, expected)
