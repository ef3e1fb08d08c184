"""Measuring reads what it says, counts what it read, gives every kind of work its turn, and leaves nothing behind."""

from __future__ import annotations

import errno
import gc
import itertools
import os
import shutil
from collections import namedtuple
from types import SimpleNamespace

import numpy as np
import pytest

import isthmus as ist
from isthmus import sizes
from isthmus.errors import StoreError
from isthmus.graph.store import extent_reader
from isthmus.graph.store.files import BLOCK, aligned_empty
from isthmus.link.profile import measurement
from isthmus.link.profile.measurement import Meter, Samples, TrialFile, measure_folder, measure_stored
from isthmus.threads import Team

MB = 1 << 20


@pytest.fixture(autouse=True)
def little(sized):
    """Small files and short portions."""
    sized(least_trial=MB, most_trial=3 * MB, trial_buffer=4 * MB, trial_seconds=0.001)


def open_files():
    gc.collect()  # so that files of earlier tests are not closed in the middle of this one
    return len(os.listdir("/proc/self/fd"))


class Record:
    """Progress that is written down."""

    def __init__(self):
        self.stages, self.done = [], []

    def stage(self, name, total, unit):
        self.stages.append((name, total, unit))
        self.done.append(0)

    def advance(self, amount):
        self.done[-1] += amount


def test_a_folder_is_measured_and_left_as_it_was(tmp_path):
    before, progress, said = open_files(), Record(), []
    samples = measure_folder(tmp_path, 3, progress, said.append)
    assert list(tmp_path.iterdir()) == []
    assert open_files() == before
    assert (samples.source, samples.bytes) == (f"a test file in {tmp_path}", 3 * MB)
    assert [len(rates) for rates in (samples.bulk, *samples.singles.values(), samples.packed)] == [3] * 6
    assert list(samples.singles) == [1, 8, 32, 128]
    assert all(1e6 < rate < 1e13 for rate in samples.bulk + samples.packed)
    assert all(10 < rate < 1e9 for rates in samples.singles.values() for rate in rates)
    assert progress.stages == [("writing", 3 * MB, "B"), ("measuring", 18, "measures")]
    assert progress.done == [3 * MB, 18]
    assert said == []


def test_a_store_is_read_and_not_written(tmp_path):
    with ist.generate("rmat", tmp_path / "g.isthmus", scale=12) as graph:
        before = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in graph.path.iterdir()}
        samples = measure_stored(graph.snapshot.far("out", False)[0], 1)
        section = graph.store.manifest.sections["out.targets"]
        assert (samples.source, samples.bytes) == (f"section out.targets of {graph.path}", section.blocks * BLOCK)
        assert {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in graph.path.iterdir()} == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["g.isthmus"]


def test_no_block_of_a_test_file_is_like_another(tmp_path):
    trial = TrialFile(tmp_path)
    file = trial.array.open_file()
    data = np.frombuffer(os.pread(file.descriptor, trial.size, 0), np.uint64).reshape(-1, BLOCK // 8)
    trial.close()
    assert data.shape[0] == 3 * MB // BLOCK
    assert np.unique(data, axis=0).shape == data.shape
    assert np.unique(data[:100]).size > 0.99 * data[:100].size, "bytes that cannot be compressed"


def test_a_slow_disk_gets_a_small_test_file(tmp_path, monkeypatch):
    monkeypatch.setattr(measurement, "WRITING", 0)
    trial = TrialFile(tmp_path)
    trial.close()
    assert trial.size == MB


Usage = namedtuple("Usage", "total used free")


@pytest.mark.parametrize(("free", "size"), [(2 * MB, MB), (5 * MB, 2 * MB), (100 * MB, 3 * MB)])
def test_half_of_what_is_free_stays_free(tmp_path, monkeypatch, free, size):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1 << 40, 0, free))
    trial = TrialFile(tmp_path)
    trial.close()
    assert trial.size == size


