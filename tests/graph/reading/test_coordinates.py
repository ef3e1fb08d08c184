"""DIMACS .co files."""

from __future__ import annotations

import gzip

import pytest

import isthmus as ist
from isthmus.errors import GraphFormatError


def test_coordinates(tmp_path, sized):
    text = "c cities\np aux sp co 3\nv 2 -73530767 41085396\nv 1 5 -6\nc\nv 3 5000000000 7\n"
    path = tmp_path / "g.co.gz"
    path.write_bytes(gzip.compress(text.encode()))
    expected = {"vertex": [2, 1, 3], "x": [-73530767, 5, 5_000_000_000], "y": [41085396, -6, 7]}
    assert ist.coordinates(path).to_pydict() == expected
    sized(text_chunk=30)
    assert ist.coordinates(str(path)).to_pydict() == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p sp 3 1\n", r"g.co:1: expected 'p aux sp co vertices', got 'p sp 3 1'"),
        ("c\n", r"g.co: expected a line 'p aux sp co vertices', found none"),
        ("p aux sp co 1\nv 2 1 1\n", r"g.co:2: expected vertices from 1 to 1, got 'v 2 1 1'"),
        ("p aux sp co 1\nv 1 1.5 1\n", r"g.co:2: expected 'v vertex x y' with whole numbers, got 'v 1 1.5 1'"),
        ("p aux sp co 2\nv 1 1 1\nv 2 1 1.5\n", r"g.co:3: expected 'v vertex x y' with whole numbers, got 'v 2 1 1.5'"),
        ("p aux sp co 2\nv 1 1 1\n", r"g.co: holds 1 lines of edges, its header promises 2"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, message):
    (tmp_path / "g.co").write_text(text)
    with pytest.raises(GraphFormatError, match=message):
        ist.coordinates(tmp_path / "g.co")


def test_a_missing_file(tmp_path):
    with pytest.raises(GraphFormatError, match=r"none.co: no such file"):
        ist.coordinates(tmp_path / "none.co")
