"""Readers of a stream's folder beside its writer: each sees the snapshot of one batch, or a clear error.

Tests `stream/log/reader.py`, and a store that is replaced while it is read (`graph/store/store.py`).
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import isthmus as ist
from isthmus.stream.log import reader
from isthmus.stream.log.segments import found as segments_in

pytestmark = pytest.mark.timeout(300)
SECONDS = 25.0  # in which threads must have met


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
        number, end = 0, time.monotonic() + 4 * SECONDS
        while number < 30 or (len(seen) < 3 and not wrong and time.monotonic() < end):
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
    path, over, wrong, seen = tmp_path / "g.isthmus", threading.Event(), list[Any](), list[int]()
    sizes = (40, 70)
    ist.generate("path", path, vertices=sizes[0], threads=1).close()

    def read() -> None:
        while not over.is_set():
            try:
                with ist.open(path) as graph:
                    before = replaced[0]
                    found = int(ist.bfs(graph, 0, threads=1, memory="1%").filled().max())
                    if found + 1 not in sizes or found + 1 != graph.vertices:
                        wrong.append(found)
                    if replaced[0] > before:  # a replacement began or ended meanwhile
                        seen.append(found)
            except Exception as error:
                wrong.append(error)

    replaced, end = [0], time.monotonic() + SECONDS
    thread = threading.Thread(target=read)
    thread.start()
    while not wrong and len(seen) < 5 and time.monotonic() < end:
        replaced[0] += 1
        ist.generate("path", path, vertices=sizes[replaced[0] % 2], overwrite=True, threads=1).close()
    over.set()
    thread.join()
    assert not wrong
    assert seen, "no run overlapped a replacement: this shows nothing"


WRITER = """
import sys, time, isthmus as ist
print("ready", flush=True)
sys.stdin.readline()
written = 0
while written < int(sys.argv[3]):
    try:
        ist.generate("path", sys.argv[1], vertices=int(sys.argv[2]), overwrite=True, threads=1).close()
        print("done", flush=True)
        written += 1
    except ist.IsthmusError as error:
        print(f"refused: {error}", flush=True)
        time.sleep(0.002)  # a refusal takes less than a write: without a pause it would be refused again and again
"""
CLIENT = """
import sys, isthmus as ist
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[3])):
    try:
        with ist.stream(log=sys.argv[1], threads=1) as live:
            print("done", live.apply(inserts=[(0, 1000 * int(sys.argv[2]) + number)]).number, flush=True)
    except ist.StoreError as error:
        print(f"refused: {error}", flush=True)
"""


def beside(code: str, path: Path, names: tuple[int, int], times: int) -> list[list[str]]:
    """What two processes print that do the same at the same time."""
    started = [
        subprocess.Popen([sys.executable, "-c", code, path, str(name), str(times)], stdin=-1, stdout=-1, text=True)
        for name in names
    ]
    for each in started:
        assert each.stdout is not None and each.stdout.readline() == "ready\n"
    for each in started:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    printed = [each.communicate(timeout=120)[0].splitlines() for each in started]
    assert [each.returncode for each in started] == [0, 0]
    return printed


def test_two_processes_that_replace_a_store(tmp_path: Path) -> None:
    """Whoever comes last wins, or is refused; the store is always one of the two, whole, and nothing is left."""
    path, sizes = tmp_path / "g.isthmus", (40, 70)
    ist.generate("path", path, vertices=sizes[0], threads=1).close()
    printed = beside(WRITER, path, sizes, 25)
    assert all(line == "done" or line.startswith("refused: ") for lines in printed for line in lines)
    assert [lines.count("done") for lines in printed] == [25, 25]
    with ist.open(path) as graph:
        assert graph.vertices in sizes and ist.verify(path).ok
    assert os.listdir(tmp_path) == ["g.isthmus"]


def test_two_processes_that_write_to_a_log(tmp_path: Path) -> None:
    """Only one at a time has the folder; every batch that was acknowledged is there, and each number was given once."""
    folder = tmp_path / "d"
    ist.stream(ist.read(([0], [1])), log=folder, threads=1).close()
    done, refused = list[tuple[int, int]](), 0
    for attempt in range(10):
        printed = beside(CLIENT, folder, (10 * attempt + 1, 10 * attempt + 2), 20)
        for client, lines in zip((10 * attempt + 1, 10 * attempt + 2), printed, strict=True):
            for number, line in enumerate(lines):
                if line.startswith("done "):
                    done.append((int(line.split()[1]), 1000 * client + number))
                else:
                    assert "another stream is writing to this log" in line
                    refused += 1
        if refused:
            break
    assert refused, "the two never met: this shows nothing"
    assert sorted(number for number, _ in done) == list(range(1, len(done) + 1))
    with reading(folder) as live:
        assert live.number == len(done) and set(live.graph.neighbors(0).tolist()) == {
            1,
            *(target for _, target in done),
        }


READER = """
import sys, isthmus as ist
print("ready", flush=True)
seen = set()
while len(seen) < 6:
    with ist.stream(log=sys.argv[1], read_only=True, threads=1) as live:
        assert live.graph.degree(0) == live.number + 1 and not live.check()
        seen.add(live.number)
print("done", flush=True)
"""


def test_a_reading_process_beside_checkpoints(tmp_path: Path) -> None:
    """A reader in another process, until it has seen six batches, beside a writer that writes a checkpoint after
    each.
    """
    with ist.stream(ist.read(([0], [1])), [ist.BFS(source=0)], log=tmp_path, threads=1) as live:
        reader = subprocess.Popen([sys.executable, "-c", READER, tmp_path], stdout=subprocess.PIPE, text=True)
        end = time.monotonic() + 4 * SECONDS
        while reader.poll() is None and time.monotonic() < end:
            live.apply(inserts=[(0, live.number + 2)])
            live.checkpoint()
        assert reader.communicate(timeout=4 * SECONDS)[0].splitlines() == ["ready", "done"]
