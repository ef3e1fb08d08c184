"""The properties of a WebGraph graph: counts, the parameters of the format, and which code each kind of number has.

The file is one of Java's: lines `name=value`. `compressionflags` names the codes that are not the usual ones, as in
`OUTDEGREES_DELTA | RESIDUALS_GAMMA`. WebGraph's variant in Rust writes the byte order as `endianness`; its code for
BLOCKS is that of their count, too, and it has one for INTERVALS, which are in gamma code otherwise.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isthmus.errors import GraphFormatError
from isthmus.graph.reading.text_lines import shortened
from isthmus.graph.store.files import Array
from isthmus.kernels.text import bit_codes as codes
from isthmus.kernels.text import bv_successors

CLASSES = ("it.unimi.dsi.webgraph.BVGraph", "it.unimi.dsi.big.webgraph.BVGraph")
VERSIONS = ("0", "1")  # 1: written by Rust, little-endian or with further codes
MOST_BYTES = 1 << 20
MOST = 1 << 28  # of a parameter
# Lists whose bounds are copied for every block: no more than a block's own. WebGraph's default is 7.
MOST_WINDOW = 1 << 16
PARTS = {
    "OUTDEGREES": bv_successors.DEGREE,
    "REFERENCES": bv_successors.REFERENCE,
    "BLOCK_COUNT": bv_successors.BLOCK_COUNT,
    "BLOCKS": bv_successors.BLOCK,
    "INTERVALS": bv_successors.INTERVAL,
    "RESIDUALS": bv_successors.RESIDUAL,
}
CODES = {
    "UNARY": codes.UNARY,
    "GAMMA": codes.GAMMA,
    "DELTA": codes.DELTA,
    "ZETA": codes.ZETA,
    "GOLOMB": codes.GOLOMB,
    "NIBBLE": codes.NIBBLE,
    "OMEGA": codes.OMEGA,
    "PI": codes.PI,
}
USUAL = {
    "OUTDEGREES": "GAMMA",
    "REFERENCES": "UNARY",
    "BLOCK_COUNT": "GAMMA",
    "BLOCKS": "GAMMA",
    "INTERVALS": "GAMMA",
    "RESIDUALS": "ZETA",
}


@dataclass(frozen=True)
class BvProperties:
    """How to read NAME.graph. `codes` has a row for each part: a code and its parameter."""

    vertices: int
    arcs: int
    window: int
    shortest: int  # interval; 0: there are none
    codes: Array
    little: bool | None  # None: big-endian


def read_properties(path: Path) -> BvProperties:
    """The properties of a file; an error if they do not describe a graph that can be read."""
    found = Found(path, properties_of(path))
    found.check_kind()
    return BvProperties(
        vertices=found.whole("nodes", 0, 1 << 62),
        arcs=found.whole("arcs", 0, 1 << 62),
        window=found.whole("windowsize", 0, MOST_WINDOW),
        shortest=found.whole("minintervallength"),
        codes=found.codes(),
        little=True if found.one_of("endianness", ("big", "little"), "big") == "little" else None,
    )


def properties_of(path: Path) -> dict[str, str]:
    """Names and values, as Java writes them: a backslash stands before characters that would mean something else."""
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES).decode("latin-1")
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        why = "no such file; a WebGraph graph needs it" if missing else f"cannot read: {error.strerror}"
        raise GraphFormatError(f"{path}: {why}") from error
    pairs = {}
    for line in text.splitlines():
        if line.strip() and line.lstrip()[0] not in "#!":
            name, _, value = re.sub(r"\s*[=:]\s*|\s+", "=", line.strip(), count=1).partition("=")
            pairs[name] = re.sub(r"\\(.)", r"\1", value)
    return pairs


class Found:
    """Names and values of a file, checked one by one."""

    def __init__(self, path: Path, pairs: dict[str, str]) -> None:
        self._path, self._pairs = path, pairs

    def check_kind(self) -> None:
        kind = self._pairs.get("graphclass")
        if kind not in CLASSES:
            inner = self._pairs.get("underlyinggraph")
            hint = f"; its graph without labels is {shortened(inner.encode())!r}" if inner else ""
            raise self.unexpected("graphclass", CLASSES[0], hint)
        self.one_of("version", VERSIONS)

    def one_of(self, name: str, expected: tuple[str, ...], default: str | None = None) -> str:
        value = self._pairs.get(name, default)
        if value not in expected:
            raise self.unexpected(name, " or ".join(expected))
        return value

    def whole(self, name: str, least: int = 0, most: int = MOST, default: int | None = None) -> int:
        text = self._pairs.get(name, "" if default is None else str(default))
        if not re.fullmatch(r"[0-9]{1,19}", text) or not least <= int(text) <= most:
            raise self.unexpected(name, f"a whole number from {least} to {most}")
        return int(text)

    def codes(self) -> Array:
        """A code and its parameter for every part."""
        named = dict(USUAL)
        for flag in filter(None, (word.strip() for word in self._pairs.get("compressionflags", "").split("|"))):
            part, _, code = flag.upper().rpartition("_")
            if part not in (*PARTS, "OFFSETS") or not re.fullmatch(
                r"ZETA[1-7]?|PI[1-4]|UNARY|GAMMA|DELTA|GOLOMB|NIBBLE|OMEGA", code
            ):
                raise self.unexpected(
                    "compressionflags", "codes such as OUTDEGREES_DELTA", f"; {shortened(flag.encode())!r} is unknown"
                )
            named[part] = code
            if part == "BLOCKS" and "endianness" in self._pairs:
                named["BLOCK_COUNT"] = code
        k = self.whole("zetak", 1, default=3)
        table = np.zeros((len(PARTS), 2), np.int64)
        for part, row in PARTS.items():
            name = named[part].rstrip("1234567")
            table[row] = CODES[name], int(named[part][len(name) :] or k)
        return table

    def unexpected(self, name: str, expected: Any, hint: str = "") -> GraphFormatError:
        got = repr(shortened(self._pairs[name].encode())) if name in self._pairs else "none"
        return GraphFormatError(f"{self._path}: {name}: expected {expected}, got {got}{hint}")
