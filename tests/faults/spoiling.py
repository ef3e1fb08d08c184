"""Sound stores, and ways to spoil a copy: damage as disks and copies do it, and forgeries with right checksums.

A copy shares the files that stay as they are with the sound store, by hard links.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import isthmus as ist
from isthmus.graph.store.blocks import checksums
from isthmus.graph.store.files import BLOCK, padded
from isthmus.graph.store.sealed_json import digest, sealed

MANIFEST = "manifest.json"
Random = np.random.Generator
Array = Any
LAYERS = (300, 300, 100)  # vertices of each layer of the neural network


@dataclass
class Base:
    """A sound store, another with the same shape and other edges, and the answers of the jobs that can run on it."""

    name: str
    path: Path
    other: Path
    directed: bool
    weighted: bool
    layered: bool  # a neural network
    source: Any
    answers: dict[int, Any] = field(default_factory=dict)  # by the job's number


def bases(folder: Path) -> list[Base]:
    """Directed and undirected, weighted and not, all kinds of ids, both orders."""
    return [
        made(folder, "roads", directed=False, weights=np.int32, ids="int", order="natural"),
        made(folder, "web", directed=True, weights=None, ids="dense", order="hub"),
        made(folder, "names", directed=True, weights=np.float32, ids="string", order="natural"),
        made(folder, "friends", directed=False, weights=np.float64, ids="string", order="hub"),
        made(folder, "neurons", directed=True, weights=np.float64, ids="int", order="hub", layered=True),
    ]


def made(
    folder: Path,
    name: str,
    directed: bool,
    weights: Any,
    ids: str,
    order: str,
    layered: bool = False,
    parallel: str = "keep",
) -> Base:
    paths = [folder / f"{name}.isthmus", folder / f"{name}-other.isthmus"]
    for seed, path in enumerate(paths):
        random = np.random.default_rng(seed)
        n, m = 1500, 9000
        ends = (n * random.random((2, m)) ** [[2.0], [1.5]]).astype(np.int64)  # skewed degrees
        ends[:, :n] = [np.arange(n), (np.arange(n) + 1) % n]  # connected, and the same vertices in both stores
        if layered:
            ends = edges_between_layers(random, m)
        columns: dict[str, Any] = {"source": named(ends[0], ids), "target": named(ends[1], ids)}
        if weights is not None:
            columns["weight"] = random.integers(1, 100, m).astype(weights)
        kind = None if weights is None else np.dtype(weights).name
        ist.ingest(
            pa.table(columns), path, directed=directed, order=order, weight_dtype=kind, parallel=parallel
        ).close()
    return Base(name, *paths, directed, weights is not None, layered, named(np.array([0]), ids)[0])


def edges_between_layers(random: Random, count: int) -> Array:
    """Every edge leads to the next of LAYERS; every vertex has one."""
    first, second, third = LAYERS
    tails = np.append(np.arange(first + second), random.integers(0, first + second, count - first - second))
    places = np.append(np.arange(first + second), random.integers(0, 1 << 30, count - first - second))
    return np.array([tails, np.where(tails < first, first + places % second, first + second + places % third)])


def named(numbers: Array, ids: str) -> Any:
    if ids == "string":
        return [f"vertex {number:05} é" for number in numbers]
    return (numbers * 1000 + 7 if ids == "int" else numbers).tolist()


class Copy:
    """A copy of a store in which files can be replaced."""

    def __init__(self, sound: Path, path: Path) -> None:
        self.path, self.manifest = path, json.loads((sound / MANIFEST).read_bytes())
        path.mkdir()
        for file in sound.iterdir():
            os.link(file, path / file.name)

    @property
    def sections(self) -> list[str]:
        return list(self.manifest["sections"])

    def read(self, name: str) -> Array:
        """The bytes of a file, to be changed."""
        return np.fromfile(self.path / name, np.uint8)

    def write(self, name: str, data: Any) -> None:
        (self.path / name).unlink()
        (self.path / name).write_bytes(bytes(data))

    def entries(self, name: str) -> Array:
        """The entries of a section, to be changed."""
        section = self.manifest["sections"][name]
        return np.fromfile(self.path / name, section["dtype"], section["count"])

    def forge(self, name: str, entries: Array) -> None:
        """Replace a section, with right checksums. The manifest is written by `seal`."""
        data = np.zeros(padded(entries.nbytes), np.uint8)
        data[: entries.nbytes] = np.ascontiguousarray(entries).view(np.uint8)
        table = checksums(data).tobytes()
        self.write(name, data.tobytes())
        self.write(f"{name}.xxh3", table)
        self.manifest["sections"][name] = {
            "dtype": entries.dtype.name,
            "count": int(entries.size),
            "checksums": digest(table),
        }

    def seal(self) -> None:
        body = {name: value for name, value in self.manifest.items() if name != "checksum"}
        self.write(MANIFEST, sealed(body))


# Damage: each function changes a copy, and returns a description, or None if it would have changed nothing.


def flip_bit(copy: Copy, base: Base, random: Random) -> str | None:
    name, data = some_file(copy, random)
    at, bit = int(random.integers(data.size)), int(random.integers(8))
    data[at] ^= 1 << bit
    copy.write(name, data)
    return f"bit {bit} of byte {at} of {name}"


def change_byte(copy: Copy, base: Base, random: Random) -> str | None:
    name, data = some_file(copy, random)
    at = int(random.integers(data.size))
    data[at] += 1 + random.integers(255)
    copy.write(name, data)
    return f"byte {at} of {name}"


def burst(copy: Copy, base: Base, random: Random) -> str | None:
    name, data = some_file(copy, random)
    length = int(random.integers(2, 200))
    return replaced(copy, name, int(random.integers(data.size)), random.integers(0, 256, length, np.uint8), "burst")


def random_block(copy: Copy, base: Base, random: Random) -> str | None:
    name, data = some_file(copy, random)
    at = int(random.integers(-(-data.size // BLOCK))) * BLOCK
    return replaced(copy, name, at, random.integers(0, 256, BLOCK, np.uint8), "random block")


def zeroed_block(copy: Copy, base: Base, random: Random) -> str | None:
    name, data = some_file(copy, random)
    at = int(random.integers(-(-data.size // BLOCK))) * BLOCK
    return replaced(copy, name, at, np.zeros(BLOCK, np.uint8), "zeroed block")


def moved_block(copy: Copy, base: Base, random: Random) -> str | None:
    name, data = some_file(copy, random)
    here, there = (int(at) * BLOCK for at in random.integers(0, -(-data.size // BLOCK), 2))
    return replaced(copy, name, there, data[here : here + BLOCK], f"block from byte {here}")


def replaced(copy: Copy, name: str, at: int, fresh: Array, what: str) -> str | None:
    data = copy.read(name)
    before = data.tobytes()
    data[at : at + fresh.size] = fresh[: data.size - at]
    if data.tobytes() == before:
        return None
    copy.write(name, data)
    return f"{what} at byte {at} of {name}"


def changed_size(copy: Copy, base: Base, random: Random) -> str | None:
    name, data = some_file(copy, random)
    size = (
        int(random.integers(0, data.size)) if random.random() < 0.7 else data.size + int(random.integers(1, 3 * BLOCK))
    )
    copy.write(name, np.resize(data, size) if size else b"")
    return f"{name} of {size} instead of {data.size} bytes"


def exchanged_sections(copy: Copy, base: Base, random: Random) -> str | None:
    """Two sections of one store change their files, with their tables or without."""
    one, two = random.choice(copy.sections, 2, replace=False).tolist()
    endings = [["", ".xxh3"], [""], [".xxh3"]][int(random.integers(3))]
    files = {f"{name}{ending}": copy.read(f"{name}{ending}") for name in (one, two) for ending in endings}
    if any(np.array_equal(files[one + ending], files[two + ending]) for ending in endings):
        return None
    for ending in endings:
        copy.write(one + ending, files[two + ending])
        copy.write(two + ending, files[one + ending])
    return f"{one} and {two} exchanged ({' and '.join(ending or 'data' for ending in endings)})"


def from_another_store(copy: Copy, base: Base, random: Random) -> str | None:
    """A section, or the manifest, of another store of the same shape."""
    name = str(random.choice([*copy.sections, MANIFEST]))
    endings = [""] if name == MANIFEST else [["", ".xxh3"], [""], [".xxh3"]][int(random.integers(3))]
    fresh = {f"{name}{ending}": (base.other / f"{name}{ending}").read_bytes() for ending in endings}
    if any(data == (copy.path / file).read_bytes() for file, data in fresh.items()):
        return None
    for file, data in fresh.items():
        copy.write(file, data)
    return f"{' and '.join(fresh)} of another store"


def missing_file(copy: Copy, base: Base, random: Random) -> str | None:
    name, _ = some_file(copy, random)
    (copy.path / name).unlink()
    return f"{name} is missing"


def some_file(copy: Copy, random: Random) -> tuple[str, Array]:
    """A file and its bytes: mostly a section, sometimes a table of checksums or the manifest."""
    name = str(random.choice(copy.sections))
    draw = random.random()
    name = MANIFEST if draw < 0.08 else f"{name}.xxh3" if draw < 0.2 else name
    return name, copy.read(name)


DAMAGE: list[Callable[[Copy, Base, Random], str | None]] = [
    flip_bit,
    flip_bit,
    flip_bit,
    change_byte,
    change_byte,
    burst,
    random_block,
    zeroed_block,
    moved_block,
    changed_size,
    exchanged_sections,
    from_another_store,
    missing_file,
]


# Forgeries. What a run may answer: the SAME as from the sound store; anything if the forgery describes ANOTHER sound
# graph, or a CONTRADICTION that only `isthmus verify` looks for.
SAME, ANOTHER, CONTRADICTION = "same", "another", "contradiction"


@dataclass
class Forgery:
    text: str
    change: Callable[[Copy], None]
    allowed: str = SAME


def forgeries(copy: Copy, random: Random) -> Iterator[Forgery]:
    """All forgeries that make sense for a store; where they strike is drawn."""
    yield from forged_lists(copy, random)
    yield from forged_counts(copy)
    if "out.weights" in copy.sections:
        yield from forged_weights(copy, random)
    if "order.to_natural" in copy.sections:
        yield from forged_order(copy, random)
    if copy.manifest["ids"] != "dense":
        yield from forged_ids(copy, random)


def entry(name: str, text: str, change: Callable[[Array], Any], allowed: str = SAME) -> Forgery:
    """A forgery that changes the entries of one section in place."""

    def forge(copy: Copy) -> None:
        entries = copy.entries(name)
        change(entries)
        copy.forge(name, entries)

    return Forgery(f"{name}: {text}", forge, allowed)


def put(at: int, value: Any) -> Callable[[Array], None]:
    def change(entries: Array) -> None:
        entries[at] = value

    return change


def forged_lists(copy: Copy, random: Random) -> Iterator[Forgery]:
    n, arcs = copy.manifest["vertices"], copy.manifest["arcs"]
    for side in sides(copy, "targets"):
        at, vertex = int(random.integers(arcs)), int(random.integers(1, n))
        targets, offsets = f"{side}.targets", f"{side}.offsets"
        for value in (n, n + 1, n + 5000, 2**31, 2**32 - 1):
            yield entry(targets, f"target {value}", put(at, value))
        yield entry(targets, "all targets far outside", fill(2**32 - 2))
        for value in (-1, -(2**63), 2**63 - 1, arcs + 1, arcs + 100000):
            yield entry(offsets, f"offset {value}", put(vertex, value))
            yield entry(offsets, f"first offset {value}", put(0, value))
            yield entry(offsets, f"last offset {value}", put(-1, value))
        yield entry(offsets, "reversed", turn_round)
        yield entry(targets, "lists not sorted", random.shuffle, CONTRADICTION)
        yield entry(targets, "one edge leads elsewhere", shift(at, 7, n), CONTRADICTION)
        yield entry(targets, "every second edge is parallel to the one before", halve, CONTRADICTION)
        yield entry(targets, "all edges lead to one vertex", fill(vertex), CONTRADICTION)
        yield entry(offsets, "one vertex has all edges", one_has_all(vertex, arcs), CONTRADICTION)


def sides(copy: Copy, kind: str) -> list[str]:
    return [side for side in ("out", "in") if f"{side}.{kind}" in copy.sections]


def fill(value: Any) -> Callable[[Array], None]:
    return lambda entries: entries.fill(value)


def halve(entries: Array) -> None:
    """Repeat every second entry."""
    entries[1::2] = entries[: entries.size // 2 * 2 : 2]


def turn_round(entries: Array) -> None:
    entries[:] = entries[::-1].copy()


def shift(at: int, by: int, modulus: int) -> Callable[[Array], None]:
    def change(entries: Array) -> None:
        entries[at] = (entries[at] + by) % modulus

    return change


def exchange(a: int, b: int) -> Callable[[Array], None]:
    def change(entries: Array) -> None:
        entries[[a, b]] = entries[[b, a]]

    return change


def repeat(at: int, there: int) -> Callable[[Array], None]:
    def change(entries: Array) -> None:
        entries[at] = entries[there]

    return change


def negate(entries: Array) -> None:
    entries *= -1


def one_has_all(vertex: int, arcs: int) -> Callable[[Array], None]:
    def change(offsets: Array) -> None:
        offsets[:vertex], offsets[vertex:] = 0, arcs

    return change


def forged_counts(copy: Copy) -> Iterator[Forgery]:
    manifest = copy.manifest
    for name in ("vertices", "edges", "arcs", "self_loops"):
        for change in (-1, 1, 1000, 2**40) if manifest[name] else (1, 1000, 2**40):
            yield member(f"{name} {change:+}", {name: manifest[name] + change})
    fewer = {"edges": manifest["edges"] + 1, "self_loops": manifest["self_loops"] + 2}
    if not manifest["directed"]:
        yield member("more self loops, and as many arcs", fewer, CONTRADICTION)
        yield member("directed", {"directed": True, "edges": manifest["arcs"], "self_loops": 0}, ANOTHER)
    yield member("weighted", {"weighted": not manifest["weighted"]})
    yield member("in-edges", {"in_edges": not manifest["in_edges"]}, SAME if manifest["directed"] else ANOTHER)
    yield member("parallel edges", {"parallel": True}, ANOTHER)
    yield member("negative weights", {"negative_weights": True}, ANOTHER)
    yield member("self loops", {"self_loops": manifest["self_loops"] + 1}, CONTRADICTION)
    yield member("endless vertices", {"vertices": 10**300})
    for name, value in (("ids", "string"), ("ids", "int64"), ("ids", "dense"), ("order", "hub"), ("order", "natural")):
        if manifest[name] != value:
            yield member(f"{name} {value}", {name: value})
    for name, dtype in (
        ("out.targets", "uint64"),
        ("out.offsets", "uint32"),
        ("out.weights", "float64"),
        ("out.weights", "int32"),
    ):
        if name in copy.sections and manifest["sections"][name]["dtype"] != dtype:
            yield Forgery(f"{name} of type {dtype}", typed(name, dtype), ANOTHER)


def member(text: str, changes: dict[str, Any], allowed: str = SAME) -> Forgery:
    return Forgery(f"manifest: {text}", lambda copy: copy.manifest.update(changes), allowed)


def typed(name: str, dtype: str) -> Callable[[Copy], None]:
    """Claim another type, with as many entries as the counts demand."""

    def change(copy: Copy) -> None:
        copy.forge(name, np.resize(copy.read(name), copy.manifest["arcs"] * np.dtype(dtype).itemsize).view(dtype))

    return change


def forged_weights(copy: Copy, random: Random) -> Iterator[Forgery]:
    at, dtype = int(random.integers(copy.manifest["arcs"])), copy.entries("out.weights").dtype
    kind = dtype.kind
    for side in sides(copy, "weights"):
        for value in (-1, -1000000):
            yield entry(f"{side}.weights", f"weight {value}", put(at, value))
        yield entry(f"{side}.weights", "all weights negative", negate)
        largest = np.finfo(dtype).max if kind == "f" else np.iinfo(dtype).max
        for value in (0, largest):
            yield entry(f"{side}.weights", f"weight {value}", put(at, value), CONTRADICTION)
            yield entry(
                f"{side}.weights",
                f"all weights {value}",
                fill(value),
                CONTRADICTION if copy.manifest["directed"] else ANOTHER,
            )
        for value in (np.nan, np.inf, -np.inf) if kind == "f" else ():
            yield entry(f"{side}.weights", f"weight {value}", put(at, value))
            yield Forgery(
                f"{side}.weights: weight {value}, negative ones claimed", claimed(f"{side}.weights", at, value)
            )


def claimed(name: str, at: int, value: float) -> Callable[[Copy], None]:
    def change(copy: Copy) -> None:
        weights = copy.entries(name)
        weights[at] = value
        copy.forge(name, weights)
        copy.manifest["negative_weights"] = True

    return change


def forged_order(copy: Copy, random: Random) -> Iterator[Forgery]:
    n = copy.manifest["vertices"]
    a, b = random.choice(n, 2, replace=False).tolist()
    for name in ("order.to_natural", "order.from_natural"):
        for value in (n, 2**32 - 1):
            yield entry(name, f"entry {value}", put(a, value))
        yield entry(name, "an entry twice", repeat(a, b))
        yield entry(name, "two entries exchanged", exchange(a, b))
        yield entry(name, "all entries 0", fill(0))


def forged_ids(copy: Copy, random: Random) -> Iterator[Forgery]:
    n = copy.manifest["vertices"]
    at = int(random.integers(1, n - 1))
    if copy.manifest["ids"] != "string":
        yield entry("ids.values", "an id twice", repeat(at, at - 1))
        yield entry("ids.values", "two ids exchanged", exchange(at, at - 1))
        yield entry("ids.values", "descending", turn_round)
        return
    size = copy.manifest["sections"]["ids.bytes"]["count"]
    for value in (-1, -(2**63), 2**63 - 1, size + 1, 0, size):
        yield entry("ids.offsets", f"offset {value}", put(at, value))
    for value in (1, size + 1, -5):
        yield entry("ids.offsets", f"first offset {value}", put(0, value))
        yield entry("ids.offsets", f"last offset {value}", put(-1, size - value))
    where = int(random.integers(size))
    yield entry("ids.bytes", "not UTF-8", put(where, 0xFF))
    yield entry("ids.bytes", "nowhere UTF-8", fill(0x80))
    yield entry("ids.bytes", "all ids alike", fill(ord("x")))
