"""`verify` finds every flipped bit, by section and block, and stores whose arrays contradict each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import StoreError
from isthmus.graph.store.files import BLOCK
from isthmus.graph.store.store import Store
from isthmus.graph.store.verify import MOST_NAMED, Verdict, verify
from isthmus.graph.store.writer import StoreWriter

EVERY_SECTION = {
    "out.offsets",
    "out.targets",
    "out.weights",
    "in.offsets",
    "in.targets",
    "in.weights",
    "ids.offsets",
    "ids.bytes",
    "order.to_natural",
    "order.from_natural",
}


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with every kind of section, some of them several blocks long, all with padding."""
    folder = tmp_path_factory.mktemp("full")
    graph = ist.generate("rmat", scale=11, edge_factor=4, directed=True, weights="1:99", order="hub")
    names = [b"v%05d" % number for number in range(graph.vertices)]
    ids = {"ids.offsets": np.arange(0, 6 * len(names) + 1, 6), "ids.bytes": np.frombuffer(b"".join(names), np.uint8)}
    with StoreWriter(folder / "g.isthmus") as writer:
        for name, array in {**{name: graph.store.read(name) for name in graph.store.manifest.sections}, **ids}.items():
            writer.section(name, array.dtype, array.size)
            writer.append(name, array)
        writer.commit(replace(graph.store.manifest, ids="string")).close()
    assert set(Store(folder / "g.isthmus").manifest.sections) == EVERY_SECTION
    return folder / "g.isthmus"


def flip(path: Path, at: int, bit: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1 << bit]))


def places(size: int, rng: np.random.Generator) -> list[int]:
    """First and last byte (padding, in a section) and some between, a block's edge among them."""
    chosen = {0, size - 1, *rng.integers(0, size, 3).tolist()}
    return sorted(chosen | ({BLOCK - 1, BLOCK} if size > BLOCK else set()))


def test_sound(full: Path) -> None:
    verdict = verify(full)
    assert verdict.ok
    assert verdict.problems == []
    assert verdict.bytes == verdict.blocks * BLOCK == sum((full / name).stat().st_size for name in EVERY_SECTION)


@pytest.mark.parametrize("section", sorted(EVERY_SECTION))
def test_a_flipped_bit_in_a_section_is_named_by_block(full: Path, section: str) -> None:
    rng = np.random.default_rng(len(section))
    for at in places((full / section).stat().st_size, rng):
        bit = int(rng.integers(8))
        flip(full / section, at, bit)
        try:
            block = at // BLOCK
            where = f"bytes {block * BLOCK} to {block * BLOCK + BLOCK - 1}"
            assert verify(full, threads=1).problems == [
                f"section {section}, block {block} ({where}): the checksum does not match"
            ]
        finally:
            flip(full / section, at, bit)


@pytest.mark.parametrize("section", sorted(EVERY_SECTION))
def test_a_flipped_bit_in_a_table_of_checksums_is_found(full: Path, section: str) -> None:
    rng = np.random.default_rng(len(section))
    for at in places((full / f"{section}.xxh3").stat().st_size, rng):
        bit = int(rng.integers(8))
        flip(full / f"{section}.xxh3", at, bit)
        try:
            problems = verify(full, threads=1).problems
            assert problems[0] == f"section {section}.xxh3: the table of block checksums is damaged"
            assert f"section {section}, block {at // 8} " in problems[1]
        finally:
            flip(full / f"{section}.xxh3", at, bit)


def test_a_flipped_bit_in_the_manifest_refuses_to_open(full: Path) -> None:
    text = (full / "manifest.json").read_bytes()
    for at in (0, text.index(b"\n "), text.index(b"vertices"), len(text) - 1):
        flip(full / "manifest.json", at, 0)
        try:
            with pytest.raises(StoreError, match="the manifest is damaged"):
                verify(full)
        finally:
            flip(full / "manifest.json", at, 0)


def test_blocks_swapped_within_a_section(full: Path) -> None:
    data = (full / "out.targets").read_bytes()
    try:
        (full / "out.targets").write_bytes(data[BLOCK : 2 * BLOCK] + data[:BLOCK] + data[2 * BLOCK :])
        assert [problem.split(" (")[0] for problem in verify(full).problems] == [
            "section out.targets, block 0",
            "section out.targets, block 1",
        ]
    finally:
        (full / "out.targets").write_bytes(data)


