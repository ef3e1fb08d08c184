"""A disk is measured once and remembered; whatever the file of memories holds, a run goes on."""

from __future__ import annotations

import json
import os
from dataclasses import asdict

import pytest

import isthmus as ist
from isthmus.link import calibrate
from isthmus.link.calibrate import GUESS, measure, profile_of
from isthmus.link.link import Profile

FAST = Profile("a fast disk", 3e9, 1e5, 4096, 128, True)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    with ist.generate("rmat", tmp_path_factory.mktemp("disk") / "g.isthmus", scale=12) as graph:
        yield graph


@pytest.fixture
def memory(tmp_path, monkeypatch, graph):
    """The file of memories, in a folder of this test's own; every store is large enough, and measuring is counted."""
    monkeypatch.setenv("ISTHMUS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(calibrate, "LEAST", 0)
    turns = []
    monkeypatch.setattr(calibrate, "measure", lambda store: turns.append(store) or FAST)
    path = tmp_path / "cache" / "links.json"
    return path, turns


def device(graph):
    return str(os.stat(graph.path).st_dev)


def test_measured_once_and_remembered(memory, graph):
    path, turns = memory
    assert profile_of(graph.store) == profile_of(graph.store) == FAST
    assert len(turns) == 1
    assert json.loads(path.read_text()) == {device(graph): asdict(FAST)}
    assert [entry.name for entry in path.parent.iterdir()] == ["links.json"]


def test_a_small_store_is_not_measured(memory, graph, monkeypatch):
    monkeypatch.setattr(calibrate, "LEAST", 1 << 40)
    assert profile_of(graph.store) == GUESS
    assert memory[1] == []
    assert not memory[0].exists()


def test_other_disks_are_not_forgotten(memory, graph):
    path, _ = memory
    path.parent.mkdir()
    path.write_text(json.dumps({"77": asdict(FAST)}))
    profile_of(graph.store)
    assert set(json.loads(path.read_text())) == {"77", device(graph)}


def entry(**members):
    return json.dumps({"DEV": {**asdict(FAST), **members}})


DAMAGED = [
    "", "{", "[]", "3", "null", '"x"', "\x00\xff", "[" * 100_000, '{"DEV": 5}', '{"DEV": {}}', '{"DEV": {"speed": 1}}',
    entry(bandwidth=0), entry(bandwidth="1"), entry(request_rate=float("nan")), entry(request_rate=-1), entry(block=0), entry(speed=1),
]  # fmt: skip


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_memory_is_measured_again(memory, graph, text):
    path, turns = memory
    path.parent.mkdir()
    path.write_text(text.replace("DEV", device(graph)))
    assert profile_of(graph.store) == FAST
    assert len(turns) == 1
    assert json.loads(path.read_text())[device(graph)] == asdict(FAST)


def test_a_folder_that_cannot_be_written(memory, graph, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ISTHMUS_CACHE", str(tmp_path / "file"))
    assert profile_of(graph.store) == FAST
    monkeypatch.setenv("ISTHMUS_CACHE", str(tmp_path / "other"))
    (tmp_path / "other" / "links.json").mkdir(parents=True)
    assert profile_of(graph.store) == FAST
    assert [entry.name for entry in (tmp_path / "other").iterdir()] == ["links.json"], "no half file stays"


def test_measuring_gives_rates_that_can_be(graph, monkeypatch):
    monkeypatch.setattr(calibrate, "BULK", 8 << 20)
    monkeypatch.setattr(calibrate, "SINGLES", 500)
    found = measure(graph.store)
    assert 1e6 < found.bandwidth < 1e12
    assert 1e2 < found.request_rate < 1e9
    assert (found.block, found.measured) == (4096, True)
    assert found.break_even_gap == int(found.bandwidth / found.request_rate)
    assert found.seconds(found.bandwidth, found.request_rate) == pytest.approx(2)
