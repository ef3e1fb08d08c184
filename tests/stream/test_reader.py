"""Readers of a stream's folder beside its writer: each sees the snapshot of one batch, or a clear error.

Tests `stream/reader.py`, and a store that is replaced while it is read (`graph/store.py`).
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

import isthmus as ist
from isthmus.stream import reader
from isthmus.stream.segments import found as segments_in


def reading(folder: Path, **options: Any) -> Any:
    return ist.stream(log=folder, read_only=True, threads=1, **options)


def test_a_reader_sees_one_batch(tmp_path: Path) -> None:
    with ist.stream(ist.generate("path", vertices=5), [ist.BFS(source=0)], log=tmp_path, threads=1) as live:
        live.apply(inserts=[(0, 4)])
        with reading(tmp_path) as other, reading(tmp_path, programs=["core_number"]) as third:
            live.apply(inserts=[(0, 3)])
            live.checkpoint()
            live.apply(inserts=[(0, 2)])
            live.checkpoint()
            assert (other.number, live.number) == (1, 3) and list(third) == ["core_number"]
            assert other["bfs"].filled().tolist() == [0, 1, 2, 2, 1] and other.check() == {} == third.check()
            with pytest.raises(ist.StoreError, match="the stream was opened read-only; open it without read_only=True"):
                other.apply(inserts=[(0, 3)])
            with pytest.raises(ist.StoreError, match="opened read-only; its writer writes checkpoints"):
                other.checkpoint()
            assert other.log.facts() == {"path": str(tmp_path), "batch": 1, "read_only": True}
            other.save(tmp_path.with_name("saved.isthmus"), overwrite=True)
        with reading(tmp_path) as other:
            assert other.number == 3


def test_readers_during_batches_and_checkpoints(tmp_path: Path) -> None:
    """Vertex 0 has as many edges as batches were applied; the writer writes a checkpoint after every other batch."""
    with ist.stream(ist.read(([0], [1])), [ist.BFS(source=0)], log=tmp_path, log_size=300, threads=1) as live:
        seen, wrong, over = set[int](), list[Any](), threading.Event()

        def read() -> None:
            while not over.is_set():
                try:
                    with reading(tmp_path) as other:
                        seen.add(other.number)
                        if other.graph.degree(0) != other.number + 1 or other["bfs"].number != other.number:
                            wrong.append(other.number)
                except Exception as error:
                    wrong.append(error)

        readers = [threading.Thread(target=read) for _ in range(2)]
        for each in readers:
            each.start()
        number = 0
        while number < 30 or (len(seen) < 3 and number < 300):
            number = live.apply(inserts=[(0, live.number + 2)]).number
        over.set()
        for each in readers:
            each.join()
        assert not wrong and len(seen) > 2 and live.log.facts()["checkpoints"] > 5


def test_damage_is_an_error_for_readers_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "PAUSE", 0.001)
    with pytest.raises(ist.StoreError, match=r"is not the folder of a stream's log \(no stream.json\)"):
        reading(tmp_path)
    with pytest.raises(ist.OptionError, match="read_only: expected a folder as well: give log="):
        ist.stream(ist.generate("path", vertices=5), read_only=True)
    with ist.stream(ist.generate("path", vertices=5), log=tmp_path, threads=1) as live:
        live.apply(inserts=[(0, 4)])
        live.apply(inserts=[(0, 3)])
    path = segments_in(tmp_path)[0][1]
    data = path.read_bytes()
    size = os.stat(path).st_size
    os.truncate(path, size - 60)  # within the mark and the second batch
    with reading(tmp_path) as other:
        assert other.number == 1 and path.stat().st_size == size - 60, "readers cut nothing"
    path.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
    with pytest.raises(ist.StoreError, match="log-000000000000: byte 48: batch 1 is damaged"):
        reading(tmp_path)


def test_a_store_that_is_replaced_while_it_is_read(tmp_path: Path) -> None:
    """Opening and running, beside a writer that replaces the store: each run answers for one of the two graphs."""
    path, over, wrong = tmp_path / "g.isthmus", threading.Event(), list[Any]()
    sizes = (40, 70)
    ist.generate("path", path, vertices=sizes[0], threads=1).close()

    def read() -> None:
        while not over.is_set():
            try:
                with ist.open(path) as graph:
                    found = int(ist.bfs(graph, 0, threads=1, memory="1%").filled().max())
                    if found + 1 not in sizes or found + 1 != graph.vertices:
                        wrong.append(found)
            except Exception as error:
                wrong.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    for number in range(12):
        ist.generate("path", path, vertices=sizes[number % 2], overwrite=True, threads=1).close()
    over.set()
    thread.join()
    assert not wrong
