"""Streams with a log: what was acknowledged is there again, whatever happened to the process, the disk or the files.

Tests `stream/log/logged.py`, `stream/log/log_writer.py`, `stream/log/recovery.py`, `stream/log/stream_checkpoints.py`,
`stream/log/acknowledged.py`, `stream/log/program_record.py`, `stream/opening.py` and `stream/log/unlogged.py`.
"""

from __future__ import annotations

import errno
import os
import pickle
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.graph.locks import lock_file
from isthmus.graph.locks.holder import Holder
from isthmus.stream.log import acknowledged, logged, segments
from isthmus.stream.log import log_writer as log
from isthmus.stream.log.logged import LOCK, Logged
from isthmus.stream.log.recovery import manifest_of
from isthmus.stream.log.segments import found as segments_in
from isthmus.stream.log.stream_checkpoints import found as checkpoints_in
from isthmus.stream.log.stream_checkpoints import read as read_checkpoint

pytestmark = pytest.mark.timeout(300)  # they may have to compile


@ist.monotone(initial=np.inf, combine="min", start=0)
def longer(length, weight):  # type: ignore[no-untyped-def]
    return length + weight + 1


@pytest.fixture(scope="module")
def path() -> Iterator[ist.Graph]:
    with ist.generate("path", vertices=6) as graph:
        yield graph


def opened(folder: Path, graph: Any = None, programs: Any = None, **options: Any) -> Any:
    return ist.stream(graph, programs, log=folder, threads=1, **options)


def edges(graph: Any) -> set[tuple[Any, Any]]:
    return {(u, v) for u in graph.ids.users(np.arange(graph.vertices)).tolist() for v in graph.neighbors(u).tolist()}


def files(folder: Path) -> list[str]:
    """Without the lock, which only a stream that is open, or was killed, has there."""
    return sorted(entry.name for entry in folder.iterdir() if entry.name != LOCK)


def test_opened_again_it_goes_on(tmp_path: Path, path: ist.Graph) -> None:
    with opened(tmp_path / "d", path, [ist.BFS(source=0), ist.PageRank(tol=1e-3, name="ranks")]) as live:
        assert live.log.notes == [] and live.number == 0
        live.apply(inserts=[(0, 9)], deletes=[(1, 2)])
        live.apply(remove_vertices=[4], add_vertices=[20])
        report = live.apply(inserts=[(9, 20)])
        assert report.number == live.number == 3 and report.seconds["log"] > 0 and live.log.facts()["syncs"] == 3
        before, values = edges(live.graph), live["bfs"].filled().tolist()
    for graph in (path, None):  # with the graph that it began with, or without
        with opened(tmp_path / "d", graph) as live:
            assert (live.number, list(live), live["bfs"].number) == (3, ["bfs", "ranks"], 3)
            assert edges(live.graph) == before and live["bfs"].filled().tolist() == values and live.check() == {}
            assert live.log.notes == [
                f"recovered to batch 3 from {tmp_path / 'd'}: checkpoint of batch 0, 3 batches of the log"
            ]
            assert live.log.facts()["recovered"]["batch"] == 3
    with opened(tmp_path / "d", programs=["weakly_connected_components"]) as live:
        assert live.apply(inserts=[(20, 3)]).number == 4 and live.check() == {}
    with opened(tmp_path / "d") as live:
        assert list(live) == ["weakly_connected_components"] and live.number == 4


@pytest.mark.parametrize("names", [False, True])
def test_ids_and_weights_of_any_kind(tmp_path: Path, names: bool) -> None:
    name = (lambda k: f"n{k}") if names else (lambda k: 10 * k - 20)
    ends = [np.array([name(k) for k in column], object if names else np.int64) for column in ((0, 1, 2), (1, 2, 0))]
    graph = ist.read((*ends, np.array([0.5, 1.25, 2])), directed=True)
    with opened(tmp_path / "d", graph, [ist.SSSP(source=name(0))]) as live:
        live.apply(inserts=[(name(2), name(7), 0.125)], updates=[(name(0), name(1), 3.5)])
        live.checkpoint()
        live.apply(inserts=[(name(7), name(8), 1)])
        expected = dict(zip(live["sssp"].vertices.tolist(), live["sssp"].values.tolist(), strict=True))
    with opened(tmp_path / "d") as live:
        assert dict(zip(live["sssp"].vertices.tolist(), live["sssp"].values.tolist(), strict=True)) == expected
        live.apply(remove_vertices=[user for user in live["sssp"].vertices.tolist() if user != name(0)])
        live.checkpoint()
    with opened(tmp_path / "d") as live:
        assert live["sssp"].vertices.tolist() == [name(0)] and live.check() == {}
        live.apply(inserts=[(name(0), name(1), 2)])
        assert live["sssp"].values.tolist() == [0, 2]


def test_a_graph_without_vertices(tmp_path: Path) -> None:
    with opened(tmp_path / "d", ist.read((np.empty(0, np.int64), np.empty(0, np.int64)))) as live:
        live.apply()
        live.checkpoint()
    with opened(tmp_path / "d") as live:
        live.apply(inserts=[(1, 2)])
        assert (live.number, live.graph.edges) == (2, 1)


