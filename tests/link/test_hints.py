"""What each configuration of unified memory does with pages."""

from __future__ import annotations

import pytest

from isthmus.link.hints import Hint


@pytest.mark.parametrize(
    ("hint", "prefetches", "direct", "evicts", "copies_back"),
    [
        ("none", False, False, True, True),
        ("prefetch", True, False, True, True),
        ("accessed-by", False, True, False, True),
        ("preferred-location", False, False, True, True),
        ("read-mostly", False, False, True, False),
        ("prefetch+accessed-by", True, True, False, True),
        ("prefetch+preferred-location", True, False, True, True),
        ("prefetch+read-mostly", True, False, True, False),
    ],
)
def test_hints(hint, prefetches, direct, evicts, copies_back):
    found = Hint(hint)
    assert (found.prefetches, found.direct, found.evicts, found.copies_back) == (
        prefetches,
        direct,
        evicts,
        copies_back,
    )


def test_all_configurations_of_the_paper():
    """Table 1 has eight columns."""
    assert len(Hint) == 8
    with pytest.raises(ValueError, match="read-only"):
        Hint("read-only")
