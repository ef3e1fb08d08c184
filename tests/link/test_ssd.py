"""`link/ssd.py`, `graph/store/extent_reader.py`: what is read, in how many requests, and what happens if the disk or
the system will not play.
"""

from __future__ import annotations

import errno
import gc
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import StoreError
from isthmus.graph.store import extent_reader
from isthmus.graph.store.files import BLOCK, aligned_empty
from isthmus.kernels.store import aio
from isthmus.link.link import Extents
from isthmus.link.profile.calibration import GUESS
from isthmus.link.ssd import SsdLink

SECTIONS = ["out.targets", "out.weights"]


def arrays(graph: Any) -> Any:
    return graph.snapshot.far("out", True)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("link") / "g.isthmus"
    ist.generate("rmat", path, scale=14, weights="1:99").close()
    return path


@pytest.fixture
def graph(made: Path) -> Any:
    with ist.open(made) as graph:
        yield graph


@pytest.fixture
def own(tmp_path: Path) -> Any:
    """A graph of this test's own, to be damaged."""
    with ist.generate("rmat", tmp_path / "g.isthmus", scale=12, weights="1:99") as graph:
        yield graph


def extents(*rows: tuple[int, int, int, int]) -> Extents:
    """(section, block, blocks, place in blocks) each."""
    table = np.array(rows, np.int64).reshape(-1, 4)
    return Extents(table[:, 0], table[:, 1] * BLOCK, table[:, 2] * BLOCK, table[:, 3] * BLOCK)


def stored(graph: Any, section: int, block: int, count: int) -> bytes:
    return bytes(graph.store.read_blocks(SECTIONS[section], block, count))


def open_files() -> int:
    gc.collect()  # so that files of earlier tests are not closed in the middle of this one
    return len(os.listdir("/proc/self/fd"))


def no_ring(depth: int) -> Any:
    raise OSError(errno.ENOSYS, "no such call")


WANTED = [(0, 0, 3, 0), (1, 7, 1, 9), (0, 20, 40, 12), (1, 0, 2, 3), (0, 5, 1, 5)]


@pytest.mark.parametrize("rings", [True, False])
@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("few", [0, 1 << 30])
def test_extents_arrive_where_they_should(
    graph: Any, monkeypatch: pytest.MonkeyPatch, sized: Any, rings: bool, direct: bool, verify: bool, few: int
) -> None:
    sized(few_bytes=few)
    if not direct:
        refuse_direct(monkeypatch)
    if not rings:
        monkeypatch.setattr(extent_reader, "Ring", no_ring)
    before, threads = open_files(), set(threading.enumerate())
    link = SsdLink(arrays(graph), GUESS, verify)
    buffer = aligned_empty(60 * BLOCK, np.uint8)
    buffer[:] = 77
    assert link.move(extents(*WANTED), buffer, 1) == len(WANTED)
    for section, block, count, place in WANTED:
        assert buffer[place * BLOCK : (place + count) * BLOCK].tobytes() == stored(graph, section, block, count)
    assert (buffer[6 * BLOCK : 9 * BLOCK] == 77).all(), "nothing else was touched"
    assert link.move(extents(), buffer) == 0
    notes = " ".join(link.notes)
    assert ("direct reads refused; reading through the page cache" in notes) == (not direct)
    assert ("no asynchronous I/O (no such call): 32 threads read instead" in notes) == (not rings and not few)
    link.close()
    link.close()
    assert (open_files(), set(threading.enumerate()) <= threads) == (before, True)