def test_options_of_programs_are_kept(tmp_path: Path, path: ist.Graph) -> None:
    wanted = [
        ist.PersonalizedPageRank([1, np.int64(2)], tol=1e-3, name="ppr"),
        ist.PageRank(tol=1e-3, personalization={1: 0.5, 2: 0.5}),
        ist.MultiSourceBFS(sources=np.array([0, 3])),
        "core_number",
    ]
    with opened(tmp_path / "d", path, wanted) as live:
        live.apply(inserts=[(1, 4)])
        expected = {name: live[name].result() for name in live}
    with opened(tmp_path / "d") as live:
        assert list(live) == ["ppr", "pagerank", "multi_source_bfs", "core_number"] and live.check() == {}
        assert all(set(live[name].columns) == set(expected[name].columns) for name in live)
    with opened(tmp_path / "d", programs=[longer(source=0)]) as live:
        live.apply(inserts=[(0, 5)])
    with pytest.raises(
        ist.OptionError,
        match=r"its stream maintained longer, which is not kept in a file: give programs=\[\.\.\.\] again",
    ):
        opened(tmp_path / "d")
    with opened(tmp_path / "d", programs=[longer(source=0)]) as live:
        assert live.number == 2 and live.check() == {}


def test_retries_do_no_harm(tmp_path: Path, path: ist.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path / "d", path) as live:
        assert live.apply(inserts=[(0, 3)], id="a").repeated is False
        live.apply(deletes=[(0, 3)], id="b")
        again = live.apply(inserts=[(0, 3)], id="a")
        assert again.repeated and (again.number, live.number) == (1, 2) and not live.graph.has_edge(0, 3)
        with pytest.raises(ist.BatchError, match="id: batch 1 had the id 'a' too, with other changes"):
            live.apply(inserts=[(0, 4)], id="a")
        live.checkpoint()
    monkeypatch.setattr(acknowledged, "MOST_IDS", 3)
    with opened(tmp_path / "d") as live:
        assert live.apply(inserts=[(0, 3)], id="a").repeated and live.apply(deletes=[(0, 3)], id="b").repeated
        live.apply(id="c")
        live.apply(id="d")
        assert not live.apply(inserts=[(0, 3)], id="a").repeated, "only so many are remembered"
        with pytest.raises(ist.OptionError, match="id: expected a text, got 7"):
            live.apply(id=7)
    with ist.stream(path) as live, pytest.raises(ist.OptionError, match="id: a stream without a log does not know"):
        live.apply(id="a")


def test_a_batch_that_is_refused_leaves_no_trace(tmp_path: Path, path: ist.Graph) -> None:
    with opened(tmp_path / "d", path, [ist.BFS(source=0)]) as live:
        for bad in ({"remove_vertices": [0]}, {"deletes": [(0, 5)], "strict": True}, {"inserts": [("x", 1)]}):
            with pytest.raises(ist.BatchError):
                live.apply(**bad)
        assert live.apply(inserts=[(0, 2)]).number == 1
    with opened(tmp_path / "d") as live:
        assert live.number == 1


def test_follow_passes_over_what_was_applied(tmp_path: Path, path: ist.Graph) -> None:
    rows = [
        "op,source,target",
        "insert,0,3",
        "insert,3,9",
        "remove_vertex,9,",
        "insert,0,9",
        "delete,0,3",
        "insert,0,4",
    ]
    changes = tmp_path / "changes.csv"
    changes.write_text("\n".join(rows) + "\n")
    expected = None
    for taken in range(5):
        folder = tmp_path / f"d{taken}"
        with opened(folder, path) as live:
            for number, _ in enumerate(live.follow(changes, batch=2)):
                if number + 1 == taken:
                    break
        with opened(folder) as live:
            list(live.follow(changes, batch=1))
            expected = expected or edges(live.graph)
            assert edges(live.graph) == expected and (0, 9) in expected and (3, 9) not in expected
            assert list(live.follow(str(changes))) == [], "all of it was applied"
            assert live.log.notes[-1] == f"{changes}: 6 rows were applied before, and are passed over"
    (tmp_path / "others.csv").write_text("\n".join(rows[:3]) + "\n")
    with opened(folder) as live:
        assert [report.changes for report in live.follow(tmp_path / "others.csv")] == [2]
        changes.write_text("\n".join([*rows[:2], "insert,3,8", *rows[3:]]) + "\n")
        with pytest.raises(
            ist.OptionError, match="has applied 6 rows of this file, and its first 6 rows are others now"
        ):
            list(live.follow(changes))
        changes.write_text("\n".join(rows[:3]) + "\n")
        with pytest.raises(ist.OptionError, match="has applied 6 rows"):
            list(live.follow(changes))
        changes.write_text("\n".join([*rows, "insert,1,5"]) + "\n")
        assert [report.changes for report in live.follow(changes)] == [1]


