"""The manifest of a store: what the graph is, which sections hold it, and a checksum over its own bytes.

The file is JSON whose last member is `"checksum"`: the xxh3-64 of the file's bytes with those sixteen digits
written as zeros. A flipped bit anywhere in it, white space included, is therefore found on opening.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from isthmus.errors import StoreError
from isthmus.graph.store.files import BLOCK
from isthmus.graph.store.sealed_json import ZEROS, is_sealed, sealed

FORMAT = "isthmus-store"
VERSION = 1
NAME = "manifest.json"
MAX_COUNT = 1 << 128  # far above any count; Python does not print numbers without end
ANY_COUNT = -1  # of a section whose count does not follow from those of the graph
MAX_BYTES = 1 << 20  # far above the size of any manifest
DTYPES = {
    "out.offsets": {"int64"},
    "out.targets": {"uint32", "uint64"},
    "out.weights": {"int32", "int64", "float32", "float64"},
    "in.offsets": {"int64"},
    "in.targets": {"uint32", "uint64"},
    "in.weights": {"int32", "int64", "float32", "float64"},
    "ids.values": {"int64", "uint64"},
    "ids.offsets": {"int64"},
    "ids.bytes": {"uint8"},
    "order.to_natural": {"uint32", "uint64"},
    "order.from_natural": {"uint32", "uint64"},
}
COUNTS = ("vertices", "edges", "arcs", "self_loops")
FLAGS = ("directed", "weighted", "parallel", "in_edges", "negative_weights")
NOUNS = {int: "a count", bool: "true or false", str: "a text", dict: "an object"}


@dataclass(frozen=True)
class Section:
    """One raw little-endian array. `checksums` is the xxh3-64 of its table of block checksums."""

    dtype: str
    count: int
    checksums: str = ZEROS

    @property
    def bytes(self) -> int:
        return self.count * np.dtype(self.dtype).itemsize

    @property
    def blocks(self) -> int:
        return -(-self.bytes // BLOCK)


@dataclass
class Manifest:
    """The description of a stored graph: `edges` counts an undirected edge once, `arcs` counts stored directions."""

    vertices: int
    edges: int
    arcs: int
    directed: bool
    weighted: bool
    ids: str  # dense, int64, uint64 or string
    order: str = "natural"
    self_loops: int = 0
    parallel: bool = False  # whether there may be parallel edges
    in_edges: bool = False
    negative_weights: bool = False
    origin: dict[str, Any] = field(default_factory=dict)
    sections: dict[str, Section] = field(default_factory=dict)

    def encode(self) -> bytes:
        return sealed({"format": FORMAT, "version": VERSION, **asdict(self)})


def decode(data: bytes, where: str) -> Manifest:
    """Check and read a manifest. Every count that a later step allocates by is checked here or against the files."""
    if not is_sealed(data):
        raise StoreError(f"{where}: the manifest is damaged (its checksum does not match)")
    try:
        body = json.loads(data)
        if not isinstance(body, dict) or body.pop("format", None) != FORMAT:
            raise StoreError(f"{where}: not an Isthmus store")
        version = body.pop("version")
        if version != VERSION:
            raise StoreError(f"{where}: written in format version {version}, this Isthmus reads version {VERSION}")
        body.pop("checksum")
        sections = {name: Section(**section) for name, section in body.pop("sections").items()}
        manifest = Manifest(**body, sections=sections)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StoreError(f"{where}: the manifest does not have the expected members: {error}") from error
    check_types(manifest, where)
    check_counts(manifest, where)
    check_sections(manifest, where)
    return manifest


def check_types(manifest: Manifest, where: str) -> None:
    """Check the types of all members, so that a wrong one gives a clear message: JSON guarantees no types."""
    typed: list[tuple[str, Any, type]] = [(name, getattr(manifest, name), int) for name in COUNTS]
    typed += [(name, getattr(manifest, name), bool) for name in FLAGS]
    typed += [(name, getattr(manifest, name), str) for name in ("ids", "order")] + [("origin", manifest.origin, dict)]
    for name, section in manifest.sections.items():
        typed += [(f"{name}.dtype", section.dtype, str), (f"{name}.count", section.count, int)]
        typed += [(f"{name}.checksums", section.checksums, str)]
    for name, value, kind in typed:
        if type(value) is not kind or (isinstance(value, int) and not 0 <= value < MAX_COUNT):
            raise StoreError(f"{where}: expected {name} to be {NOUNS[kind]}, got {value!r}")


def check_counts(manifest: Manifest, where: str) -> None:
    """Check that edges, arcs and self loops agree."""
    edges, arcs, loops = manifest.edges, manifest.arcs, manifest.self_loops
    if loops > edges or arcs != (edges if manifest.directed else 2 * edges - loops):
        kind = "directed" if manifest.directed else "undirected"
        raise StoreError(
            f"{where}: claims {edges} {kind} edges, {loops} self loops and {arcs} arcs, which do not agree"
        )


def check_sections(manifest: Manifest, where: str) -> None:
    """Check the sections' names, types and counts against the counts of the graph."""
    expected = expected_counts(manifest, where)
    if set(expected) != set(manifest.sections):
        odd = sorted(set(expected) ^ set(manifest.sections))
        raise StoreError(f"{where}: sections missing or unexpected: {', '.join(odd)}")
    for name, section in manifest.sections.items():
        if section.dtype not in DTYPES[name]:
            raise StoreError(f"{where}: section {name} has type {section.dtype!r}")
        if expected[name] not in (section.count, ANY_COUNT):
            raise StoreError(f"{where}: section {name} claims {section.count} entries, expected {expected[name]}")
        out = manifest.sections[name.replace("in.", "out.", 1)] if name.startswith("in.") else section
        if section.dtype != out.dtype:
            raise StoreError(
                f"{where}: section {name} has type {section.dtype!r}, and the out-edges have {out.dtype!r}"
            )
    if manifest.ids in ("int64", "uint64") and manifest.sections["ids.values"].dtype != manifest.ids:
        found = manifest.sections["ids.values"].dtype
        raise StoreError(f"{where}: section ids.values has type {found!r}, the ids are {manifest.ids}")


def expected_counts(manifest: Manifest, where: str) -> dict[str, int]:
    """The sections that such a graph has, with their counts. Raises StoreError for unknown kinds of ids or order."""
    n, arcs = manifest.vertices, manifest.arcs
    expected = {"out.offsets": n + 1, "out.targets": arcs}
    if manifest.weighted:
        expected["out.weights"] = arcs
    if manifest.directed and manifest.in_edges:
        expected |= {"in.offsets": n + 1, "in.targets": arcs}
        if manifest.weighted:
            expected["in.weights"] = arcs
    if manifest.ids in ("int64", "uint64"):
        expected["ids.values"] = n
    elif manifest.ids == "string":
        expected |= {"ids.offsets": n + 1, "ids.bytes": ANY_COUNT}
    elif manifest.ids != "dense":
        raise StoreError(f"{where}: unknown kind of ids {manifest.ids!r}")
    if manifest.order == "hub":
        expected |= {"order.to_natural": n, "order.from_natural": n}
    elif manifest.order != "natural":
        raise StoreError(f"{where}: unknown order {manifest.order!r}")
    return expected