def test_a_full_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1 << 40, 0, 2 * MB - 1))
    with pytest.raises(StoreError, match=r"measuring needs 2.1 MB of free space for a test file; 2.1 MB are free"):
        measure_folder(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_meanwhile(tmp_path, monkeypatch):
    plain, before = os.pwrite, open_files()

    def filling(file, data, offset):
        if offset >= MB:
            raise OSError(errno.ENOSPC, "No space left on device")
        return plain(file, data, offset)

    monkeypatch.setattr(os, "pwrite", filling)
    with pytest.raises(StoreError, match=r"scratch file in .*: cannot write at byte 1048576: No space left on device"):
        measure_folder(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert open_files() == before


@pytest.mark.parametrize("stage", ["writing", "measuring"])
def test_interrupted(tmp_path, stage):
    before = open_files()

    class Impatient(Record):
        def advance(self, amount):
            if self.stages[-1][0] == stage:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure_folder(tmp_path, 1, Impatient())
    assert list(tmp_path.iterdir()) == []
    assert open_files() == before


def test_reads_go_through_the_cache_where_direct_ones_are_refused(tmp_path, monkeypatch):
    plain, said = os.open, []

    def refusing(path, flags, *more, **named):
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return plain(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", refusing)
    measure_folder(tmp_path, 1, say=said.append)
    assert said == [f"{tmp_path}: direct reads refused; reading through the page cache and dropping what was read"]


def test_as_many_in_flight_as_are_measured(tmp_path, monkeypatch):
    depths, plain = [], extent_reader.Ring
    monkeypatch.setattr(extent_reader, "Ring", lambda depth: depths.append(depth) or plain(depth))
    measure_folder(tmp_path, 1)
    assert sorted(set(depths)) == [1, 8, 32, 128]


def test_kinds_of_work_take_turns(tmp_path, monkeypatch):
    turns, plain = [], Meter.turn
    monkeypatch.setattr(Meter, "turn", lambda meter: turns.append(id(meter)) or plain(meter))
    measure_folder(tmp_path, 3)
    assert len(set(turns)) == 6
    assert turns == turns[:6] * 3


class Clock:
    """A clock that only work moves on."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(measurement, "time", SimpleNamespace(perf_counter=lambda: self.now))


def test_portions_grow_until_they_can_be_timed(monkeypatch, sized):
    sized(trial_seconds=0.05)
    clock, portions = Clock(monkeypatch), []

    def work(count):
        portions.append(count)
        clock.now += 0.002 + count * 0.001  # the start of a portion costs something, too

    meter = Meter(work, 10)
    meter.turn()
    assert portions == [0, 2, 4, 8, 16, 32, 64]
    assert meter.rates == pytest.approx([640 / 0.066])


def test_a_disk_that_became_slow_is_asked_for_little(monkeypatch):
    clock, cost, portions = Clock(monkeypatch), [1e-6], []

    def work(count):
        portions.append(count)
        clock.now += count * cost[0]

    meter = Meter(work, 1)
    meter.turn()
    cost[0] = 1.0
    del portions[:]
    meter.turn()
    assert portions == [2]
    assert meter.rates == pytest.approx([1e6, 1])


class Counting:
    """A link that moves nothing."""

    def __init__(self):
        self.extents = []

    def move(self, extents, buffer, channel=0):
        assert (extents.places + extents.lengths <= buffer.size).all()
        self.extents += zip(extents.offsets.tolist(), extents.lengths.tolist(), strict=True)


@pytest.mark.parametrize("size", [2 * MB, 4 * MB, 64 * MB])
def test_bulk_reads_are_long_and_lie_in_the_file(size):
    link, buffer = Counting(), aligned_empty(8 * MB, np.uint8)
    measurement.read_bulk(link, buffer, size)(20)
    assert sum(length for _, length in link.extents) == 20 * sizes.now.largest_read
    assert all(offset % BLOCK == 0 and 0 <= offset <= size - length for offset, length in link.extents)
    assert max(length for _, length in link.extents) == min(size, buffer.size)


def test_single_reads_are_blocks_from_all_over_the_file():
    link, buffer = Counting(), aligned_empty(MB, np.uint8)
    measurement.read_singles(link, buffer, 64 * MB, 128)(8)
    offsets = np.array([offset for offset, _ in link.extents])
    assert {length for _, length in link.extents} == {BLOCK}
    assert offsets.size == 8 * 128
    assert (offsets % BLOCK == 0).all()
    assert 0 <= offsets.min() < 2 * MB
    assert 62 * MB < offsets.max() < 64 * MB
    assert np.unique(offsets).size > 900


def test_packing_counts_the_bytes_it_packs(monkeypatch):
    packed = []

    def counting(source, begins, lengths, places, out, first, last):
        packed.append((first, last, int(lengths[first:last].sum()) * source.itemsize))
        assert begins.size == lengths.size == places.size
        assert begins[-1] + lengths[-1] <= source.size
        assert places[-1] + lengths[-1] == out.size

    monkeypatch.setattr(measurement, "pack", counting)
    team = Team(2)
    meter = measurement.pack_lists(team, aligned_empty(4 * MB, np.uint8))
    del packed[:]
    meter._work(3)
    team.close()
    assert sum(count for _, _, count in packed) == 3 * meter._unit
    parts = sorted({(first, last) for first, last, _ in packed})
    assert len(packed) == 3 * len(parts) > 3, (
        "in parts, so that a core that is busy otherwise does not hold up the rest"
    )
    assert all(before[1] == after[0] for before, after in itertools.pairwise(parts))


def samples(bulk, rates):
    return Samples("", 0, bulk, {1: [5.0, 4.0, 9.0], 8: [1.0] * 3, 32: [2.0] * 3, 128: rates}, [7.0, 8.0, 30.0])


def test_a_profile_is_the_medians():
    found = samples([3e9, 1e9, 2e9], [1e5, 3e5, 2e5]).profile("mine")
    assert (found.name, found.bandwidth, found.request_rate, found.compaction) == ("mine", 2e9, 2e5, 8.0)
    assert found.rates == ((1, 5.0), (8, 1.0), (32, 2.0), (128, 2e5))
    assert (found.block, found.depth, found.measured) == (4096, 128, True)
    assert found.break_even_gap == 10_000
    assert found.seconds(2e9, 4e5) == pytest.approx(3)


def test_steady_is_what_cannot_be_much_better_than_the_median():
    assert samples([1.0, 2.0, 5.0], [1.0, 1.0, 1.0]).steady
    assert samples([0.01, 2.0, 2.1], [1.0, 1.0, 1.0]).steady, "one slow round does not matter"
    assert not samples([1.0, 1.0, 3.0], [1.0, 1.0, 1.0]).steady
    assert not samples([1.0, 1.0, 1.0], [1.0, 1.0, 4.0]).steady
