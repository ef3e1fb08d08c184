"""Checkpoints of a stream: `checkpoint-000000000042/` has the graph after batch 42 as a store, and what was
acknowledged until then.

The answers of programs are not kept: they are computed anew when the stream is opened. A checkpoint is written under
another name, synced, read again and verified, and renamed. The one before it stays, with the log since, in case that
the newest one is damaged later.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from isthmus import __version__
from isthmus.errors import StoreError
from isthmus.graph.changing.advancing import AdvancingGraph
from isthmus.graph.graph import Graph, open_graph
from isthmus.graph.locks.holder import machine_key
from isthmus.graph.store.files import fsync_folder, remove_folder
from isthmus.graph.store.sealed_json import sealed, unsealed
from isthmus.graph.store.verify import verify
from isthmus.graph.store.writer import write_synced
from isthmus.stream.log.segments import numbered

FORMAT, VERSION = "isthmus-stream-checkpoint", 1
NAMES = re.compile(r"checkpoint-(\d{12,20})")
WRITING = re.compile(r"writing-[\w-]+")  # a checkpoint that is incomplete, or is being removed
MANIFEST, GRAPH = "manifest.json", "graph.isthmus"


def found(folder: Path) -> list[tuple[int, Path]]:
    """The checkpoints of a folder: the batch of each, and its path; the newest last."""
    return numbered(folder, NAMES)


def write(folder: Path, graph: AdvancingGraph, facts: dict[str, Any], look: Callable[[], None]) -> Path:
    """Write a checkpoint of a graph that does not change meanwhile. Raises StoreError or OSError; then there is none.

    `look`, before it gets its name, raises StoreError if another writer has taken the folder over.
    """
    writing, target = folder / own_name(), folder / f"checkpoint-{graph.number:012d}"
    clear(folder)
    try:
        writing.mkdir()
        graph.store_into(writing / GRAPH)
        verdict = verify(writing / GRAPH)
        if not verdict.ok:
            raise StoreError(f"{writing / GRAPH}: does not hold what was written: {verdict.problems[0]}")
        with open_graph(writing / GRAPH) as stored:
            identity = stored.snapshot.identity()
        body = {
            "format": FORMAT,
            "version": VERSION,
            "isthmus": __version__,
            "batch": graph.number,
            "graph": identity,
            **facts,
        }
        write_synced(writing / MANIFEST, sealed(body))
        fsync_folder(writing)
        look()
        os.rename(writing, target)
    except BaseException:  # Ctrl-C too
        remove_folder(writing)
        raise
    fsync_folder(folder)
    return target


def read(path: Path) -> tuple[Graph, dict[str, Any]]:
    """The graph of a checkpoint, and what was written with it. The caller closes the graph."""
    facts = unsealed(path / MANIFEST, FORMAT, VERSION)
    graph = open_graph(path / GRAPH)
    if graph.snapshot.identity() != facts.get("graph"):
        graph.close()
        raise StoreError(f"{path / GRAPH}: is not the graph that the checkpoint was written with")
    return graph, facts


def discard(path: Path) -> None:
    """Remove a checkpoint. It is renamed first, so that an incomplete one is never found."""
    doomed = path.with_name(own_name())
    os.rename(path, doomed)
    remove_folder(doomed)


def clear(folder: Path) -> None:
    """Remove what a killed writer left."""
    for name in filter(WRITING.fullmatch, os.listdir(folder)):
        remove_folder(folder / name)


def own_name() -> str:
    """A name that no other writer uses: one that was replaced must not touch what its successor writes."""
    return f"writing-{os.getpid()}-{machine_key()}-{secrets.token_hex(4)}"
