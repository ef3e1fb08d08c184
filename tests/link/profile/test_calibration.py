"""A disk is measured once and remembered; whatever the file of memories holds, a run goes on."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import asdict

import pytest

import isthmus as ist
from isthmus.errors import OptionError
from isthmus.link.link import Profile
from isthmus.link.profile import calibration
from isthmus.link.profile.calibration import GUESS, alone, disk_of, forget, memories, profile_of, recall, remember
from isthmus.link.profile.measurement import Samples

FAST = Profile("disk at /", 3e9, 1e5, 4096, 128, True, ((1, 1e4), (8, 2e4), (32, 5e4), (128, 1e5)), 6e9)
# as first written.
OLD = {"name": "disk of .", "bandwidth": 2e9, "request_rate": 8e4, "block": 4096, "depth": 128, "measured": True}
DISK = ("fs 77", "77")


def taken(best=3e9):
    """Samples with the medians of FAST."""
    return Samples("", 0, [3e9, 3e9, best], {depth: [rate] for depth, rate in FAST.rates}, [6e9])


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    with ist.generate("rmat", tmp_path_factory.mktemp("disk") / "g.isthmus", scale=12) as graph:
        yield graph


@pytest.fixture
def file(tmp_path, monkeypatch):
    """The file of memories, in a folder of this test's own."""
    monkeypatch.setenv("ISTHMUS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "links.json"


@pytest.fixture
def turns(file, monkeypatch, sized):
    """Every store is large enough, and all disks are FAST; who was measured, in how many rounds."""
    sized(least_trial=0)
    monkeypatch.setattr(calibration, "name_of", lambda path: FAST.name)
    turns = []
    monkeypatch.setattr(
        calibration, "measure_stored", lambda store, rounds, *more: turns.append((store.name, rounds)) or taken()
    )
    return turns


def name(graph):
    return disk_of(graph.path)[0]


def written(file):
    content = json.loads(file.read_text())
    assert content["version"] == 2
    return content["disks"]


def test_measured_once_and_remembered(turns, file, graph):
    said = []
    far = graph.snapshot.far("out", True)
    assert profile_of(far, say=said.append) == profile_of(far, say=said.append) == FAST
    assert turns == [("out.targets", 3)]
    assert said == ["measuring the disk, once; isthmus calibrate does it again"]
    entry = written(file)[name(graph)]
    assert time.time() - 60 < entry.pop("when") <= time.time()
    assert json.dumps(entry) == json.dumps(asdict(FAST))
    assert [entry.name for entry in file.parent.iterdir()] == ["links.json"]


def test_a_small_store_is_not_measured_but_takes_what_is_remembered(turns, file, graph, sized):
    sized(least_trial=1 << 40)
    assert profile_of(graph.snapshot.far("out", True)) == GUESS
    assert not file.exists()
    remember(disk_of(graph.path), FAST)
    assert profile_of(graph.snapshot.far("out", True)) == FAST
    assert turns == []


def test_a_run_without_use_for_it_does_not_measure(turns, file, graph):
    assert profile_of(graph.snapshot.far("out", True), may_measure=False) == GUESS
    assert turns == []
    assert not file.exists()


def test_a_disk_that_cannot_be_told_from_others(turns, file, graph, monkeypatch):
    def fails(place):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "statvfs", fails)
    assert profile_of(graph.snapshot.far("out", True)) == GUESS
    assert not turns and not file.exists()


def test_only_a_run_from_disk_measures(turns, graph):
    said = []
    near = ist.bfs(graph, 0, say=said.append)
    assert near.summary()["policy"] == "resident"
    assert turns == []
    ist.bfs(graph, 0, memory="10%", policy="filter", say=said.append)
    assert turns == [("out.targets", 3)]
    assert "measuring the disk, once; isthmus calibrate does it again" in said


def test_a_store_that_is_gone_from_its_folder(turns, graph, tmp_path):
    with ist.generate("path", tmp_path / "g.isthmus", vertices=9) as gone:
        gone.path.rename(tmp_path / "h.isthmus")
        assert profile_of(gone.snapshot.far("out", True)) == FAST


def test_a_run_does_not_remember_what_may_be_far_off(turns, file, graph, monkeypatch):
    monkeypatch.setattr(calibration, "measure_stored", lambda *arguments: taken(best=3e10))
    assert profile_of(graph.snapshot.far("out", True)).bandwidth == 3e9
    assert not file.exists()


def test_other_disks_are_not_forgotten(turns, file, graph):
    remember(DISK, FAST)
    profile_of(graph.snapshot.far("out", True))
    assert set(written(file)) == {"fs 77", name(graph)}


