"""JSON files that end with a checksum: what is not of the wanted format and version is one clear error."""

from __future__ import annotations

from pathlib import Path

import pytest

from isthmus.errors import StoreError
from isthmus.graph.store.sealed_json import SEAL, ZEROS, digest, sealed, unsealed

BODY = {"format": "a-format", "version": 1, "names": ["ä", "checksum"]}


def forged(text: str) -> bytes:
    """Any text, with the right checksum at its end."""
    blank = text.encode() + SEAL
    return blank.replace(ZEROS.encode(), digest(blank).encode())


def test_round_trip(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(sealed(BODY))
    found = unsealed(tmp_path / "f", "a-format", 1)
    assert len(found.pop("checksum")) == 16 and found == BODY


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "f: No such file or directory"),
        (b"", r"f: is damaged \(its checksum does not match\)"),
        (sealed(BODY)[:-1], "f: is damaged"),
        (sealed(BODY).replace(b"a-format", b"b-format"), "f: is damaged"),
        (sealed({**BODY, "format": 7}), "f: expected the format a-format, found 7"),
        (sealed({"version": 1}), "a-format, found None"),
        (sealed({**BODY, "version": 2}), "f: written in format version 2, this Isthmus reads version 1"),
        (forged("no JSON"), "f: expected JSON: "),
        (forged("[" * 5000), "f: expected JSON: "),
    ],
    ids=str,
)
def test_others_are_refused(tmp_path: Path, data: bytes | None, message: str) -> None:
    if data is not None:
        (tmp_path / "f").write_bytes(data)
    for remedy in ("", "do this"):
        with pytest.raises(StoreError, match=message) as error:
            unsealed(tmp_path / "f", "a-format", 1, remedy)
        assert str(error.value).endswith("; do this") == bool(remedy) and "\n" not in str(error.value)


def test_every_bit_and_every_length(tmp_path: Path) -> None:
    whole = sealed(BODY)
    flips = (
        whole[: bit // 8] + bytes([whole[bit // 8] ^ 1 << bit % 8]) + whole[bit // 8 + 1 :]
        for bit in range(8 * len(whole))
    )
    for data in (*(whole[:size] for size in range(len(whole))), *flips):
        (tmp_path / "f").write_bytes(data)
        with pytest.raises(StoreError, match="f: is damaged"):
            unsealed(tmp_path / "f", "a-format", 1)