def test_checkpoints_cut_the_log(tmp_path: Path, path: ist.Graph) -> None:
    with opened(tmp_path, path, log_size=400) as live:
        for number in range(1, 12):
            live.apply(inserts=[(0, 100 + number)], id=f"b{number}")
            assert len(checkpoints_in(tmp_path)) <= 2 and len(segments_in(tmp_path)) <= 2
        assert live.log.facts()["checkpoints"] >= 2 and live.log.notes == []
        kept = [number for number, _ in checkpoints_in(tmp_path)]
        assert [number for number, _ in segments_in(tmp_path)] == kept, "the log since the older one is kept too"
        live.checkpoint()
        live.checkpoint()
        assert checkpoints_in(tmp_path)[-1][0] == 11
        before = edges(live.graph)
    expected = {f"{kind}-{number:012d}" for kind in ("log", "checkpoint") for number in (kept[-1], 11)}
    assert set(files(tmp_path)) == {"stream.json", *expected}
    with opened(tmp_path) as live:
        assert edges(live.graph) == before and live.apply(inserts=[(0, 103)], id="b3").repeated
    newest = checkpoints_in(tmp_path)[-1][1]
    target = newest / "graph.isthmus" / "out.targets"
    target.write_bytes(bytes([target.read_bytes()[0] ^ 1]) + target.read_bytes()[1:])
    with opened(tmp_path) as live:
        assert edges(live.graph) == before and "checkpoint of batch 11 is damaged, and not used" in live.log.notes[0]
        assert (
            f"recovered to batch 11 from {tmp_path}: checkpoint of batch {kept[-1]}, {11 - kept[-1]} batch"
            in live.log.notes[1]
        )
        live.apply(inserts=[(0, 200)])
        live.checkpoint()
        assert [number for number, _ in checkpoints_in(tmp_path)] == [kept[-1], 12], "the damaged one is gone"
    shutil.rmtree(checkpoints_in(tmp_path)[0][1])
    (checkpoints_in(tmp_path)[0][1] / "manifest.json").write_text("{}")
    with pytest.raises(
        ist.StoreError, match=r"no checkpoint can be used: .*manifest.json: is damaged \(its checksum does not match\)"
    ):
        opened(tmp_path)


def test_what_only_a_damaged_checkpoint_has_is_missed(tmp_path: Path, path: ist.Graph) -> None:
    with opened(tmp_path, path) as live:
        for number in range(3):
            live.apply(inserts=[(0, 100 + number)])
        live.checkpoint()
    last = segments_in(tmp_path)[0][1]
    os.truncate(last, last.stat().st_size - 200)
    with opened(tmp_path) as live:
        assert live.number == 3, "the checkpoint has them"
    shutil.rmtree(checkpoints_in(tmp_path)[-1][1] / "graph.isthmus")
    with pytest.raises(
        ist.StoreError, match=r"graph.isthmus: no such store; and the log ends|log-000000000000: byte|lacks batches"
    ):
        opened(tmp_path)