def test_forgetting(file, graph):
    remember(DISK, FAST)
    assert not forget(graph.path)
    remember(disk_of(graph.path), FAST)
    assert forget(graph.path)
    assert recall(disk_of(graph.path)) is None
    assert set(written(file)) == {"fs 77"}
    with pytest.raises(OptionError, match="nowhere: No such file or directory"):
        forget("nowhere")


def entry(**members):
    return json.dumps({"version": 2, "disks": {"DISK": {"when": 1, **asdict(FAST), **members}}})


NAN, ENDLESS = float("nan"), float("inf")
DAMAGED = [
    "",
    "{",
    "[]",
    "3",
    "null",
    '"x"',
    "\x00\xff",
    "[" * 100_000,
    '{"DISK": 5}',
    '{"DISK": {}}',
    '{"DISK": {"speed": 1}}',
    '{"version": 2}',
    '{"version": 2, "disks": 7}',
    '{"version": 2, "disks": {"DISK": []}}',
    '{"version": 3, "disks": {}}',
    entry().replace('"version": 2', '"version": 3'),
    entry(bandwidth=0),
    entry(bandwidth="1"),
    entry(request_rate=NAN),
    entry(request_rate=-1),
    entry(request_rate=ENDLESS),
    entry(block=0),
    entry(speed=1),
    entry(depth=0),
    entry(depth=2**40),
    entry(depth=1.5),
    entry(depth="8"),
    entry(depth=NAN),
    entry(compaction=0),
    entry(compaction=None),
    entry(compaction=10**400),
    entry(rates=None),
    entry(rates=5),
    entry(rates=[[1]]),
    entry(rates=[[1, 0]]),
    entry(rates=[["1", 5]]),
    entry(rates=[[1, NAN]]),
    entry(rates=[1, 2]),
    entry(when="x"),
    entry(when=10**400),
    entry(when=NAN),
    entry(when=1e300),
    entry(name=5),
    entry(measured="maybe"),
]


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_memory_is_measured_again(turns, file, graph, text):
    file.parent.mkdir()
    file.write_text(text.replace("DISK", name(graph)))
    assert profile_of(graph.snapshot.far("out", True)) == FAST
    assert len(turns) == 1
    assert written(file)[name(graph)]["bandwidth"] == 3e9


def test_undamaged_it_would_have_been_taken(turns, file, graph):
    file.parent.mkdir()
    file.write_text(entry(bandwidth=5e9).replace("DISK", name(graph)))
    assert profile_of(graph.snapshot.far("out", True)).bandwidth == 5e9
    assert turns == []


def test_the_first_version_is_read_and_replaced(turns, file, graph):
    _, device = disk_of(graph.path)
    file.parent.mkdir()
    file.write_text(json.dumps({device: OLD, "77": {**OLD, "bandwidth": 1e9}}))
    found = recall(disk_of(graph.path))
    assert found == calibration.Memory(Profile(**OLD), None)
    assert (found.profile.rates, found.profile.compaction) == ((), GUESS.compaction)
    assert profile_of(graph.snapshot.far("out", True)) == found.profile
    assert turns == []
    remember(disk_of(graph.path), FAST)
    assert set(written(file)) == {name(graph), "77"}
    assert recall(disk_of(graph.path)).profile == FAST
    assert recall(DISK).profile.bandwidth == 1e9, "a disk that has not been measured since"


