"""Merging: the new store is the changed graph, and nothing is left on the disk, whatever happens meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import StoreError
from isthmus.graph.changing.change import Edits
from isthmus.graph.locks.holder import Holder
from isthmus.graph.overlay import merged_store
from isthmus.graph.overlay.overlay_graph import OverlayGraph
from isthmus.graph.store.verify import verify
from isthmus.graph.store.writer import WriterLock
from isthmus.kernels.changing.packed_array import DELETE, INSERT


@pytest.fixture
def changed(tmp_path: Path, sized: Any) -> Any:
    """A graph with changes, in a folder of its own."""
    sized(merged=4096, staging=1)
    base = ist.generate("rmat", tmp_path / "g.isthmus", scale=9, weights="1:9", seed=3, directed=True)
    with base, OverlayGraph(base, 2) as graph:
        draw = np.random.default_rng(1)
        graph.apply(edits(draw, 400, graph.vertices + 5))
        yield graph


def edits(draw: np.random.Generator, count: int, top: int) -> Edits:
    wishes = draw.choice([INSERT, DELETE], count).astype(np.uint8)
    return Edits(wishes, *draw.integers(0, top, (2, count)), draw.integers(1, 9, count))


def lists(graph: Any) -> dict[Any, Any]:
    users = graph.ids.natural(0, graph.vertices).tolist()
    return {u: [(v, graph.edge_weights(u, v).tolist()) for v in graph.neighbors(u).tolist()] for u in users}


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "g.isthmus")


def test_a_new_store_has_sorted_lists_and_vertices_keep_their_numbers(changed: Any, tmp_path: Path) -> None:
    """New ids are between the old ones, so numbers do not follow them."""
    changed.apply(Edits(np.full(3, INSERT, np.uint8), np.array([-5, 3, -9]), np.array([0, -7, 2]), np.array([1, 2, 3])))
    with merged_store.merged(changed.snapshot, changed.apart(), tmp_path / "new.isthmus") as new:
        assert verify(tmp_path / "new.isthmus").ok
        assert new.order == "hub" and lists(new) == lists(changed)
        numbers = np.arange(changed.vertices)
        assert new.ids.users(numbers).tolist() == changed.ids.users(numbers).tolist()
        assert new.info()["origin"] == {"made by": "a stream, batch 2"}


def test_a_scratch_store_has_no_name(changed: Any, tmp_path: Path) -> None:
    before = lists(changed)
    with changed.frozen() as frozen:
        assert left(tmp_path) == []
        assert lists(frozen) == before
        changed.apply(edits(np.random.default_rng(2), 50, 300))
        assert lists(frozen) == before != lists(changed)


def test_a_merge_that_fails_changes_nothing(changed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, plain, calls = lists(changed), merged_store.in_order, iter(range(10**6))

    def failing(*given: Any) -> Any:
        if next(calls) == 3:
            raise StoreError("no space left on the device")
        return plain(*given)

    monkeypatch.setattr(merged_store, "in_order", failing)
    with pytest.raises(StoreError, match="no space left"):
        changed.merge()
    assert left(tmp_path) == [] and lists(changed) == before and changed.changes_bytes
    changed.merge()
    assert left(tmp_path) == [] and lists(changed) == before and not changed.changes_bytes


KILLED = """
import os, signal, sys
import numpy as np
import isthmus as ist
from isthmus import sizes
from isthmus.graph.overlay import merged_store
from isthmus.graph.changing.change import Edits
from isthmus.graph.locks.holder import Holder
from isthmus.graph.overlay.overlay_graph import OverlayGraph

plain, calls = merged_store.{function}, iter(range(10**6))

def killing(*given):
    if next(calls) == {turn}:
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(*given)

setattr(merged_store, {function!r}, killing)
with sizes.using(merged=4096), ist.open(sys.argv[1]) as base, OverlayGraph(base, 1) as graph:
    graph.apply(Edits(np.ones(1, np.uint8), np.array([0]), np.array([9]), np.array([1])))
    graph.merge()