def test_a_writer_on_another_machine(tmp_path: Path, path: ist.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where locks do not reach other machines, the folder names its writer; whoever was idle for too long finds that it
    was replaced.
    """
    folder = tmp_path / "d"
    with opened(folder, path) as live:
        live.apply(inserts=[(0, 2)])
        assert (folder / LOCK).exists()
        monkeypatch.setattr(lock_file, "RENEWED", 0)
        live.apply(inserts=[(0, 3)])
        (folder / LOCK).write_bytes(Holder("otherhost", "1-2-3", "", 77).encode())
        with pytest.raises(
            ist.StoreError, match=r"no longer holds the lock: another process \(process 77 on the host otherhost\) has"
        ):
            live.apply(inserts=[(0, 4)])
        assert live.number == 2 and live.check() == {}
    with pytest.raises(
        ist.StoreError, match="process 77 on the host otherhost is writing to this log, or was killed there"
    ):
        opened(folder)
    os.utime(folder / LOCK, (0, 0))
    with opened(folder) as live:
        assert live.number == 2
    assert not (folder / LOCK).exists()


def test_a_writer_that_was_replaced_during_its_first_answers_cuts_nothing(
    tmp_path: Path, path: ist.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, really = tmp_path / "d", Logged.begin
    with opened(folder, path) as live:
        live.apply(inserts=[(0, 2)])
    last = segments_in(folder)[-1][1]

    def late(log: Logged, *given: Any) -> None:
        (folder / LOCK).write_bytes(Holder("otherhost", "1-2-3", "", 77).encode())
        with last.open("ab") as file:
            file.write(b"a batch of the other one")
        really(log, *given)

    monkeypatch.setattr(Logged, "begin", late)
    with pytest.raises(ist.StoreError, match=r"another process \(process 77 on the host otherhost\) has taken over"):
        opened(folder)
    assert last.read_bytes().endswith(b"a batch of the other one")


def test_a_writer_that_was_replaced_during_a_checkpoint_removes_nothing(
    tmp_path: Path, path: ist.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, really = tmp_path / "d", logged.stream_checkpoints.write
    with opened(folder, path) as live:
        for number in range(3):
            live.apply(inserts=[(0, 100 + number)])
            live.checkpoint()
        live.apply(inserts=[(0, 200)])
        before = files(folder)

        def slow(*given: Any) -> Path:
            (folder / LOCK).write_bytes(Holder("otherhost", "1-2-3", "", 77).encode())
            return really(*given)

        monkeypatch.setattr(logged.stream_checkpoints, "write", slow)
        with pytest.raises(ist.StoreError, match=r"a checkpoint of batch 4 could not be completed: .* has taken over"):
            live.checkpoint()
        with pytest.raises(ist.StoreError, match="has taken over"):
            live.apply(inserts=[(0, 201)])  # also within the next minute
        assert files(folder) == before


def test_only_a_full_disk_excuses_a_missing_lock_file(
    tmp_path: Path, path: ist.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = os.open

    def failing(number: int) -> Callable[..., int]:
        def opening(name: Any, *given: Any, **more: Any) -> int:
            if Path(os.fsdecode(name)).name == LOCK:
                raise OSError(number, os.strerror(number))
            return really(name, *given, **more)

        return opening

    monkeypatch.setattr(os, "open", failing(errno.EIO))
    with pytest.raises(ist.StoreError, match="d: cannot write here: Input/output error"):
        opened(tmp_path / "d", path)
    monkeypatch.setattr(os, "open", failing(errno.EDQUOT))
    with opened(tmp_path / "d", path) as live:
        assert live.apply(inserts=[(0, 2)]).number == 1
        with pytest.raises(ist.StoreError, match="another stream is writing to this log"):
            opened(tmp_path / "d")
        assert not (tmp_path / "d" / LOCK).exists()
        monkeypatch.setattr(logged, "RENEWED", 0)
        live.apply(inserts=[(0, 3)])
        monkeypatch.setattr(os, "open", really)
        live.apply(inserts=[(0, 4)])
        assert (tmp_path / "d" / LOCK).exists(), "there was room"
    assert not (tmp_path / "d" / LOCK).exists()


def test_a_writer_without_a_lock_file_finds_another_one(
    tmp_path: Path, path: ist.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk was full when it began; then a machine that does not see the folder's lock began as well."""
    with opened(tmp_path / "d", path) as live:
        assert isinstance(live.log, Logged) and live.log._lock_file is not None
        live.log._lock_file.release()
        live.log._lock_file = None
        (tmp_path / "d" / LOCK).write_bytes(Holder("otherhost", "1-2-3", "", 77).encode())
        with monkeypatch.context() as patched:
            patched.setattr(logged, "RENEWED", 0)
            with pytest.raises(ist.StoreError, match="process 77 on the host otherhost is writing to this log"):
                live.apply(inserts=[(0, 2)])
        with pytest.raises(ist.StoreError, match="process 77 on the host otherhost is writing to this log"):
            live.apply(inserts=[(0, 2)])  # also within the next minute
        assert live.number == 0


def test_a_writer_that_was_replaced_during_a_sync_acknowledges_and_marks_nothing(
    tmp_path: Path, path: ist.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, really = tmp_path / "d", os.fdatasync
    with opened(folder, path) as live:
        live.apply(inserts=[(0, 2)])
        last, found = segments_in(folder)[-1][1], []

        def slept(file: int) -> None:
            really(file)
            (folder / LOCK).write_bytes(Holder("otherhost", "1-2-3", "", 77).encode())
            monkeypatch.setattr(lock_file, "RENEWED", 0)  # as after an hour
            found.append(last.read_bytes())

        monkeypatch.setattr(os, "fdatasync", slept)
        with pytest.raises(
            ist.StoreError, match=r"batch 2 was not acknowledged: .*d: this process no longer holds the lock"
        ):
            live.apply(inserts=[(0, 3)])
        assert last.read_bytes() == found[0], "no mark over what the other one wrote"
        with pytest.raises(ist.StoreError, match=r"the stream is read-only: .* no longer holds the lock"):
            live.apply(inserts=[(0, 4)])


def test_a_new_file_of_the_log_is_not_begun_over_that_of_another_writer(
    tmp_path: Path, path: ist.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "d"
    with opened(folder, path) as live:
        live.apply(inserts=[(0, 2)])
        theirs = folder / "log-000000000001"
        theirs.write_bytes(b"batches of the other one")
        with pytest.raises(ist.StoreError, match=r"log-000000000001: exists already; another writer has made it"):
            live.checkpoint()
        assert theirs.read_bytes() == b"batches of the other one"
    theirs.unlink()
    with opened(folder) as live:
        live.apply(inserts=[(0, 3)])
        (folder / LOCK).write_bytes(Holder("otherhost", "1-2-3", "", 77).encode())
        assert isinstance(live.log, Logged) and live.log._writer is not None
        with pytest.raises(ist.StoreError, match=r"the stream is read-only: .* no longer holds the lock"):
            live.log._writer.roll()
        assert not (folder / "log-000000000002").exists()


def test_a_fork_writes_no_checkpoint_and_begins_no_file(tmp_path: Path, path: ist.Graph) -> None:
    """Batches that its parent acknowledges afterwards would not be read again."""
    folder = tmp_path / "d"
    with opened(folder, path) as live:
        live.apply(inserts=[(0, 2)])
        before = files(folder)
        child = os.fork()
        if child == 0:
            try:
                live.checkpoint()
            except ist.StoreError as error:
                os._exit(0 if "and was then forked, can write" in str(error) else 1)
            os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        assert files(folder) == before
        live.apply(inserts=[(0, 3)])
    with opened(folder) as live:
        assert live.number == 2


def test_a_look_after_the_end_takes_nothing(tmp_path: Path, path: ist.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path / "d", path) as live:
        pass
    monkeypatch.setattr(logged, "RENEWED", 0)
    assert isinstance(live.log, Logged)
    with pytest.raises(ist.StoreError, match="d: the stream is closed"):
        live.log._look()
    assert not (tmp_path / "d" / LOCK).exists()


def test_locks_are_released_if_the_log_cannot_be_closed(
    tmp_path: Path, path: ist.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt, for example, while the last batch is synced."""
    live = opened(tmp_path / "d", path)
    assert isinstance(live.log, Logged) and live.log._writer is not None
    with monkeypatch.context() as patched:
        patched.setattr(live.log._writer, "close", lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            live.log.close()
    opened(tmp_path / "d").close()
    live.close()


def test_mistakes(tmp_path: Path, path: ist.Graph) -> None:
    with ist.generate("path", tmp_path / "g.isthmus", vertices=9) as other, opened(tmp_path / "d", path) as live:
        with pytest.raises(ist.StoreError, match="another stream is writing to this log"):
            opened(tmp_path / "d", path)
        live.close()
        with pytest.raises(
            ist.StoreError, match=r"began with <Graph: 6 vertices.*, and <Graph: 9 vertices.* is another graph"
        ):
            opened(tmp_path / "d", other)
    with pytest.raises(ist.OptionError, match=r"log: .*g\.isthmus is a store; name a folder of its own"):
        opened(tmp_path / "g.isthmus", path)
    with pytest.raises(
        ist.StoreError, match=r"there is no log to go on with \(no stream.json\); give a graph to begin with"
    ):
        opened(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("")
    with pytest.raises(
        ist.StoreError,
        match=r"full: is not the folder of a log, since it contains letter.txt; name a new or empty folder",
    ):
        opened(tmp_path / "full", path)
    with pytest.raises(ist.StoreError, match="cannot be used as a folder for a log: File exists"):
        opened(tmp_path / "full" / "letter.txt", path)
    with pytest.raises(
        ist.StoreError, match=r"is not an Isthmus store \(no manifest.json\); it is the log of a stream"
    ):
        ist.open(tmp_path / "d")
    with pytest.raises(ist.OptionError, match="stream: expected a graph"):
        ist.stream()
    with pytest.raises(ist.OptionError, match="log_size: expected a folder as well: give log="):
        ist.stream(path, log_size="1MB")
    with pytest.raises(ist.OptionError, match="log_size=: expected a size such as 64MB, got 0"):
        opened(tmp_path / "e", path, log_size=0)
    with pytest.raises(ist.OptionError, match="two programs are called bfs"):
        opened(tmp_path / "e", path, [ist.BFS(source=0), ist.BFS(source=1)])
    assert not (tmp_path / "e").exists(), "nothing was begun"
    with ist.stream(path) as live, pytest.raises(ist.OptionError, match="checkpoint: this stream has no log"):
        live.checkpoint()
    manifest = tmp_path / "d" / "stream.json"
    for text in ("{}", manifest.read_text().replace("isthmus-stream", "isthmus-strean")):
        manifest.write_text(text)
        with pytest.raises(ist.StoreError, match=r"stream.json: is damaged \(its checksum does not match\)"):
            opened(tmp_path / "d")


@pytest.mark.parametrize("name", ["stream.json", "checkpoint-000000000000/manifest.json"])
def test_manifests_truncated_at_every_byte_and_flipped_at_every_bit(tmp_path: Path, path: ist.Graph, name: str) -> None:
    with opened(tmp_path, path) as live:
        live.apply(inserts=[(0, 3)], id="a")
    whole = (tmp_path / name).read_bytes()
    flips = (
        whole[: bit // 8] + bytes([whole[bit // 8] ^ 1 << bit % 8]) + whole[bit // 8 + 1 :]
        for bit in range(8 * len(whole))
    )
    for data in (*(whole[:size] for size in range(len(whole))), *flips):
        (tmp_path / name).unlink()
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ist.StoreError, match=f"{tmp_path / name}: is damaged"):
            (manifest_of if name == "stream.json" else read_checkpoint)((tmp_path / name).parent)
    with pytest.raises(ist.StoreError, match="is damaged"):
        opened(tmp_path)
    (tmp_path / name).write_bytes(whole)
    with opened(tmp_path) as live:
        assert live.number == 1


def test_killed_before_it_began(tmp_path: Path, path: ist.Graph) -> None:
    """A folder without its manifest and without batches has acknowledged nothing."""
    opened(tmp_path / "d", path).close()
    (tmp_path / "d" / "stream.json").unlink()
    (tmp_path / "d" / "writing-1-ab-cd").mkdir()
    with opened(tmp_path / "d", path) as live:
        assert live.number == 0 and live.log.notes == []
    assert files(tmp_path / "d") == ["checkpoint-000000000000", "log-000000000000", "stream.json"]


def test_a_folder_that_lost_its_manifest_is_not_taken_for_a_new_one(tmp_path: Path, path: ist.Graph) -> None:
    with opened(tmp_path / "d", path) as live:
        live.apply(inserts=[(0, 3)])
    (tmp_path / "d" / "stream.json").unlink()
    before = files(tmp_path / "d")
    with pytest.raises(ist.StoreError, match=r"has batches, and its stream\.json is missing"):
        opened(tmp_path / "d", path)
    assert files(tmp_path / "d") == before


def test_interrupted_while_a_new_file_of_the_log_begins(
    tmp_path: Path, path: ist.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was acknowledged before is there; nothing is acknowledged that the next opening would not read."""
    live = opened(tmp_path / "d", path)
    live.apply(inserts=[(0, 3)])

    def stop(folder: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(segments, "fsync_folder", stop)
        with pytest.raises(KeyboardInterrupt):
            live.checkpoint()
    with pytest.raises(ist.StoreError, match="read-only: an interrupt cut off the beginning of a new file of the log"):
        live.apply(inserts=[(0, 4)])
    live.close()
    with opened(tmp_path / "d") as again:
        assert again.number == 1 and again.graph.has_edge(0, 3) and not again.graph.has_edge(0, 4)


def test_the_process_may_go_to_another_folder(tmp_path: Path, path: ist.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    with opened(Path("d"), path) as live:
        monkeypatch.chdir(tmp_path / "other")
        live.apply(inserts=[(0, 3)])
        live.checkpoint()
    assert files(tmp_path / "other") == []
    with opened(tmp_path / "d") as again:
        assert again.number == 1 and again.graph.has_edge(0, 3)


def test_a_half_applied_batch_is_neither_saved_nor_read(
    tmp_path: Path, path: ist.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(change: Any) -> None:
        raise KeyboardInterrupt

    live = opened(tmp_path / "d", path)
    monkeypatch.setattr(live.graph, "renumber", stop)
    with pytest.raises(KeyboardInterrupt):
        live.apply(remove_vertices=[2], id="a")
    save, search = (lambda: live.save(tmp_path / "s.isthmus")), (lambda: ist.bfs(live.graph, 0))
    again = lambda: live.apply(remove_vertices=[2], id="a")  # noqa: E731  # the log has it; this stream cannot show it
    for use in (
        live.checkpoint,
        save,
        search,
        lambda: live.graph.neighbors(0),
        live.graph.frozen,
        live.graph.info,
        again,
    ):
        with pytest.raises(ist.BatchError, match="a batch was stopped while it was applied"):
            use()
    live.close()
    with opened(tmp_path / "d") as anew:
        assert anew.number == 1 and 2 not in anew.graph and anew.apply(remove_vertices=[2], id="a").repeated


def test_a_fork_cannot_write(tmp_path: Path, path: ist.Graph) -> None:
    with opened(tmp_path / "d", path) as live:
        live.apply(inserts=[(0, 3)])
        child = os.fork()
        if child == 0:
            try:
                live.log._writer.check()
            except ist.StoreError as error:
                os._exit(0 if "and was then forked, can write" in str(error) else 1)
            os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        live.apply(inserts=[(0, 4)])


def test_a_damaged_checkpoint_is_written_again(tmp_path: Path, path: ist.Graph) -> None:
    with opened(tmp_path / "d", path) as live:
        live.apply(inserts=[(0, 3)])
        live.checkpoint()
    (tmp_path / "d" / "checkpoint-000000000001" / "manifest.json").write_bytes(b"x")
    with opened(tmp_path / "d") as live:
        assert "is damaged, and not used" in live.log.notes[0]
        live.checkpoint()
    with opened(tmp_path / "d") as again:
        assert len(again.log.notes) == 1 and "checkpoint of batch 1, 0 batches" in again.log.notes[0]


class Failing:
    """Replaces a function of `os`: it fails while `error` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self.error, self.calls, self._really = 0, 0, getattr(os, name)
        monkeypatch.setattr(os, name, self)

    def __call__(self, *args: Any, **named: Any) -> Any:
        self.calls += 1
        if self.error:
            raise OSError(self.error, os.strerror(self.error))
        return self._really(*args, **named)


def test_a_full_disk_refuses_a_batch(tmp_path: Path, path: ist.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    writes = Failing(monkeypatch, "pwrite")
    with opened(tmp_path, path, [ist.BFS(source=0)]) as live:
        live.apply(inserts=[(0, 9)])
        writes.error = errno.ENOSPC
        size = segments_in(tmp_path)[0][1].stat().st_size
        with pytest.raises(
            ist.StoreError,
            match=r"the batch was not applied: .*log-0+: cannot write at byte \d+: No space left on device",
        ):
            live.apply(inserts=[(0, 10)], id="x")
        assert (live.number, live.graph.number) == (1, 1) and segments_in(tmp_path)[0][1].stat().st_size == size
        with pytest.raises(ist.StoreError, match="a checkpoint of batch 1 could not be completed: "):
            live.checkpoint()
        writes.error = 0
        report = live.apply(inserts=[(0, 10)], id="x")
        assert report.number == 2 and not report.repeated
    with opened(tmp_path) as live:
        assert live.number == 2 and live.graph.has_edge(0, 10) and live.check() == {}


def test_a_checkpoint_that_fails_is_noted_and_tried_again(
    tmp_path: Path, path: ist.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    renames = Failing(monkeypatch, "rename")
    with opened(tmp_path, path, log_size=300) as live:
        renames.error = errno.EIO
        while not live.log.notes:
            live.apply(inserts=[(0, 100 + live.number)])
        failed = live.number
        assert f"a checkpoint of batch {failed} could not be completed: " in live.log.notes[0]
        assert files(tmp_path) == ["checkpoint-000000000000", "log-000000000000", "stream.json"]
        renames.error = 0
        while live.log.facts()["checkpoints"] == 0:
            live.apply(inserts=[(0, 100 + live.number)])
        assert len(live.log.notes) == 1 and live.number > failed + 1, (
            "the next try is due when as much was written again"
        )
    with opened(tmp_path) as live:
        assert live.log.facts()["recovered"]["checkpoint"] == live.number


def test_a_batch_that_can_neither_be_written_nor_cut_off(
    tmp_path: Path, path: ist.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes, cuts = Failing(monkeypatch, "pwrite"), Failing(monkeypatch, "ftruncate")
    with opened(tmp_path, path) as live:
        writes.error, cuts.error = errno.EIO, errno.EIO
        with pytest.raises(ist.StoreError, match="the batch was not applied"):
            live.apply(inserts=[(0, 10)])
        writes.error = cuts.error = 0
        with pytest.raises(
            ist.StoreError, match=r"the stream is read-only: .* an unfinished batch cannot be cut off: Input/output"
        ):
            live.apply(inserts=[(0, 10)])
        assert live.number == 0


def test_a_sync_that_fails_makes_the_stream_read_only(
    tmp_path: Path, path: ist.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs = Failing(monkeypatch, "fdatasync")
    with opened(tmp_path, path, [ist.BFS(source=0)]) as live:
        live.apply(inserts=[(0, 2)], id="1")
        syncs.error = errno.EIO
        with pytest.raises(
            ist.StoreError, match=r"batch 2 was not acknowledged: .*log-0+: cannot be synced: Input/output error; it"
        ):
            live.apply(inserts=[(0, 5)], id="2")
        syncs.error = 0
        for again in ("2", "3"):
            with pytest.raises(ist.StoreError, match="cannot be synced: Input/output error"):
                live.apply(inserts=[(0, 5)], id=again)
        with pytest.raises(ist.StoreError, match=r"the stream is read-only: .*; open it again"):
            live.apply(inserts=[(1, 5)])
        assert (live.number, live["bfs"].number, live["bfs"].filled().tolist()) == (1, 1, [0, 1, 1, 2, 3, 4]), (
            "what was acknowledged"
        )
        with pytest.raises(ist.StoreError, match="batch 2 was not acknowledged"):
            ist.bfs(live.graph, 0)  # it has the batch already
        assert syncs.calls == 2, "it is not tried again"
    with opened(tmp_path) as live:
        assert live.number == 2 and live.apply(inserts=[(0, 5)], id="2").repeated and live.check() == {}


def test_what_was_not_known_to_be_on_disk_is_written_again(
    tmp_path: Path, path: ist.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a sync that failed, the system may have dropped what it could not write, and still show it to readers."""
    syncs = Failing(monkeypatch, "fdatasync")
    with opened(tmp_path, path) as live:
        live.apply(inserts=[(0, 2)])
        syncs.error = errno.EIO
        size = segments_in(tmp_path)[0][1].stat().st_size
        with pytest.raises(ist.StoreError):
            live.apply(inserts=[(0, 5)])
    written, really = [], os.pwrite

    def noted(file: int, data: Any, offset: int) -> int:
        written.append((offset, len(data)))
        return really(file, data, offset)

    monkeypatch.setattr(os, "pwrite", noted)
    with opened(tmp_path) as live:
        assert written[1:] == [(size, segments_in(tmp_path)[0][1].stat().st_size - size)] and live.number == 2, (
            "the first is a lock"
        )


def test_many_threads_share_syncs(tmp_path: Path, path: ist.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches that come while a sync is under way reach the disk with the next one; each thread sees its own when it
    returns.
    """
    really, wrong = os.fdatasync, list[Any]()

    def sync(file: int) -> None:
        """Until each of the threads has a batch that waits, or all batches have come."""
        end = time.monotonic() + 5
        while live.graph.number - live.number < 8 and live.graph.number < 40 and time.monotonic() < end:
            time.sleep(0.001)
        really(file)

    with opened(tmp_path, path, [ist.BFS(source=0)]) as live:
        monkeypatch.setattr(os, "fdatasync", sync)

        def apply(first: int) -> None:
            for k in range(5):
                report = live.apply(inserts=[(0, first + k)], id=f"{first + k}")
                if live["bfs"].number < report.number or live.number < report.number:
                    wrong.append(report)

        threads = [threading.Thread(target=apply, args=(100 * k,)) for k in range(1, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong and live.number == 40 and live.log.facts()["syncs"] < 30 and live.check() == {}
        before = edges(live.graph)
    with opened(tmp_path) as live:
        assert live.number == 40 and edges(live.graph) == before and live.apply(inserts=[(0, 104)], id="104").repeated


def test_a_batch_is_shown_when_it_is_on_disk(tmp_path: Path, path: ist.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, really = threading.Event(), os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda file: (go_on.wait(60), really(file)))
    with opened(tmp_path, path, [ist.BFS(source=0)]) as live:
        thread = threading.Thread(target=live.apply, kwargs={"inserts": [(0, 5)]})
        thread.start()
        while live.graph.number == 0:
            assert thread.is_alive()
        assert (live.number, live["bfs"].number, int(live["bfs"].values[5])) == (0, 0, 5)
        go_on.set()
        thread.join()
        assert (live.number, live["bfs"].number, int(live["bfs"].values[5])) == (1, 1, 1)


@pytest.mark.parametrize(
    "use",
    [
        lambda graph: graph.frozen().has_edge(0, 5),
        lambda graph: graph.info()["batch"] == 1,
        lambda graph: 77 in graph,
        lambda graph: graph.busiest() == 5,
        lambda graph: pickle.loads(pickle.dumps(graph)).has_edge(0, 5),
    ],
    ids=["frozen", "info", "in", "busiest", "pickle"],
)
def test_the_graph_is_read_when_its_batches_are_on_disk(
    tmp_path: Path, path: ist.Graph, monkeypatch: pytest.MonkeyPatch, use: Callable[[Any], bool]
) -> None:
    go_on, really, order = threading.Event(), os.fdatasync, list[str]()
    monkeypatch.setattr(os, "fdatasync", lambda file: (go_on.wait(60), order.append("synced"), really(file)))
    with opened(tmp_path, path) as live:
        batch = threading.Thread(target=live.apply, kwargs={"inserts": [(0, 5), (5, 77), (5, 1)]})
        batch.start()
        while live.graph.number == 0:
            assert batch.is_alive()
        seen: list[bool] = []
        reader = threading.Thread(target=lambda: (seen.append(use(live.graph)), order.append("read")))
        reader.start()
        reader.join(0.1)
        go_on.set()
        for thread in (batch, reader):
            thread.join()
        assert seen == [True] and order == ["synced", "read"]


def test_long_logs_have_several_files(tmp_path: Path, path: ist.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "SEGMENT", 300)
    with opened(tmp_path, path) as live:
        for number in range(10):
            live.apply(inserts=[(0, 100 + number)])
    assert len(segments_in(tmp_path)) > 2
    opens = Failing(monkeypatch, "open")
    with opened(tmp_path) as live:
        assert live.number == 10
        opens.error = errno.EMFILE
        with pytest.raises(
            ist.StoreError, match="cannot begin a new file of the log: Too many open files; open it again"
        ):
            for number in range(3):
                live.apply(inserts=[(0, 200 + number)])
        opens.error = 0
        last = live.number
    with opened(tmp_path) as live:
        assert live.number == last and live.graph.has_edge(0, 109)
    segments_in(tmp_path)[1][1].unlink()
    with pytest.raises(ist.StoreError, match="the log lacks batches"):
        opened(tmp_path)


def test_an_interrupted_batch_ends_the_stream_and_is_not_written_twice(
    tmp_path: Path, path: ist.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path, path) as live:
        with monkeypatch.context() as patched:
            patched.setattr(live.graph, "commit", lambda change: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                live.apply(inserts=[(0, 3)])
        with pytest.raises(ist.BatchError, match="the stream has ended"):
            live.apply(inserts=[(0, 4)])
    with opened(tmp_path) as live:
        assert live.number == 1 and live.graph.has_edge(0, 3), "it was not acknowledged, and is there whole"


def test_recovered_at_every_byte(tmp_path: Path, path: ist.Graph) -> None:
    """Cut anywhere, a log gives the graph after its last whole batch, and the stream goes on from there."""
    with opened(tmp_path / "d", path) as live:
        states = [edges(live.graph)]
        for number in range(3):
            live.apply(inserts=[(number, number + 10)], deletes=[(number, number + 1)])
            states.append(edges(live.graph))
    data = (tmp_path / "d" / "log-000000000000").read_bytes()
    reached = set()
    for size in range(0, len(data), 7):
        copy = tmp_path / "copy"
        shutil.copytree(tmp_path / "d", copy)
        (copy / "log-000000000000").write_bytes(data[:size])
        with opened(copy) as live:
            reached.add(live.number)
            assert edges(live.graph) == states[live.number]
            assert live.apply(inserts=[(0, 50)]).number == live.number
        with opened(copy) as live:
            assert live.graph.has_edge(0, 50)
        shutil.rmtree(copy)
    assert reached >= {0, 1, 2}