def test_a_folder_that_cannot_be_written(turns, graph, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ISTHMUS_CACHE", str(tmp_path / "file"))
    assert profile_of(graph.snapshot.far("out", True)) == FAST
    monkeypatch.setenv("ISTHMUS_CACHE", str(tmp_path / "other"))
    (tmp_path / "other" / "links.json").mkdir(parents=True)
    assert profile_of(graph.snapshot.far("out", True)) == FAST
    assert [entry.name for entry in (tmp_path / "other").iterdir()] == ["links.json"], "no half file stays"
    assert not remember(DISK, FAST)


def test_a_disk_is_known_by_its_file_system(tmp_path, monkeypatch):
    class Status:
        f_fsid = 0xABC

    monkeypatch.setattr(os, "statvfs", lambda place: Status)
    assert disk_of(tmp_path) == ("fs abc", str(os.stat(tmp_path).st_dev))
    Status.f_fsid = 0
    monkeypatch.setattr(calibration, "mount_source", lambda device: "nfs4 server:/export")
    assert disk_of(tmp_path)[0] == "nfs4 server:/export"
    monkeypatch.setattr(calibration, "mount_source", lambda device: "")
    assert disk_of(tmp_path)[0] == str(os.stat(tmp_path).st_dev)


def test_where_something_is_mounted_from():
    assert calibration.mount_source(os.stat("/proc").st_dev) == "proc proc"
    assert calibration.mount_source(os.makedev(4000, 77)) == ""


def test_a_path_and_an_open_file_are_on_the_same_disk(graph):
    assert disk_of(graph.path) == disk_of(graph.store.file("out.targets").descriptor)


def test_the_name_is_where_the_disk_is_mounted(tmp_path, monkeypatch):
    assert calibration.name_of(tmp_path / "not" / "there").startswith("disk at /")
    monkeypatch.setattr(os.path, "ismount", lambda folder: folder == tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "a", target_is_directory=True)
    assert calibration.name_of(tmp_path / "link" / "b") == f"disk at {tmp_path}"
    monkeypatch.chdir(tmp_path)
    assert calibration.name_of(calibration.Path(".")) == f"disk at {tmp_path}"


@pytest.fixture
def little(sized, file):
    """Small test files and short portions."""
    sized(least_trial=1 << 20, most_trial=3 << 20, trial_buffer=4 << 20, trial_seconds=0.001)


def test_calibrating_a_folder(little, tmp_path, file):
    (tmp_path / "data").mkdir()
    profile = ist.calibrate(tmp_path / "data")
    assert recall(disk_of(tmp_path)).profile == profile
    assert [depth for depth, _ in profile.rates] == [1, 8, 32, 128]
    assert profile.request_rate == dict(profile.rates)[128]
    assert list((tmp_path / "data").iterdir()) == []


def test_calibrating_a_store(little, tmp_path, graph, sized):
    """A large one is read; a small one says little, so a test file takes its place."""
    small, _ = calibration.survey(graph.path)
    assert small.source == f"a test file in {graph.path}"
    sized(least_trial=4096)
    large, _ = calibration.survey(graph.path)
    assert large.source == f"section out.targets of {graph.path}"
    assert len(large.bulk) == 5
    assert recall(disk_of(graph.path)) is not None


def test_what_calibrating_has_to_say(little, tmp_path, monkeypatch):
    said = []
    monkeypatch.setenv("ISTHMUS_CACHE", "/dev/null")
    monkeypatch.setattr(Samples, "steady", False)
    calibration.survey(tmp_path, say=said.append)
    assert [text.split(":")[0] for text in said] == ["the best round was far better than the median", "not remembered"]


@pytest.mark.parametrize(
    ("what", "why"), [("missing", "No such file"), ("file", "expected a folder or a store, and this is a file")]
)
def test_places_that_cannot_be_measured(what, why, tmp_path, file):
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match=f"{what}: {why}"):
        ist.calibrate(tmp_path / what)
    assert memories() == {}


def test_one_at_a_time(file):
    entered, said = threading.Event(), []

    def second():
        with alone(said.append):
            entered.set()

    with alone():
        thread = threading.Thread(target=second)
        thread.start()
        assert not entered.wait(0.2)
    assert entered.wait(60)
    thread.join()
    assert said == ["waiting: another process is measuring"]


def test_nobody_waits_forever(file, monkeypatch):
    monkeypatch.setattr(calibration, "WAIT", 0.1)
    with alone(), contextlib.ExitStack() as stack:
        stack.enter_context(alone())
        assert remember(DISK, FAST)


def test_who_waited_takes_what_the_other_measured(turns, graph):
    """Two runs that begin together measure once."""
    ready = threading.Barrier(2)
    plain, found = calibration.recall, []
    first = threading.local()

    def both_know_nothing(disk):
        known = plain(disk)
        if not hasattr(first, "over"):
            first.over = True
            ready.wait(60)
        return known

    calibration.recall = both_know_nothing
    try:
        threads = [
            threading.Thread(target=lambda: found.append(profile_of(graph.snapshot.far("out", True)))) for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        calibration.recall = plain
    assert found == [FAST, FAST]
    assert len(turns) == 1


WRITER = """
import sys
from isthmus.link.profile.calibration import alone, remember
from isthmus.link.ssd import GUESS
for turn in range(60):
    with alone():
        assert remember((f"{sys.argv[1]} {turn}", "0"), GUESS)
"""


def test_processes_that_remember_at_once_lose_nothing(file):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, name]) for name in "ab"]
    assert [writer.wait(100) for writer in writers] == [0, 0]
    assert set(written(file)) == {f"{name} {turn}" for name in "ab" for turn in range(60)}
    assert [entry.name for entry in file.parent.iterdir()] == ["links.json"]