"""


@pytest.mark.parametrize(("function", "turn"), [("in_order", 4), ("Graph", 0)])
def test_what_a_killed_merge_leaves_is_removed_by_the_next(
    changed: Any, tmp_path: Path, function: str, turn: int
) -> None:
    """Killed while it writes lists, and when the new store has its name for a moment."""
    text = KILLED.format(function=function, turn=turn)
    done = subprocess.run([sys.executable, "-c", text, str(tmp_path / "g.isthmus")], capture_output=True, timeout=100)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert left(tmp_path), "the process left nothing, so nothing is tested"
    changed.merge()
    assert left(tmp_path) == []


def test_a_merge_that_is_under_way_is_left_alone(changed: Any, tmp_path: Path) -> None:
    other = tmp_path / f"{merged_store.NAME}12345-abcd.isthmus"
    work = tmp_path / f".{other.name}.tmp-12345"
    work.mkdir()
    lock = WriterLock(other)
    changed.merge()
    assert work.is_dir() and lock.path.exists()
    lock.release()
    changed.apply(edits(np.random.default_rng(2), 5, 300))
    changed.merge()
    assert left(tmp_path) == []


def test_there_must_be_a_folder(changed: Any) -> None:
    changed.folder = None
    with pytest.raises(StoreError, match="there is no folder for a new store"):
        changed.frozen()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(changed: Any, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StoreError, match="cannot write here"):
            changed.merge()
    finally:
        tmp_path.chmod(0o700)


def test_a_lock_that_another_merge_is_about_to_take_is_left_alone(changed: Any, tmp_path: Path) -> None:
    """Its file is there before it is locked. Whoever took it then made that merge fail."""
    lock = tmp_path / f".{merged_store.NAME}{os.getppid()}-abcd.isthmus.lock"
    lock.touch()
    merged_store.sweep(tmp_path)
    assert lock.exists()
    os.utime(lock, (0, 0))
    merged_store.sweep(tmp_path)
    assert not lock.exists(), "it did not take it"


def test_a_fresh_lock_of_a_process_that_has_ended_is_removed(tmp_path: Path) -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    lock = tmp_path / f".{merged_store.NAME}{process.pid}-abcd.isthmus.lock"
    lock.touch()
    merged_store.sweep(tmp_path)
    assert not lock.exists()


def test_a_fresh_lock_of_another_machine_is_left_though_its_process_number_is_free_here(tmp_path: Path) -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    lock = tmp_path / f".{merged_store.NAME}{process.pid}-0123abcd-ef.isthmus.lock"
    lock.touch()
    merged_store.sweep(tmp_path)
    assert lock.exists() and merged_store.LEFT.fullmatch(lock.name), "it may just be taking it"
    os.utime(lock, (0, 0))
    merged_store.sweep(tmp_path)
    assert not lock.exists()


def test_a_merge_on_another_machine_is_left_alone_until_its_lock_is_old(changed: Any, tmp_path: Path) -> None:
    """Where flock does not reach other machines, only the file says so."""
    other = tmp_path / f"{merged_store.NAME}{os.getpid()}-0123abcd-ef.isthmus"
    work, lock = tmp_path / f".{other.name}.tmp-1", tmp_path / f".{other.name}.lock"
    work.mkdir()
    lock.write_bytes(Holder("otherhost", "1-2-3", "", os.getpid()).encode())
    changed.merge()
    assert work.is_dir() and lock.exists()
    os.utime(lock, (0, 0))
    merged_store.sweep(tmp_path)
    assert left(tmp_path) == []


def test_a_folder_that_cannot_be_listed_again_keeps_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, really, calls = tmp_path / f"{merged_store.NAME}1-abcd.isthmus", os.listdir, iter(range(10))
    other.mkdir()

    def listing(folder: Path) -> list[str]:
        if next(calls):
            raise OSError(5, "Input/output error")
        return really(folder)

    with monkeypatch.context() as patched:
        patched.setattr(os, "listdir", listing)
        merged_store.sweep(tmp_path)
    assert really(tmp_path) == [other.name]
    merged_store.sweep(tmp_path)
    assert really(tmp_path) == []


def test_a_graph_in_another_order_is_saved_though_its_folder_cannot_be_written_to(changed: Any, tmp_path: Path) -> None:
    changed.apply(Edits(*(np.empty(0, kind) for kind in (np.uint8, np.int64, np.int64, np.int32)), None, np.array([3])))
    assert changed.order == "hub"
    changed.folder = tmp_path / "nowhere"
    changed.save(tmp_path / "now.isthmus")
    with ist.open(tmp_path / "now.isthmus") as saved:
        assert (saved.vertices, saved.edges, saved.order) == (changed.vertices, changed.edges, "natural")
