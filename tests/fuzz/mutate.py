"""Damaged variants of a file: bits, bytes and stretches changed, and words that parsers stumble over put in."""

from __future__ import annotations

import random
from collections.abc import Callable

NUMBERS = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**63 - 1, 2**63, 2**64 - 1]
WORDS = [
    b"",
    b"\n",
    b"\r",
    b"\r\n",
    b"\0",
    b"\t",
    b" ",
    b",",
    b";",
    b'"',
    b'""',
    b"#",
    b"%",
    b"-",
    b"+",
    b".",
    b"e",
    b"0",
    b"-1",
    b"1e309",
    b"nan",
    b"inf",
    b"\xff",
    b"\xef\xbb\xbf",
    "é".encode(),
    b"\xc3",
    b"\xed\xa0\x80",
    b"source",
    b"weight",
    *(str(n).encode() for n in NUMBERS),
    *(n.to_bytes(8, "little") for n in NUMBERS),
    *(n.to_bytes(4, "little") for n in NUMBERS if n < 2**32),
]
MOST_BYTES = 1 << 16  # of a variant


def flip(data: bytearray, dice: random.Random) -> None:
    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)


def replace(data: bytearray, dice: random.Random) -> None:
    data[dice.randrange(len(data))] = dice.randrange(256)


def write_word(data: bytearray, dice: random.Random) -> None:
    word, at = dice.choice(WORDS), dice.randrange(len(data))
    data[at : at + len(word)] = word


def insert_word(data: bytearray, dice: random.Random) -> None:
    at = dice.randrange(len(data) + 1)
    data[at:at] = dice.choice(WORDS)


def remove(data: bytearray, dice: random.Random) -> None:
    at = dice.randrange(len(data))
    del data[at : at + dice.choice([1, 2, 8, 64])]


def repeat(data: bytearray, dice: random.Random) -> None:
    at = dice.randrange(len(data))
    data[at:at] = data[at : at + dice.choice([1, 8, 64])] * dice.choice([1, 2, 50])


def move(data: bytearray, dice: random.Random) -> None:
    at, to, size = dice.randrange(len(data)), dice.randrange(len(data)), dice.choice([4, 16, 64])
    data[to : to + size] = data[at : at + size]


def truncate(data: bytearray, dice: random.Random) -> None:
    del data[dice.randrange(len(data)) :]


HOW: list[Callable[[bytearray, random.Random], None]] = [
    flip,
    flip,
    replace,
    write_word,
    write_word,
    insert_word,
    remove,
    repeat,
    move,
    truncate,
]


def mutated(data: bytes, dice: random.Random) -> bytes:
    """`data` with one to five changes."""
    found = bytearray(data)
    for _ in range(dice.choice([1, 1, 2, 3, 5])):
        if found:
            dice.choice(HOW)(found, dice)
    return bytes(found[:MOST_BYTES])
