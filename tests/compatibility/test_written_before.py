"""Files that an older version wrote: stores, folders of streams, checkpoints of runs. Answers are the same.

`make.py` wrote them, with commit 43b30c1. Stores and logs have numbers of their formats, and must stay readable. A
checkpoint of a run belongs to one version of the package: the present version resumes from it as long as
`isthmus.__version__` is that of the archive, and refuses it afterwards.
"""

from __future__ import annotations

import json
import shutil
import tarfile

import pytest
from tests.compatibility.make import (
    ANSWERS,
    ARCHIVE,
    FAR,
    RUNS,
    STREAMS,
    batches,
    by_vertex,
    store_answers,
    stream_answers,
)

import isthmus as ist

pytestmark = pytest.mark.filterwarnings("ignore::isthmus.errors.IsthmusWarning")
LOOSE = {"pagerank": 1e-5, "personalized_pagerank": 1e-5, "php": 1e-5, "katz": 1e-5, "circuit": 1e-5, "spread": 1e-4}
STREAM_LOOSE = {"pagerank": 1e-8}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """The archive's folder; tests that change files copy them."""
    folder = tmp_path_factory.mktemp("before")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module")
def answers(unpacked):
    return json.loads((unpacked / ANSWERS).read_text())


def same(found, expected, loose=0.0):
    """Vertices in the same order, and values that are equal, or as near as an algorithm promises."""
    found = json.loads(json.dumps(found))
    assert [vertex for vertex, _ in found] == [vertex for vertex, _ in expected]
    values, wanted = ([value for _, value in rows] for rows in (found, expected))
    assert values == (pytest.approx(wanted, abs=loose) if loose else wanted)


@pytest.mark.parametrize("name", ["named", "numbered"])
def test_stores(unpacked, answers, name):
    assert ist.verify(unpacked / f"{name}.isthmus").ok
    with ist.open(unpacked / f"{name}.isthmus") as graph:
        found = store_answers(graph)
    assert found["edges"] == answers["stores"][name]["edges"]
    for mine, theirs in zip(found["answers"], answers["stores"][name]["answers"], strict=True):
        same(mine, theirs)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("ends", STREAMS)
def test_streams(unpacked, answers, tmp_path, ends, read_only):
    """The log is applied from the checkpoint on, whether the stream was closed or its process was killed."""
    folder, expected = shutil.copytree(unpacked / "streams" / ends, tmp_path / ends), answers["streams"][ends]
    assert (folder / ".writer.lock").exists() == (ends == "killed")
    with ist.stream(log=folder, threads=1, read_only=read_only) as live:
        found = stream_answers(live)
        assert not live.check()
    assert (found["number"], found["edges"]) == (expected["number"], expected["edges"])
    assert found["programs"].keys() == expected["programs"].keys()
    for name, values in found["programs"].items():
        same(values, expected["programs"][name], STREAM_LOOSE.get(name, 0.0))


@pytest.mark.parametrize("on_disk", [False, True])
def test_streams_go_on(unpacked, answers, tmp_path, on_disk):
    """Batches that the log has are known by their ids; further ones are applied, logged and read again."""
    folder, number = (
        shutil.copytree(unpacked / "streams" / "killed", tmp_path / "killed"),
        answers["streams"]["killed"]["number"],
    )
    with ist.stream(log=folder, threads=1, on_disk=on_disk) as live:
        live.apply(**list(batches())[-1], id=f"batch {number}")
        assert live.number == number
        live.apply(inserts=[(0, 300, 1)])
        live.checkpoint()
        live.apply(inserts=[(300, 301, 1)])
    with ist.stream(log=folder, threads=1) as live:
        assert live.number == number + 2
        assert live["sssp"].result()[301] == 2


@pytest.mark.parametrize("name", RUNS)
def test_runs(unpacked, answers, tmp_path, name):
    """A run that was stopped goes on."""
    folder = shutil.copytree(unpacked / "runs" / name, tmp_path / name)
    with ist.open(unpacked / "numbered.isthmus") as graph:
        if answers["isthmus"] != ist.__version__:
            with pytest.raises(
                ist.StoreError, match=rf"was written by Isthmus {answers['isthmus']}, this is .*--restart"
            ):
                RUNS[name](graph, checkpoint=folder, **FAR)
            return
        result = RUNS[name](graph, checkpoint=folder, **FAR)
    notes = " ".join(result.trace.notes)
    assert "resumed after" in notes and str(folder) in notes
    same(by_vertex(result), answers["runs"][name], LOOSE.get(name, 0.0))
    assert not folder.exists()
