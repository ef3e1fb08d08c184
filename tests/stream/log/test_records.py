"""Batches as bytes, and back."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from isthmus.errors import BatchError
from isthmus.graph.changing.change import Edits
from isthmus.kernels.changing.packed_array import DELETE, INSERT, REWEIGH
from isthmus.stream.input.batch_columns import Kinds
from isthmus.stream.log.records import COLUMNS, LENGTH, Place, decode, encode

PLAIN = Kinds("int64", None)
WISHES = np.array([DELETE, INSERT, REWEIGH], np.uint8)


def texts(*values: str) -> Any:
    found = np.empty(len(values), object)
    found[:] = values
    return found


@pytest.mark.parametrize(
    ("kinds", "edits"),
    [
        (PLAIN, Edits(WISHES[:0], np.empty(0, np.int64), np.empty(0, np.int64))),
        (
            PLAIN,
            Edits(
                WISHES, np.array([1, 2, 3]), np.array([-5, 1 << 40, 0]), added=np.array([7]), removed=np.array([9, 8])
            ),
        ),
        (
            Kinds("dense", np.dtype(np.int32)),
            Edits(WISHES, np.arange(3), np.array([300, 70_000, 4]), np.array([1, -2, 3], np.int32)),
        ),
        (
            Kinds("uint64", np.dtype(np.float64)),
            Edits(WISHES, *np.full((2, 3), (1 << 64) - 1, np.uint64), np.array([0.1, 2.5, 3])),
        ),
        (
            Kinds("string", np.dtype(np.float32)),
            Edits(WISHES, texts("", "ä", "x\0y"), texts("a", "b" * 300, "c"), np.ones(3, np.float32)),
        ),
        (Kinds("string", None), Edits(WISHES[:0], texts(), texts(), added=texts("only", "vertices"))),
    ],
    ids=["empty", "integers", "weights", "large", "texts", "vertices"],
)
def test_what_is_written_is_read(kinds: Kinds, edits: Edits) -> None:
    place = Place("/in/put.csv", 70, "abc")
    data, checksum = encode(edits, "order 17", place)
    found = decode(data, kinds)
    assert (
        (found.id, found.place, found.checksum)
        == ("order 17", place, checksum)
        == ("order 17", place, encode(edits)[1])
    )
    for name in COLUMNS:
        ours, theirs = getattr(edits, name), getattr(found.edits, name)
        assert (ours is None and theirs is None) or (ours.tolist() == theirs.tolist() and ours.dtype == theirs.dtype), (
            name
        )
        assert theirs is None or theirs.flags.writeable, "kernels are compiled for arrays that can be written"


def test_small_ids_take_little() -> None:
    many = np.arange(10_000)
    data, _ = encode(Edits(np.ones(10_000, np.uint8), many, many[::-1].copy(), np.ones(10_000, np.int32)))
    assert len(data) < 10_000 * (1 + 2 + 2 + 4) + 200


def test_a_checksum_is_that_of_the_changes() -> None:
    one, two = (Edits(WISHES, np.arange(3), np.array([1, 2, last])) for last in (3, 4))
    assert encode(one, "a")[1] == encode(one, "b", Place("x", 1, ""))[1] != encode(two, "a")[1]


def changed(member: str, value: Any, edits: Edits | None = None) -> bytes:
    data, _ = encode(edits or Edits(WISHES, np.arange(3), np.arange(3)))
    (length,) = LENGTH.unpack_from(data)
    text = json.loads(data[LENGTH.size : LENGTH.size + length])
    head = json.dumps({**text, member: value}).encode()
    return LENGTH.pack(len(head)) + head + data[LENGTH.size + length :]


LISTED = [["wishes", "uint8", 3], ["sources", "uint8", 3], ["targets", "uint8", 3]]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "error"),
        (LENGTH.pack(4) + b"{abc", "JSONDecodeError"),
        (LENGTH.pack(2) + b"{}", "KeyError"),
        (LENGTH.pack(2) + b"[]", "TypeError"),
        (changed("arrays", [["wishes", "object", 3]]), "an array 'wishes' of 3 object"),
        (changed("arrays", [["wishes", "uint8", -1]]), "an array 'wishes' of -1 uint8"),
        (changed("arrays", [["wishes", "uint8", 10**9]]), "ValueError"),
        (changed("arrays", LISTED[:2]), "expected"),
        (changed("arrays", [LISTED[0], LISTED[1], ["added", "uint8", 3]]), "KeyError: 'targets'"),
        (
            changed("arrays", [LISTED[0], LISTED[1], ["targets", "uint8", 2], ["removed", "uint8", 1]]),
            "columns of different lengths",
        ),
        (changed("arrays", [["wishes", "uint8", 3], ["weights", "uint8", 3], ["sources", "uint8", 3]]), "'targets'"),
        (changed("arrays", LISTED, Edits(WISHES + np.uint8(1), np.arange(3), np.arange(3))), "an unknown operation"),
        (changed("id", 5), "expected a text for an id"),
        (changed("place", ["x", -1, ""]), "a place in an input"),
        (changed("place", ["x"]), "TypeError"),
    ],
    ids=range(15),
)
def test_other_bytes_are_an_error(data: bytes, message: str) -> None:
    with pytest.raises(BatchError, match=message):
        decode(data, PLAIN)


def test_a_batch_for_another_kind_of_graph() -> None:
    weighted, _ = encode(Edits(WISHES, np.arange(3), np.arange(3), np.array([1, 2, np.nan])))
    with pytest.raises(BatchError, match="weights for a graph without weights"):
        decode(weighted, PLAIN)
    with pytest.raises(BatchError, match="expected a finite number, got nan"):
        decode(weighted, Kinds("int64", np.dtype(np.float64)))
    with pytest.raises(BatchError, match="expected a string, as the graph's ids are"):
        decode(weighted, Kinds("string", np.dtype(np.float64)))
    named, _ = encode(Edits(WISHES, texts("a", "b", "c"), texts("a", "b", "c")))
    with pytest.raises(BatchError, match="expected an integer, as the graph's ids are"):
        decode(named, PLAIN)
    for lengths in ([3, 1, 1], [1, 1, 0]):
        broken = bytearray(named)
        at = bytes(broken).index(b"abc") - 3
        broken[at : at + 3] = bytes(lengths)
        with pytest.raises(BatchError, match="texts of another length"):
            decode(bytes(broken), Kinds("string", None))
