"""The manifest: round trip, every flipped bit, and claims that cannot be true."""

from __future__ import annotations

import json
from typing import Any

import pytest

from isthmus.errors import StoreError
from isthmus.graph.store.manifest import Manifest, Section, decode
from isthmus.graph.store.sealed_json import ZEROS, digest

SECTIONS = {"out.offsets": Section("int64", 4, "1" * 16), "out.targets": Section("uint32", 6, "2" * 16)}
TRIANGLE = Manifest(3, 3, 6, False, False, "dense", sections=SECTIONS, origin={"seed": 1, "names": ["ä", "checksum"]})


def sealed(body: Any) -> bytes:
    """Any JSON with a checksum that is right."""
    if isinstance(body, dict):
        body = {**body, "checksum": ZEROS}
    blank = json.dumps(body, indent=1).encode() + b"\n"
    return blank.replace(f'"{ZEROS}"\n}}'.encode(), f'"{digest(blank)}"\n}}'.encode())


def body_of(manifest: Manifest = TRIANGLE, **changes: Any) -> dict[str, Any]:
    body = json.loads(manifest.encode())
    body.pop("checksum")
    return {**body, **changes}


def section(name: str, **changes: Any) -> dict[str, Any]:
    sections = body_of()["sections"]
    return {"sections": {**sections, name: {**sections[name], **changes}}}


def test_round_trip() -> None:
    assert decode(TRIANGLE.encode(), "here") == TRIANGLE
    assert decode(sealed(body_of()), "here") == TRIANGLE  # so that the refusals below are for their own reasons


def test_sections_know_their_size() -> None:
    assert (Section("uint32", 1025).bytes, Section("uint32", 1025).blocks) == (4100, 2)
    assert (Section("int64", 0).bytes, Section("int64", 0).blocks) == (0, 0)
    assert Section("uint64", 2**40).bytes == 2**43


def test_every_flipped_bit_is_found() -> None:
    good = TRIANGLE.encode()
    for at in range(len(good)):
        for bit in range(8):
            bad = bytearray(good)
            bad[at] ^= 1 << bit
            with pytest.raises(StoreError, match="the manifest is damaged"):
                decode(bytes(bad), "here")


@pytest.mark.parametrize("cut", [0, 1, 15, 40, -1])
def test_truncated(cut: int) -> None:
    with pytest.raises(StoreError, match="the manifest is damaged"):
        decode(TRIANGLE.encode()[:cut], "here")


def test_longer() -> None:
    with pytest.raises(StoreError, match="the manifest is damaged"):
        decode(TRIANGLE.encode() + b" ", "here")


def test_version_and_format() -> None:
    with pytest.raises(StoreError, match="here: written in format version 2, this Isthmus reads version 1"):
        decode(sealed(body_of(version=2)), "here")
    with pytest.raises(StoreError, match="here: not an Isthmus store"):
        decode(sealed(body_of(format="png")), "here")
    with pytest.raises(StoreError, match="here: not an Isthmus store"):
        decode(sealed({"some": "settings"}), "here")


def test_members_missing_or_unknown() -> None:
    body = body_of()
    del body["arcs"]
    with pytest.raises(StoreError, match=r"does not have the expected members.*arcs"):
        decode(sealed(body), "here")
    with pytest.raises(StoreError, match=r"does not have the expected members.*colour"):
        decode(sealed(body_of(colour="red")), "here")
    with pytest.raises(StoreError, match="does not have the expected members"):
        decode(sealed(body_of(sections=[1, 2])), "here")
    with pytest.raises(StoreError, match="does not have the expected members"):
        decode(sealed(body_of(sections={"out.offsets": 5})), "here")


def test_nesting_without_end() -> None:
    deep = b'{"a": ' * 100_000 + b'0\n,"checksum": "' + ZEROS.encode() + b'"\n}\n'
    with pytest.raises(StoreError):
        decode(deep.replace(ZEROS.encode(), digest(deep).encode()), "here")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vertices": "3"}, "expected vertices to be a count, got '3'"),
        ({"vertices": 3.0}, r"expected vertices to be a count, got 3\.0"),
        ({"vertices": True}, "expected vertices to be a count, got True"),
        ({"vertices": -1}, "expected vertices to be a count, got -1"),
        ({"arcs": None}, "expected arcs to be a count, got None"),
        ({"directed": 0}, "expected directed to be true or false, got 0"),
        ({"ids": None}, "expected ids to be a text, got None"),
        ({"origin": []}, r"expected origin to be an object, got \[\]"),
        (section("out.targets", count="6"), r"expected out\.targets\.count to be a count, got '6'"),
        (section("out.targets", dtype=4), r"expected out\.targets\.dtype to be a text, got 4"),
        (section("out.targets", checksums=0), r"expected out\.targets\.checksums to be a text, got 0"),
        ({"edges": 4}, "claims 4 undirected edges, 0 self loops and 6 arcs, which do not agree"),
        ({"directed": True}, "claims 3 directed edges, 0 self loops and 6 arcs, which do not agree"),
        ({"self_loops": 1}, "claims 3 undirected edges, 1 self loops and 6 arcs, which do not agree"),
        ({"edges": 6, "self_loops": 7, "directed": True}, "7 self loops and 6 arcs, which do not agree"),
        ({"vertices": 4}, r"section out\.offsets claims 4 entries, expected 5"),
        ({"vertices": 10**4000}, "expected vertices to be a count, got 1000"),
        ({"vertices": 2**60}, r"section out\.offsets claims 4 entries, expected 1152921504606846977"),
        (section("out.targets", count=2**60), r"section out\.targets claims 1152921504606846976 entries, expected 6"),
        (section("out.targets", dtype="float16"), r"section out\.targets has type 'float16'"),
        (section("out.offsets", dtype="uint64"), r"section out\.offsets has type 'uint64'"),
        ({"weighted": True}, r"sections missing or unexpected: out\.weights"),
        ({"order": "hub"}, r"missing or unexpected: order\.from_natural, order\.to_natural"),
        ({"order": "random"}, "unknown order 'random'"),
        ({"ids": "uuid"}, "unknown kind of ids 'uuid'"),
        ({"ids": "string"}, r"missing or unexpected: ids\.bytes, ids\.offsets"),
        (
            {"sections": {**body_of()["sections"], "../../etc/passwd": {"dtype": "uint8", "count": 1}}},
            "missing or unexpected: ../../etc",
        ),
        (
            {"ids": "uint64", "sections": {**body_of()["sections"], "ids.values": {"dtype": "int64", "count": 3}}},
            r"ids\.values has type 'int64', the ids are uint64",
        ),
    ],
)
def test_claims_that_cannot_be_true(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(StoreError, match=message):
        decode(sealed(body_of(**changes)), "here")
