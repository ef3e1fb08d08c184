"""Writes a stored graph and its overlay into a new store, with little memory: lists are patched, sorted and written
some at a time.

Vertices keep their numbers, so that arrays indexed by number stay valid. If the numbers no longer follow the order of
the ids, the new store holds the permutation, like a store in hub order.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from isthmus import sizes
from isthmus.errors import IsthmusError, StoreError
from isthmus.graph.graph import Graph
from isthmus.graph.locks.holder import is_alive, machine_key
from isthmus.graph.overlay.overlay import Overlay
from isthmus.graph.overlay.overlay_snapshot import OverlaySnapshot
from isthmus.graph.overlay.patched_reader import PatchedReader, patch_of
from isthmus.graph.store.files import Array, remove_folder
from isthmus.graph.store.manifest import Manifest
from isthmus.graph.store.store import SUFFIX
from isthmus.graph.store.writer import StoreWriter, WriterLock
from isthmus.kernels.changing import overlay_arcs as kernels

NAME = ".merging-"  # of a store that is being written
FRESH = 60  # seconds; a writer makes the file of its lock, takes the lock, and only then makes its folder
# Process, machine; and what is made beside.
LEFT = re.compile(rf"\.?({re.escape(NAME)}(\d+)-(?:(\w+)-)?\w+{re.escape(SUFFIX)})(\..*)?")


class MergeStopped(IsthmusError):
    """Nobody needs the new store any more."""


def never() -> bool:
    return False


def merged(
    snapshot: OverlaySnapshot,
    reader: PatchedReader,
    path: str | Path,
    overwrite: bool = False,
    stopped: Callable[[], bool] = never,
) -> Graph:
    """Write a snapshot into a new store, and open it. When `stopped` returns True, it raises MergeStopped and leaves
    nothing.
    """
    with StoreWriter(path, overwrite) as writer:
        for name, array in snapshot.ids.sections().items():
            writer.section(name, array.dtype, array.size)
            writer.append(name, array)
        for number, side in enumerate(("out", "in") if snapshot.directed else ("out",)):
            write_side(writer, side, snapshot, reader, number * (2 if snapshot.weighted else 1), stopped)
        manifest = Manifest(
            snapshot.vertices,
            snapshot.edges,
            snapshot.arcs,
            snapshot.directed,
            snapshot.weighted,
            snapshot.ids.kind,
            snapshot.order,
            snapshot.self_loops,
            False,
            snapshot.directed,
            snapshot.negative_weights,
            {"made by": f"a stream, batch {snapshot.number}"},
        )
        return Graph(writer.commit(manifest))


def write_side(
    writer: StoreWriter,
    side: str,
    snapshot: OverlaySnapshot,
    reader: PatchedReader,
    section: int,
    stopped: Callable[[], bool],
) -> None:
    """The sections of one side. `section`: the number of its targets for the reader; weights follow."""
    arrays = snapshot.far(side, True)
    overlay = patch_of(arrays[0]).overlay
    writer.section(f"{side}.offsets", np.int64, overlay.begins.size)
    for at in range(0, overlay.begins.size, sizes.now.copied_entries):
        writer.append(f"{side}.offsets", overlay.begins[at : at + sizes.now.copied_entries])
    for kind, array in zip(("targets", "weights"), arrays, strict=False):
        writer.section(f"{side}.{kind}", array.dtype, array.count)
    for first, last in windows(overlay, sum(np.dtype(array.dtype).itemsize for array in arrays)):
        if stopped():
            raise MergeStopped("the merge was stopped")
        low, high = int(overlay.begins[first]), int(overlay.begins[last])
        entries = [reader.entries(section + k, low, high) for k in range(len(arrays))]
        for kind, data in zip(("targets", "weights"), in_order(overlay, first, last, entries), strict=False):
            writer.append(f"{side}.{kind}", data)


def windows(overlay: Overlay, entry_bytes: int) -> Iterator[tuple[int, int]]:
    """Ranges of vertices whose lists take about as much as is written at once; one list may take more."""
    most, first = max(1, sizes.now.merged // entry_bytes), 0
    while first < overlay.vertices:
        last = int(np.searchsorted(overlay.begins, overlay.begins[first] + most, "right")) - 1
        last = min(max(last, first + 1), overlay.vertices)
        yield first, last
        first = last


def in_order(overlay: Overlay, first: int, last: int, entries: list[Array]) -> list[Array]:
    """Targets, and weights if there are any, of vertices first:last, each list in ascending order."""
    targets, weights = entries[0], entries[1] if len(entries) > 1 else entries[0][:0]
    out, out_weights = np.empty_like(targets), np.empty_like(weights)
    kernels.sort_lists(
        first, last, overlay.begins, overlay.added_tails, int(overlay.begins[first]), targets, weights, out, out_weights
    )
    return [out, out_weights][: len(entries)]


def scratch_store(
    snapshot: OverlaySnapshot, reader: PatchedReader, folder: Path | None, stopped: Callable[[], bool] = never
) -> Graph:
    """Write a snapshot into a new store without a name: its files are open, and vanish when they are closed or the
    process ends.
    """
    if folder is None:
        raise StoreError("there is no folder for a new store")
    sweep(folder)
    path = folder / f"{NAME}{os.getpid()}-{machine_key()}-{secrets.token_hex(4)}{SUFFIX}"
    graph = merged(snapshot, reader, path, False, stopped)
    remove_folder(path)
    return graph


def is_fresh_lock(path: Path) -> bool:
    """Whether this is the lock of a merge that may just be taking it. A process number means nothing on another
    machine.
    """
    match = LEFT.fullmatch(path.name)
    try:
        if path.suffix != ".lock" or time.time() - path.stat().st_mtime >= FRESH:
            return False
    except OSError:  # gone
        return True
    return match is None or match[3] not in (None, machine_key()) or is_alive(int(match[2]))


def sweep(folder: Path) -> None:
    """Remove what killed merges have left, but not a merge that is under way: it holds a lock."""
    try:
        names = {
            match[1]
            for name in os.listdir(folder)
            if (match := LEFT.fullmatch(name)) and not is_fresh_lock(folder / name)
        }
    except OSError:  # writing there will report it
        return
    for target in (folder / name for name in names):
        try:
            lock = WriterLock(target)
        except StoreError:
            continue
        try:
            with contextlib.suppress(OSError):  # the next one removes it
                for name in os.listdir(folder):
                    if target.name in name and name != lock.path.name:
                        remove_folder(folder / name)
        finally:
            lock.release()