def refuse_direct(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = os.open

    def refusing(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return plain(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", refusing)


def test_as_many_in_flight_as_the_profile_says(graph: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    depths: list[int] = []
    plain = extent_reader.Ring
    monkeypatch.setattr(extent_reader, "Ring", lambda depth: depths.append(depth) or plain(depth))
    SsdLink(arrays(graph), replace(GUESS, depth=8)).close()
    assert set(depths) == {8}
    monkeypatch.setattr(extent_reader, "Ring", no_ring)
    link = SsdLink(arrays(graph), replace(GUESS, depth=8))
    link.close()
    assert link.notes == ["no asynchronous I/O (no such call): 8 threads read instead"]


def test_long_extents_are_read_in_pieces(graph: Any, monkeypatch: pytest.MonkeyPatch, sized: Any) -> None:
    blocks = graph.store.manifest.sections["out.targets"].blocks
    sized(largest_read=16 * BLOCK)
    buffer = aligned_empty(blocks * BLOCK, np.uint8)
    for rings in (True, False):
        if not rings:
            monkeypatch.setattr(extent_reader, "Ring", no_ring)
        link = SsdLink(arrays(graph), GUESS)
        buffer[:] = 0
        assert link.move(extents((0, 0, blocks, 0)), buffer) == -(-blocks // 16)
        assert buffer.tobytes() == stored(graph, 0, 0, blocks)
        link.close()


def test_more_requests_than_fit_in_flight(graph: Any) -> None:
    """Thousands of single blocks, in no order, some twice."""
    blocks = graph.store.manifest.sections["out.weights"].blocks
    picks = np.random.default_rng(3).integers(0, blocks, 1500)
    link = SsdLink(arrays(graph), GUESS, verify=True)
    buffer = aligned_empty(picks.size * BLOCK, np.uint8)
    wanted = extents(*((1, int(block), 1, place) for place, block in enumerate(picks)))
    assert link.move(wanted, buffer) == picks.size
    everything = np.frombuffer(stored(graph, 1, 0, blocks), np.uint8).reshape(blocks, BLOCK)
    assert np.array_equal(buffer.reshape(-1, BLOCK), everything[picks])
    link.close()


def test_two_channels_at_once(graph: Any) -> None:
    """The reader and the main thread read side by side, each with its own ring."""
    link = SsdLink(arrays(graph), GUESS)
    failures: list[BaseException] = []

    def read(channel: int) -> None:
        try:
            buffer = aligned_empty(40 * BLOCK, np.uint8)
            for turn in range(60):
                block = (turn * 7 + channel * 3) % 60
                link.move(extents((channel, block, 40, 0)), buffer, channel)
                assert buffer.tobytes() == stored(graph, channel, block, 40)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=read, args=(channel,)) for channel in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    link.close()
    assert failures == []


@pytest.mark.parametrize("rings", [True, False])
@pytest.mark.parametrize("size", [5 * BLOCK, 5 * BLOCK + 123, 0])
def test_a_file_that_became_shorter(own: Any, monkeypatch: pytest.MonkeyPatch, rings: bool, size: int) -> None:
    if not rings:
        monkeypatch.setattr(extent_reader, "Ring", no_ring)
    link = SsdLink(arrays(own), GUESS)
    os.truncate(own.path / "out.targets", size)
    buffer = aligned_empty(20 * BLOCK, np.uint8)
    with pytest.raises(
        StoreError, match=rf"g\.isthmus/out\.targets: ends at byte {max(size, 2 * BLOCK)}, .*; the file was truncated"
    ):
        link.move(extents((0, 2, 18, 0)), buffer)
    assert link.move(extents((1, 2, 4, 0)), buffer) == 1, "the other file is still whole"
    link.close()


@pytest.mark.parametrize("rings", [True, False])
def test_a_read_that_fails(own: Any, monkeypatch: pytest.MonkeyPatch, rings: bool) -> None:
    """The asynchronous read fails, the plain one that repeats it too."""
    monkeypatch.setattr(extent_reader, "Ring", Failing if rings else no_ring)
    link = SsdLink(arrays(own), GUESS)

    def broken(*details: Any) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "preadv", broken)
    with pytest.raises(
        StoreError, match=rf"g\.isthmus/out\.weights: cannot read at byte {3 * BLOCK}: Input/output error"
    ):
        link.move(extents((1, 3, 2, 0)), aligned_empty(4 * BLOCK, np.uint8))
    link.close()


class Failing:
    """A ring all of whose reads fail or come back short."""

    def __init__(self, depth: int) -> None:
        pass

    def read(self, *details: Any) -> tuple[int, ...]:
        return 1, 5, -1, -1, 0

    def close(self) -> None:
        pass


def test_a_read_that_fails_once_is_repeated(own: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extent_reader, "Ring", Failing)
    plain, short = os.preadv, iter([100, 4096])

    def stuttering(descriptor: int, buffers: Any, offset: int) -> int:
        return plain(descriptor, [buffers[0][: next(short, len(buffers[0]))]], offset)

    monkeypatch.setattr(os, "preadv", stuttering)
    link = SsdLink(arrays(own), GUESS)
    buffer = aligned_empty(8 * BLOCK, np.uint8)
    link.move(extents((0, 1, 4, 0), (1, 0, 2, 5)), buffer)
    assert buffer[: 4 * BLOCK].tobytes() == stored(own, 0, 1, 4)
    assert buffer[5 * BLOCK : 7 * BLOCK].tobytes() == stored(own, 1, 0, 2)
    link.close()


@pytest.mark.parametrize("rings", [True, False])
def test_a_block_whose_checksum_is_wrong(own: Any, monkeypatch: pytest.MonkeyPatch, rings: bool) -> None:
    if not rings:
        monkeypatch.setattr(extent_reader, "Ring", no_ring)
    with (own.path / "out.weights").open("r+b") as file:
        file.seek(6 * BLOCK + 17)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))
    buffer = aligned_empty(16 * BLOCK, np.uint8)
    link = SsdLink(arrays(own), GUESS, verify=True)
    link.move(extents((1, 0, 6, 0), (0, 6, 2, 8), (1, 7, 1, 15)), buffer)
    with pytest.raises(
        StoreError, match=rf"g\.isthmus/out\.weights: block 6 at byte {6 * BLOCK}: the checksum does not match"
    ):
        link.move(extents((0, 6, 2, 0), (1, 4, 5, 3)), buffer)
    link.close()
    careless = SsdLink(arrays(own), GUESS, verify=False)
    careless.move(extents((1, 4, 5, 0)), buffer)
    careless.close()


def test_another_store_at_the_same_path(own: Any) -> None:
    """The graph that was opened is the graph that is read, even when a writer has replaced it meanwhile."""
    expected = ist.sssp(own, 0).values
    ist.generate("rmat", own.path, scale=12, seed=9, weights="5:7", overwrite=True).close()
    for how in ({}, {"policy": "filter", "memory": "10%"}, {"policy": "emogi", "memory": "10%"}):
        assert np.array_equal(ist.sssp(own, 0, **how).values, expected)


def test_a_closed_store(own: Any) -> None:
    own.close()
    before = open_files()
    with pytest.raises(StoreError, match=r"out\.targets cannot be read; the store is closed"):
        SsdLink(arrays(own), GUESS)
    assert open_files() == before


def test_a_file_that_cannot_be_opened_leaves_nothing_open(own: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = os.open

    def failing(path: Any, *details: Any, **named: Any) -> int:
        if str(path).endswith(str(own.store.file("out.weights").descriptor)):
            raise OSError(errno.EMFILE, "Too many open files")
        return plain(path, *details, **named)

    before = open_files()
    monkeypatch.setattr(os, "open", failing)
    with pytest.raises(StoreError, match=r"g\.isthmus/out\.weights: Too many open files"):
        SsdLink(arrays(own), GUESS)
    assert open_files() == before


def test_notes_reach_the_trace(own: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = ist.bfs(own, 0).values
    refuse_direct(monkeypatch)
    monkeypatch.setattr(extent_reader, "Ring", no_ring)
    result = ist.bfs(own, 0, memory="10%", policy="filter")
    assert np.array_equal(result.values, expected)
    told = "\n".join(result.summary()["notes"])
    assert f"{own.path}: direct reads refused; reading through the page cache and dropping what was read" in told
    assert "no asynchronous I/O (no such call): 32 threads read instead" in told


@pytest.mark.skipif(aio.NUMBERS is None, reason="no native asynchronous I/O here")
def test_reads_that_cannot_be_collected_are_repeated(graph: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often collecting fails, the link returns: with the blocks, by plain reads."""
    assert aio.NUMBERS is not None
    monkeypatch.setattr(aio, "NUMBERS", (*aio.NUMBERS[:3], 10**6))  # no such call
    link = SsdLink(arrays(graph), GUESS)
    buffer = aligned_empty(60 * BLOCK, np.uint8)
    for _ in range(2):
        link.move(extents(*WANTED), buffer, 1)
        for section, block, count, place in WANTED:
            assert buffer[place * BLOCK : (place + count) * BLOCK].tobytes() == stored(graph, section, block, count)
    link.close()


@pytest.mark.parametrize("rings", [True, False])
@pytest.mark.parametrize("verify", [True, False])
def test_a_target_that_is_not_a_vertex(own: Any, monkeypatch: pytest.MonkeyPatch, rings: bool, verify: bool) -> None:
    """Whether or not checksums are compared, no such target reaches a kernel."""
    if not rings:
        monkeypatch.setattr(extent_reader, "Ring", no_ring)
    with (own.path / "out.targets").open("r+b") as file:
        file.seek(5 * BLOCK + 40)
        file.write((4096).to_bytes(4, "little"))
    buffer = aligned_empty(16 * BLOCK, np.uint8)
    link = SsdLink(arrays(own), GUESS, verify)
    link.move(extents((0, 0, 5, 0), (1, 5, 2, 8)), buffer)
    found = "the checksum does not match" if verify else "a target is not a vertex"
    with pytest.raises(StoreError, match=rf"g\.isthmus/out\.targets: block 5 at byte {5 * BLOCK}: {found}"):
        link.move(extents((1, 0, 2, 0), (0, 4, 5, 3)), buffer)
    link.close()


@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError])
def test_a_link_that_could_not_be_opened_leaves_no_file_open(
    graph: Any, monkeypatch: pytest.MonkeyPatch, failure: type[Any]
) -> None:
    files, made = open_files(), list[aio.Ring]()

    def interrupted(depth: int) -> Any:
        if made:
            raise failure
        made.append(aio.Ring(depth))
        return made[0]

    monkeypatch.setattr(extent_reader, "Ring", interrupted)
    with pytest.raises(failure):
        SsdLink(arrays(graph), GUESS)
    assert open_files() == files
    assert made[0]._context == 0, "it was left to the next ring"


def test_the_last_spare_context_may_be_taken_by_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look and the taking: it was there, and is gone."""

    class Gone(list[int]):
        def __bool__(self) -> bool:
            return True

    monkeypatch.setattr(aio, "SPARE", {8: Gone()})
    ring = aio.Ring(8)
    assert ring._context
    ring.close()
