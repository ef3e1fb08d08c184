"""A slow writer of WebGraph's BV format, independent of ours: bits are text, codes follow their definitions, references
are random.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path


@dataclass
class Coder:
    """Codes of natural numbers as text of zeros and ones, in the order of the stream."""

    little: bool = False

    def digits(self, value: int, width: int) -> str:
        bits = format(value, f"0{width}b") if width else ""
        return bits[::-1] if self.little else bits

    def truncated(self, value: int, bound: int) -> str:
        """Truncated binary code: the first numbers below `bound` have a bit less."""
        width = bound.bit_length() - 1
        short = (2 << width) - bound
        if value < short:
            return self.digits(value, width)
        return self.digits((value + short) >> 1, width) + self.digits((value + short) & 1, 1)

    def unary(self, n: int) -> str:
        return "0" * n + "1"

    def gamma(self, n: int) -> str:
        width = (n + 1).bit_length() - 1
        return self.unary(width) + self.digits(n + 1 - (1 << width), width)

    def delta(self, n: int) -> str:
        width = (n + 1).bit_length() - 1
        return self.gamma(width) + self.digits(n + 1 - (1 << width), width)

    def zeta(self, n: int, k: int) -> str:
        run = ((n + 1).bit_length() - 1) // k
        low = 1 << run * k
        return self.unary(run) + self.truncated(n + 1 - low, (low << k) - low)

    def golomb(self, n: int, k: int) -> str:
        return self.unary(n // k) + self.truncated(n % k, k)

    def nibble(self, n: int) -> str:
        digits = [self.digits(int(digit), 3) for digit in format(n, "o")]
        return "".join(f"{int(place == len(digits))}{digit}" for place, digit in enumerate(digits, 1))

    def omega(self, n: int) -> str:
        def blocks(m: int) -> str:
            width = m.bit_length() - 1
            return blocks(width) + "1" + self.digits(m - (1 << width), width) if m > 1 else ""

        return blocks(n + 1) + "0"

    def pi(self, n: int, k: int) -> str:
        width = (n + 1).bit_length() - 1
        return (
            self.unary(width >> k) + self.digits(width & ((1 << k) - 1), k) + self.digits(n + 1 - (1 << width), width)
        )

    def code(self, name: str, n: int, k: int = 3) -> str:
        """A number by the name of a code: GAMMA, ZETA (with `k`), ZETA2, ..."""
        kind, own = re.fullmatch(r"([A-Z]+)(\d?)", name).groups()
        return getattr(self, kind.lower())(n, *([int(own or k)] if kind in ("ZETA", "GOLOMB", "PI") else []))

    def packed(self, bits: str) -> bytes:
        """The bits as bytes of a file."""
        parts = [bits[at : at + 8].ljust(8, "0") for at in range(0, len(bits), 8)]
        return bytes(int(part[::-1] if self.little else part, 2) for part in parts)


USUAL = {
    "OUTDEGREES": "GAMMA",
    "REFERENCES": "UNARY",
    "BLOCK_COUNT": "GAMMA",
    "BLOCKS": "GAMMA",
    "INTERVALS": "GAMMA",
    "RESIDUALS": "ZETA",
}


@dataclass
class Bv:
    """How to write a graph. `flags` are codes that are not the usual ones."""

    window: int = 7
    shortest: int = 4
    k: int = 3
    little: bool = False
    rust: bool = False  # the variant that has `endianness`, and one code for blocks and their count
    flags: dict[str, str] = field(default_factory=dict)

    def part(self, name: str, n: int) -> str:
        flags = dict(self.flags)
        if self.rust and "BLOCKS" in flags:
            flags["BLOCK_COUNT"] = flags["BLOCKS"]
        return Coder(self.little).code({**USUAL, **flags}[name], n, self.k)

    def bits(self, lists: list[list[int]], dice: random.Random) -> str:
        return "".join(self.list_bits(x, lists, dice.randint(0, min(self.window, x))) for x in range(len(lists)))

    def list_bits(self, x: int, lists: list[list[int]], back: int) -> str:
        neighbours = lists[x]
        bits = self.part("OUTDEGREES", len(neighbours))
        if not neighbours:
            return bits
        if self.window:
            bits += self.part("REFERENCES", back)
        shared = [(v in neighbours) for v in lists[x - back]] if back else []
        if back:
            runs = [(taken, len(list(run))) for taken, run in groupby(shared)]
            blocks = [size for _, size in ([] if not runs or runs[0][0] else [(True, 0)]) + runs][:-1]
            bits += self.part("BLOCK_COUNT", len(blocks))
            bits += "".join(self.part("BLOCKS", size - (place > 0)) for place, size in enumerate(blocks))
        extras = [v for v in neighbours if not back or v not in lists[x - back]]
        return bits + (self.extra_bits(x, extras) if extras else "")

    def extra_bits(self, x: int, extras: list[int]) -> str:
        runs = [[v for _, v in run] for _, run in groupby(enumerate(extras), lambda pair: pair[1] - pair[0])]
        long = [run for run in runs if self.shortest and len(run) >= self.shortest]
        bits = self.part("INTERVALS", len(long)) if self.shortest else ""
        for before, run in zip([None, *long], long, strict=False):
            bits += self.part("INTERVALS", natural(run[0] - x) if before is None else run[0] - before[-1] - 2)
            bits += self.part("INTERVALS", len(run) - self.shortest)
        rest = [v for run in runs if run not in long for v in run]
        gaps = [natural(v - x) if place == 0 else v - rest[place - 1] - 1 for place, v in enumerate(rest)]
        return bits + "".join(self.part("RESIDUALS", gap) for gap in gaps)

    def properties(self, vertices: int, count: int, **changes: object) -> str:
        found: dict[str, object] = {
            "graphclass": "it.unimi.dsi.webgraph.BVGraph",
            "version": int(self.little),
            "nodes": vertices,
            "arcs": count,
            "windowsize": self.window,
            "maxrefcount": 3,
            "minintervallength": self.shortest,
            "zetak": self.k,
            "compressionflags": " | ".join(f"{part}_{code}" for part, code in self.flags.items()),
        }
        if self.rust:
            found["endianness"] = "little" if self.little else "big"
        found |= changes
        return "#BVGraph properties\n" + "".join(
            f"{name}={value}\n" for name, value in found.items() if value is not None
        )

    def write(self, path: Path, lists: list[list[int]], seed: int = 0, **changes: object) -> Path:
        """Write path.graph and path.properties; `changes` are properties that are not as they should be (None:
        missing).
        """
        path.with_suffix(".graph").write_bytes(Coder(self.little).packed(self.bits(lists, random.Random(seed))))
        path.with_suffix(".properties").write_text(self.properties(len(lists), sum(map(len, lists)), **changes))
        return path.with_suffix(".graph")


def natural(n: int) -> int:
    return 2 * n if n >= 0 else -2 * n - 1


def similar_lists(vertices: int, seed: int) -> list[list[int]]:
    """Lists as the format is made for: parts of the lists before, runs, and single neighbours; some are empty."""
    dice = random.Random(seed)
    lists: list[list[int]] = []
    for x in range(vertices):
        found = (
            {v for v in lists[x - dice.randint(1, min(x, 5))] if dice.random() < 0.8}
            if x and dice.random() < 0.7
            else set()
        )
        for _ in range(dice.choice([0, 0, 1, 2])):
            first = dice.randrange(vertices)
            found |= set(range(first, min(first + dice.randint(2, 9), vertices)))
        found |= {dice.randrange(vertices) for _ in range(dice.choice([0, 1, 3]))}
        lists.append([] if dice.random() < 0.15 else sorted(found))
    return lists