def test_many_damaged_blocks_are_counted_not_listed(tmp_path: Path) -> None:
    ist.generate("path", tmp_path / "g.isthmus", vertices=40_000).close()
    size = (tmp_path / "g.isthmus" / "out.targets").stat().st_size
    (tmp_path / "g.isthmus" / "out.targets").write_bytes(b"\xff" * size)
    verdicts = [verify(tmp_path / "g.isthmus", threads=threads) for threads in (1, 2)]
    assert verdicts[0] == verdicts[1]
    assert len(verdicts[0].problems) == MOST_NAMED + 1
    assert verdicts[0].problems[-1] == f"and {size // BLOCK - MOST_NAMED} more"


def test_progress_adds_up(full: Path) -> None:
    class Counter:
        def __init__(self) -> None:
            self.stages: list[list[Any]] = []

        def stage(self, name: str, total: int | None, unit: str) -> None:
            self.stages.append([name, total, 0])

        def advance(self, amount: int) -> None:
            self.stages[-1][2] += amount

    counter = Counter()
    verify(full, progress=counter)
    assert [name for name, _, _ in counter.stages] == ["checksums", "structure"]
    assert all(total == done for _, total, done in counter.stages)


# A triangle 0 - 1 - 2 with a tail 2 - 3, undirected; the cases below change one thing each.
OFFSETS, TARGETS = np.array([0, 2, 4, 7, 8], np.int64), np.array([1, 2, 0, 2, 0, 1, 3, 2], np.uint32)
UNDIRECTED = {"directed": False, "edges": 4}
IN_OFFSETS, IN_TARGETS = np.array([0, 1, 2, 4], np.int64), np.array([2, 0, 0, 1], np.uint32)
OUT_OFFSETS, OUT_TARGETS = np.array([0, 2, 3, 4], np.int64), np.array([1, 2, 2, 0], np.uint32)
DIRECTED = {"out.offsets": OUT_OFFSETS, "out.targets": OUT_TARGETS, "in.offsets": IN_OFFSETS, "in.targets": IN_TARGETS}
NAMES = {"ids.offsets": np.array([0, 1, 3, 3 + 2], np.int64), "ids.bytes": np.frombuffer(b"aabba", np.uint8)}


def judged(forge: Callable[..., Store], arrays: dict[str, Any], **members: Any) -> Verdict:
    store = forge("g", arrays, **members)
    verdicts = [verify(store.path, threads=threads) for threads in (1, 2)]
    assert verdicts[0] == verdicts[1]
    return verdicts[0]


def undirected(**changes: Any) -> dict[str, Any]:
    return {"out.offsets": OFFSETS, "out.targets": TARGETS} | {
        name.replace("_", "."): value for name, value in changes.items()
    }


@pytest.mark.parametrize(
    ("arrays", "members"),
    [
        (undirected(), {**UNDIRECTED, "parallel": False}),
        (undirected(out_targets=TARGETS.astype(np.uint64)), UNDIRECTED),
        (undirected(out_weights=np.array([1, 2, 1, 3, 2, 3, 4, 4], np.int32)), UNDIRECTED),
        (DIRECTED, {}),
        ({**DIRECTED, "out.weights": np.array([0.5, 1, 2, 3]), "in.weights": np.array([3, 0.5, 1, 2])}, {}),
        ({**DIRECTED, "ids.values": np.array([-5, 0, 2**62])}, {"ids": "int64"}),
        ({**DIRECTED, "ids.values": np.array([0, 5, 2**64 - 1], np.uint64)}, {"ids": "uint64"}),
        ({**DIRECTED, **NAMES}, {"ids": "string"}),
        (
            {
                **DIRECTED,
                "order.to_natural": np.array([2, 0, 1], np.uint64),
                "order.from_natural": np.array([1, 2, 0], np.uint64),
            },
            {"order": "hub"},
        ),
        ({"out.offsets": np.zeros(1, np.int64), "out.targets": np.zeros(0, np.uint32)}, {}),
        (
            {"out.offsets": np.array([0, 1]), "out.targets": np.zeros(1, np.uint32)},
            {"self_loops": 1, "directed": False},
        ),
    ],
)
def test_sound_stores_by_hand(forge: Callable[..., Store], arrays: dict[str, Any], members: dict[str, Any]) -> None:
    """Else the refusals below might be for another reason than theirs."""
    assert judged(forge, arrays, **members).problems == []


