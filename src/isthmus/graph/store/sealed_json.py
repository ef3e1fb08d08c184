"""JSON files that end with a checksum of all their bytes, so that a flipped bit is found when they are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import xxhash

from isthmus.errors import StoreError

ZEROS = "0" * 16
SEAL = f'"checksum": "{ZEROS}"\n}}\n'.encode()  # how a file ends before its checksum is known


def digest(data: Any) -> str:
    return xxhash.xxh3_64_hexdigest(data)


def sealed(body: dict[str, Any]) -> bytes:
    """`body` as JSON that ends with a checksum of the whole text."""
    blank = json.dumps({**body, "checksum": ZEROS}, indent=1).encode() + b"\n"
    return blank[: -len(SEAL)] + SEAL.replace(ZEROS.encode(), digest(blank).encode())


def is_sealed(data: bytes) -> bool:
    """Whether `data` ends with its correct checksum."""
    cut = len(data) - len(SEAL)
    checksum = data[cut + 13 : cut + 29]
    return (
        cut >= 0
        and data[cut:] == SEAL.replace(ZEROS.encode(), checksum)
        and checksum == digest(data[:cut] + SEAL).encode()
    )


def unsealed(path: Path, format: str, version: int, remedy: str = "") -> dict[str, Any]:
    """The contents of a sealed file of this format and version. Raises StoreError, which ends with `remedy`."""
    help = remedy and f"; {remedy}"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}{help}") from error
    if not is_sealed(data):
        raise StoreError(f"{path}: is damaged (its checksum does not match){help}")
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:  # a checksum can be forged
        raise StoreError(f"{path}: expected JSON: {error}{help}") from error
    if body.get("format") != format:
        raise StoreError(f"{path}: expected the format {format}, found {body.get('format')!r}{help}")
    if body.get("version") != version:
        raise StoreError(
            f"{path}: written in format version {body.get('version')}, this Isthmus reads version {version}{help}"
        )
    return dict(body)
