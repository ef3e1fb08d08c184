"""Reading a store: what it refuses to open, and more than 2**32 arcs or vertices in sparse files."""

from __future__ import annotations

import gc
import os
import resource
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import StoreError
from isthmus.graph.graph import Graph
from isthmus.graph.store.files import BLOCK, padded
from isthmus.graph.store.manifest import MAX_BYTES, Manifest, Section, decode
from isthmus.graph.store.store import Store

HUGE = 2**32


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A small store with three blocks of targets."""
    target = tmp_path / "g.isthmus"
    ist.generate("rmat", target, scale=8, directed=True, in_edges=False).close()
    return target


def test_reads_give_what_was_written(forge: Callable[..., Store]) -> None:
    targets = np.arange(3000, dtype=np.uint32)
    store = forge("g", {"out.offsets": np.array([0, 3000], np.int64), "out.targets": targets})
    assert np.array_equal(store.read("out.targets"), targets)
    assert np.array_equal(store.read("out.targets", 1000, 2048), targets[1000:2048])
    assert store.read("out.targets", 3000, 3000).size == 0
    assert "out.targets" in store
    assert "in.targets" not in store
    blocks = bytes(store.read_blocks("out.targets", 2, 1))
    assert blocks == targets[2048:].tobytes().ljust(BLOCK, b"\0")
    assert store.read_checksums("out.targets", 0, 3).tobytes() == (store.path / "out.targets.xxh3").read_bytes()


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (0, 3001), (5, 4), (4000, None)])
def test_ranges_outside_a_section(forge: Callable[..., Store], start: int, stop: int | None) -> None:
    store = forge("g", {"out.offsets": np.array([0, 3000], np.int64), "out.targets": np.zeros(3000, np.uint32)})
    with pytest.raises(StoreError, match=r"out\.targets has 3000 entries, asked for"):
        store.read("out.targets", start, stop)


def test_closed(path: Path) -> None:
    store = Store(path)
    store.close()
    store.close()
    with pytest.raises(StoreError, match=r"out\.offsets cannot be read; the store is closed"):
        store.read("out.offsets")


def test_no_files_stay_open_when_opening_fails(path: Path) -> None:
    (path / "out.targets.xxh3").unlink()
    gc.collect()  # files that other tests have forgotten
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(StoreError):
            Store(path)
    assert len(os.listdir("/proc/self/fd")) == before


def test_no_such_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"gone\.isthmus: no such store"):
        ist.open(tmp_path / "gone.isthmus")


def test_an_address_is_not_a_store():
    with pytest.raises(StoreError, match=r"s3://bucket/g.isthmus: is an address, expected a store on this machine"):
        Store("s3://bucket/g.isthmus")


def test_not_a_store(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("0 1\n")
    with pytest.raises(StoreError, match=r"folder: is not an Isthmus store \(no manifest\.json\)"):
        ist.open(tmp_path / "folder")
    with pytest.raises(StoreError, match=r"file: is a file, expected a store, which is a folder; .*isthmus.read"):
        ist.open(tmp_path / "file")
    (tmp_path / "folder" / "manifest.json").write_text("{}")
    with pytest.raises(StoreError, match="the manifest is damaged"):
        ist.open(tmp_path / "folder")
    (tmp_path / "folder" / "manifest.json").write_bytes(b" " * (MAX_BYTES + 1))
    with pytest.raises(StoreError, match="too large for a manifest"):
        ist.open(tmp_path / "folder")


@pytest.mark.parametrize("name", ["out.offsets", "out.targets", "out.targets.xxh3"])
@pytest.mark.parametrize("change", [-BLOCK, -1, 1, BLOCK])
def test_a_section_of_another_size(path: Path, name: str, change: int) -> None:
    size = (path / name).stat().st_size
    os.truncate(path / name, max(0, size + change))
    with pytest.raises(
        StoreError, match=rf"{name}: expected {size} bytes by the manifest, found \d+; the store is damaged"
    ):
        ist.open(path)


@pytest.mark.parametrize("name", ["out.offsets", "out.targets", "out.offsets.xxh3"])
def test_a_missing_section(path: Path, name: str) -> None:
    (path / name).unlink()
    with pytest.raises(StoreError, match=f"{name}: No such file or directory"):
        ist.open(path)


def test_a_section_that_is_no_file(path: Path) -> None:
    (path / "out.targets").unlink()
    os.mkfifo(path / "out.targets")  # opening a pipe for reading waits for a writer, unless one takes care
    with pytest.raises(StoreError, match=r"out\.targets: is not a file"):
        ist.open(path)
    (path / "manifest.json").unlink()
    os.mkfifo(path / "manifest.json")
    with pytest.raises(StoreError, match="the manifest is damaged"):
        ist.open(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable(path: Path) -> None:
    (path / "out.targets").chmod(0)
    with pytest.raises(StoreError, match=r"out\.targets: Permission denied"):
        ist.open(path)
    path.chmod(0)
    try:
        with pytest.raises(StoreError, match="Permission denied"):
            ist.open(path)
    finally:
        path.chmod(0o755)


def test_truncated_while_open(path: Path) -> None:
    store = Store(path)
    os.truncate(path / "out.targets", 100)
    with pytest.raises(StoreError, match=r"out\.targets: ends at byte 100, .*the file was truncated"):
        store.read("out.targets")


def rewrite_manifest(path: Path, change: Callable[[Manifest], Manifest]) -> None:
    file = path / "manifest.json"
    file.write_bytes(change(decode(file.read_bytes(), "")).encode())


@pytest.mark.parametrize("entries", [2**40, 2**60, 2**70])
def test_a_claim_of_endless_entries_allocates_nothing(path: Path, entries: int) -> None:
    def boast(manifest: Manifest) -> Manifest:
        sections = {**manifest.sections, "out.targets": Section("uint32", entries)}
        return replace(manifest, arcs=entries, edges=entries, sections=sections)

    rewrite_manifest(path, boast)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(StoreError, match=rf"out\.targets: expected {padded(entries * 4)} bytes by the manifest"):
        ist.open(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kB


def test_readers_keep_a_store_that_was_removed(path: Path) -> None:
    graph = ist.open(path)
    wanted = graph.neighbors(0)
    shutil.rmtree(path)
    assert np.array_equal(graph.neighbors(0), wanted)


def sparse_store(path: Path, manifest: Manifest, pieces: list[tuple[str, int, Any]]) -> Store:
    """A store of zeros that takes no space, with a few arrays written at an entry of a section."""
    path.mkdir()
    for name, section in manifest.sections.items():
        (path / name).touch()
        os.truncate(path / name, padded(section.bytes))
        (path / f"{name}.xxh3").touch()
        os.truncate(path / f"{name}.xxh3", section.blocks * 8)
    for name, at, array in pieces:
        with (path / name).open("r+b") as file:
            file.seek(at * array.itemsize)
            file.write(array.tobytes())
    (path / "manifest.json").write_bytes(manifest.encode())
    return Store(path, verify=False)  # the checksums are zeros, too


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_more_than_two_to_the_32_arcs(tmp_path: Path, dtype: str) -> None:
    arcs = HUGE + 2000
    sections = {
        "out.offsets": Section("int64", 2003),
        "out.targets": Section(dtype, arcs),
        "out.weights": Section("float32", arcs),
    }
    manifest = Manifest(2002, arcs, arcs, True, True, "dense", parallel=True, sections=sections)
    offsets = np.concatenate([[0, HUGE + 3], np.full(2000, HUGE + 1500), [arcs]]).astype(np.int64)
    pieces = [
        ("out.offsets", 0, offsets),
        ("out.targets", HUGE, np.array([5, 6, 7, *range(3, 1500), *range(500)], dtype)),
        ("out.weights", HUGE, np.arange(2000, dtype=np.float32)),
    ]
    graph = Graph(sparse_store(tmp_path / "g.isthmus", manifest, pieces))
    assert graph.arcs == arcs
    assert graph.edge_bytes == arcs * (np.dtype(dtype).itemsize + 4)
    assert graph.out_degree(0) == HUGE + 3
    assert graph.out_degree(1) == 1497
    assert graph.neighbors(1).tolist() == list(range(3, 1500))
    assert graph.neighbors(2001).tolist() == list(range(500))
    assert graph.has_edge(0, 7)  # found without reading 16 GB of list
    assert not graph.has_edge(0, 4)
    assert graph.has_edge(1, 1499)
    assert not graph.has_edge(1, 1500)
    assert graph.edge_weights(2001, 499).tolist() == [1999.0]
    assert graph.edge_weights(0, 6).tolist() == [1.0]
    assert graph.store.read("out.targets", HUGE + 1, HUGE + 3).tolist() == [6, 7]


def test_more_than_two_to_the_32_vertices(tmp_path: Path) -> None:
    n = HUGE + 10
    sections = {
        "out.offsets": Section("int64", n + 1),
        "out.targets": Section("uint64", 4),
        "ids.values": Section("uint64", n),
    }
    manifest = Manifest(n, 4, 4, True, False, "uint64", sections=sections)
    top = 2**64 - 10
    pieces = [
        ("out.offsets", HUGE + 3, np.array([0, 1, 3, 4, 4, 4, 4, 4], np.int64)),
        ("out.targets", 0, np.array([HUGE + 9, HUGE, HUGE + 7, 1], np.uint64)),
        ("ids.values", HUGE, np.arange(top, top + 10, dtype=np.uint64)),
    ]
    graph = Graph(sparse_store(tmp_path / "g.isthmus", manifest, pieces))
    assert graph.vertices == n
    assert graph.ids.number(top + 9) == HUGE + 9
    assert graph.neighbors(top + 3).tolist() == [2**64 - 1]
    assert graph.neighbors(top + 4).tolist() == [top, top + 7]
    assert graph.has_edge(top + 4, top + 7)
    assert not graph.has_edge(top + 4, top + 8)
    assert top + 3 in graph
    assert 12345 not in graph


def test_a_graph_in_memory_cannot_be_changed_through_its_arrays() -> None:
    graph = ist.read(np.array([[10, 20], [20, 30], [30, 40]]))
    with pytest.raises(ValueError, match="read-only"):
        graph.ids.natural(0, 2)[0] = 3
    graph.neighbors(10)[0] = 3
    assert graph.neighbors(10).tolist() == [20]
    graph.close()
    with pytest.raises(StoreError, match=r"ids\.values cannot be read; the graph is closed"):
        graph.neighbors(10)