@pytest.mark.parametrize(
    ("arrays", "members", "problem"),
    [
        (
            undirected(out_targets=np.array([2, 1, 0, 2, 0, 1, 3, 2], np.uint32)),
            UNDIRECTED,
            "section out.targets, vertices from 0 on: a list is not sorted",
        ),
        (
            undirected(out_targets=np.array([1, 4, 0, 2, 0, 1, 3, 2], np.uint32)),
            UNDIRECTED,
            "section out.targets, vertices from 0 on: a target is not a vertex",
        ),
        (
            undirected(out_targets=np.array([1, 2, 0, 2, 0, 1, 3, 2**40], np.uint64)),
            UNDIRECTED,
            "section out.targets, vertices from 0 on: a target is not a vertex",
        ),
        (
            undirected(out_offsets=np.array([0, 4, 2, 7, 8])),
            UNDIRECTED,
            "section out.targets, vertices from 0 on: offsets do not ascend",
        ),
        (
            undirected(out_offsets=np.array([0, 2, 4, 7, 9])),
            UNDIRECTED,
            "section out.targets, vertices from 0 on: offsets do not ascend",
        ),
        (
            undirected(out_offsets=np.array([-8, 2, 4, 7, 8])),
            UNDIRECTED,
            "section out.offsets: starts at -8, expected 0",
        ),
        (undirected(out_offsets=np.array([1, 2, 4, 7, 8])), UNDIRECTED, "section out.offsets: starts at 1, expected 0"),
        (undirected(out_offsets=np.array([0, 2, 4, 7, 7])), UNDIRECTED, "section out.offsets: ends at 7, expected 8"),
        (
            {"out.offsets": np.array([3]), "out.targets": np.zeros(0, np.uint32)},
            {},
            "section out.offsets: starts at 3, expected 0",
        ),
        (
            undirected(out_targets=np.array([1, 3, 0, 2, 0, 1, 3, 2], np.uint32)),
            UNDIRECTED,
            "section out.targets: undirected, but some edges are stored in one direction only",
        ),
        (
            undirected(out_weights=np.array([1, 2, 1, 3, 2, 3, 4, 5], np.int32)),
            UNDIRECTED,
            "section out.targets: undirected, but some edges are stored in one direction only",
        ),
        (
            undirected(out_weights=np.array([1, 2, 1, 3, 2, 3, np.nan, np.nan], np.float32)),
            UNDIRECTED,
            "section out.targets, vertices from 0 on: a weight is not a finite number",
        ),
        (
            undirected(out_weights=np.array([1, 2, 1, 3, 2, 3, -4, -4], np.float32)),
            UNDIRECTED,
            "section out.targets, vertices from 0 on: a weight is negative, and the manifest claims that none is",
        ),
        (
            undirected(
                out_targets=np.array([1, 1, 0, 0, 3, 3, 2, 2], np.uint32), out_offsets=np.array([0, 2, 4, 6, 8])
            ),
            {**UNDIRECTED, "parallel": False},
            "section out.targets, vertices from 0 on: a list repeats a target, in a graph without parallel edges",
        ),
        (
            undirected(),
            {"directed": False, "edges": 5, "self_loops": 2},
            "manifest: claims 2 self loops, the lists hold 0",
        ),
        (
            {**DIRECTED, "in.targets": np.array([2, 0, 1, 1], np.uint32)},
            {},
            "section in.targets: does not hold the same edges as out.targets",
        ),
        (
            {**DIRECTED, "out.weights": np.array([1, 1, 2, 3]), "in.weights": np.array([3, 1, 2, 1])},
            {},
            "section in.targets: does not hold the same edges as out.targets",
        ),
        (
            {**DIRECTED, "in.targets": np.array([2, 0, 0, 9], np.uint32)},
            {},
            "section in.targets, vertices from 0 on: a target is not a vertex",
        ),
        (
            {
                **DIRECTED,
                "order.to_natural": np.array([0, 0, 1], np.uint32),
                "order.from_natural": np.array([0, 2, 1], np.uint32),
            },
            {"order": "hub"},
            "section order.to_natural: not a permutation with order.from_natural as its inverse",
        ),
        (
            {
                **DIRECTED,
                "order.to_natural": np.array([2, 0, 1], np.uint32),
                "order.from_natural": np.array([2, 0, 1], np.uint32),
            },
            {"order": "hub"},
            "section order.to_natural: not a permutation with order.from_natural as its inverse",
        ),
        (
            {
                **DIRECTED,
                "order.to_natural": np.array([3, 0, 1], np.uint32),
                "order.from_natural": np.array([1, 2, 0], np.uint32),
            },
            {"order": "hub"},
            "section order.to_natural: not a permutation with order.from_natural as its inverse",
        ),
        ({**DIRECTED, "ids.values": np.array([1, 7, 7])}, {"ids": "int64"}, "section ids.values: ids do not ascend"),
        (
            {**DIRECTED, "ids.values": np.array([2**64 - 1, 0, 1], np.uint64)},
            {"ids": "uint64"},
            "section ids.values: ids do not ascend",
        ),
        (
            {**DIRECTED, **NAMES, "ids.bytes": np.frombuffer(b"babba", np.uint8)},
            {"ids": "string"},
            "section ids.bytes: ids do not ascend",
        ),
        (
            {**DIRECTED, **NAMES, "ids.bytes": np.frombuffer(b"ab\xffcd", np.uint8)},
            {"ids": "string"},
            "section ids.bytes: an id is not UTF-8",
        ),
        (
            {**DIRECTED, **NAMES, "ids.bytes": np.frombuffer("éèê".encode()[:5], np.uint8)},
            {"ids": "string"},
            "section ids.bytes: an id is not UTF-8",
        ),
        (
            {**DIRECTED, **NAMES, "ids.offsets": np.array([0, 4, 3, 5])},
            {"ids": "string"},
            "section ids.offsets: offsets do not ascend within ids.bytes",
        ),
        (
            {**DIRECTED, **NAMES, "ids.offsets": np.array([0, 1, 3, 4])},
            {"ids": "string"},
            "section ids.offsets: does not start at 0 and end where ids.bytes does",
        ),
    ],
)
def test_stores_written_wrong(
    forge: Callable[..., Store], arrays: dict[str, Any], members: dict[str, Any], problem: str
) -> None:
    if "out.weights" in arrays and "in.weights" in arrays:
        arrays = {name: array.astype(np.int32) if name.endswith("weights") else array for name, array in arrays.items()}
    assert judged(forge, arrays, **members).problems == [problem]


@pytest.mark.parametrize("bad", [70_000, 131_071])
def test_ids_and_lists_are_checked_across_the_cuts(forge: Callable[..., Store], bad: int, sized: Any) -> None:
    """Vertices are checked 65,536 at a time and long lists in pieces; the seams count too."""
    sized(verified_arcs=1000)
    n = 140_000
    offsets = np.concatenate([np.zeros(bad + 1, np.int64), np.full(n - bad, 5000)])
    targets = np.arange(5000, dtype=np.uint32)
    loop = {"self_loops": int(bad < 5000)}
    assert judged(forge, {"out.offsets": offsets, "out.targets": targets}, **loop).ok
    targets[3000] = 0  # the first of its piece, smaller than the last of the piece before
    assert judged(forge, {"out.offsets": offsets, "out.targets": targets}, **loop).problems == [
        f"section out.targets, vertices from {bad // 65536 * 65536} on: a list is not sorted"
    ]
    values = np.arange(n)
    values[65_536] = 65_535
    arrays = {"out.offsets": offsets, "out.targets": np.arange(5000, dtype=np.uint32), "ids.values": values}
    assert judged(forge, arrays, ids="int64", **loop).problems == ["section ids.values: ids do not ascend"]
