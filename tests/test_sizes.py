"""Sizes can be set for a while, for all threads, and only sizes that exist."""

from __future__ import annotations

import threading

import pytest

from isthmus import sizes


def test_sizes_hold_inside_with_and_nest():
    usual = sizes.now
    with sizes.using(piece=300) as inside:
        assert inside is sizes.now
        assert (sizes.now.piece, sizes.now.alone) == (300, usual.alone)
        with sizes.using(alone=0):
            assert (sizes.now.piece, sizes.now.alone) == (300, 0)
        assert sizes.now is inside
    assert sizes.now is usual


def test_sizes_are_put_back_after_an_error():
    usual = sizes.now
    with pytest.raises(ZeroDivisionError), sizes.using(piece=1):
        raise ZeroDivisionError
    assert sizes.now is usual


def test_threads_see_them():
    """A team's members and readers started before, or inside, work with the same sizes."""
    seen = []
    begin = threading.Event()
    early = threading.Thread(target=lambda: (begin.wait(), seen.append(sizes.now.piece)))
    early.start()
    with sizes.using(piece=300):
        begin.set()
        late = threading.Thread(target=lambda: seen.append(sizes.now.piece))
        late.start()
        early.join()
        late.join()
    assert seen == [300, 300]


def test_a_name_that_is_no_size():
    with pytest.raises(TypeError, match="pieces"), sizes.using(pieces=300):
        pass


def test_the_fixture(sized):
    sized(piece=300)
    sized(alone=0)
    assert (sizes.now.piece, sizes.now.alone) == (300, 0)
