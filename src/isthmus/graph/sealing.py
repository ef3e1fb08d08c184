"""JSON files that end with a checksum of all their bytes, so that a flipped bit anywhere is found when they are read."""

from __future__ import annotations

import json
from typing import Any

import xxhash

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
    return cut >= 0 and data[cut:] == SEAL.replace(ZEROS.encode(), checksum) and checksum == digest(data[:cut] + SEAL).encode()
