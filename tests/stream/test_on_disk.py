"""Streams whose edges stay on disk (`stream/context.py`, `stream/merger.py`, `stream/memory_plan.py`): the same
answers, within the budget, with merges while batches go on.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.stream.answers import Case, assert_same, by_vertex, cases
from tests.stream.test_far_lists import Batches

import isthmus as ist
from isthmus.errors import BudgetError, OptionError, StoreError
from isthmus.graph.overlay import merged_store
from isthmus.graph.overlay.overlay_graph import OverlayGraph
from isthmus.stream.merger import FULL

pytestmark = pytest.mark.timeout(300)  # they may have to compile
TITLES = [case.title for case in cases(0)]
RECIPES = ("filter", "emogi", "subway", "unified", "hytgraph", "scaph", "grus")


@pytest.fixture(autouse=True)
def small(sized: Any) -> None:
    sized(staging=1, gathered=600, merged=4096, few_bytes=0, least_buffer=1024, smallest_partition=4096)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with ist.generate("rmat", tmp_path / "g.isthmus", scale=10, weights="1:9", seed=3):
        return tmp_path / "g.isthmus"


def stored(batches: Batches, folder: Path) -> Any:
    """The graph that the batches begin with, on disk."""
    from isthmus.graph.ingest.build import store_again

    return store_again(batches.plain.read(), folder / "g.isthmus")


def chosen(title: str, weighted: bool = True) -> Case:
    return next(case for case in cases(0, weighted) if case.title == title)


def assert_answer(live: Any, batches: Batches, case: Case) -> None:
    assert_same(by_vertex(live[case.title]), case.expected(batches.plain, None), 1.01 * case.tol)


@pytest.mark.parametrize("title", TITLES)
@pytest.mark.parametrize("directed", [True, False])
def test_answers_are_right_after_every_batch_and_merge(tmp_path: Path, title: str, directed: bool) -> None:
    case, batches = chosen(title), Batches(5, directed, True)
    with stored(batches, tmp_path) as graph, ist.stream(graph, [case.wanted()], on_disk=True, threads=2) as live:
        assert live.on_disk and isinstance(live.graph, OverlayGraph)
        for number in range(8):
            batches.apply(live)
            assert_answer(live, batches, case)
            if number in (2, 5):
                live.merge()
                assert live.graph.changes_bytes == 0
    assert [path.name for path in tmp_path.iterdir()] == ["g.isthmus"]


@pytest.mark.parametrize("policy", RECIPES)
@pytest.mark.parametrize("title", ["sssp", "pagerank", "weakly_connected_components"])
def test_every_recipe_gives_the_same_answers(tmp_path: Path, policy: str, title: str) -> None:
    case, batches = chosen(title), Batches(7, False, True, 200)
    with (
        stored(batches, tmp_path) as graph,
        ist.stream(graph, [case.wanted()], memory="5%", policy=policy, threads=2) as live,
    ):
        assert live.policy == policy
        for _ in range(4):
            batches.apply(live)
            assert_answer(live, batches, case)


def test_edges_that_do_not_fit_stay_on_disk(tmp_path: Path) -> None:
    with ist.generate("rmat", tmp_path / "g.isthmus", scale=10, edge_factor=200, weights="1:9", seed=3) as graph:
        with ist.stream(graph, [ist.BFS(source=0)], memory="1GB") as live:
            assert not live.on_disk and live.notes == []
        with ist.stream(graph, [ist.BFS(source=0)], memory="2%") as live:
            assert live.on_disk and live.notes == [], "a share of the edges means that the others are on disk"
            least = live.budget
        assert least < graph.edge_bytes
        with ist.stream(graph, [ist.BFS(source=0)], memory=least) as live:
            assert live.on_disk and live.budget == least
            expected = (
                "the edges do not fit in the memory budget, so they stay on disk: a stream on <Graph: 1024 vertices"
            )
            assert live.notes[0].startswith(expected) and "leave the edges on disk" not in live.notes[0], (
                "they are there already"
            )
        with pytest.raises(BudgetError, match=r"or leave the edges on disk with on_disk=True"):
            ist.stream(graph, [ist.BFS(source=0)], memory=100_000, on_disk=False)
        needs = r"with bfs, its edges on disk, needs at least .*\(positions of lists .*\); got 100 kB. Give memory="
        with pytest.raises(BudgetError, match=needs):
            ist.stream(graph, [ist.BFS(source=0)], memory=100_000)


def test_the_budget_that_an_error_names_works(store: Path) -> None:
    with ist.open(store) as graph:
        with pytest.raises(BudgetError) as caught:
            ist.stream(graph, ["pagerank", ist.SSSP(source=0)], memory=1000, on_disk=True)
        named = str(caught.value).split("Give memory='")[1].split("'")[0]
        with ist.stream(graph, ["pagerank", ist.SSSP(source=0)], memory=named, on_disk=True) as live:
            live.apply(inserts=[(0, 5000, 1)])
            assert live.check() == {}


def test_options_that_do_not_go_together(store: Path) -> None:
    with ist.open(store) as graph:
        with pytest.raises(OptionError, match=r"align=: lists on disk are not aligned"):
            ist.stream(graph, on_disk=True, align=True)
        with pytest.raises(
            OptionError, match=r"memory=: a share of the edges is for a graph on disk; give a size such as 2GB"
        ):
            ist.stream(graph, on_disk=False, memory="10%")
        with pytest.raises(OptionError, match=r"on_disk=: expected True or False, got 'yes'"):
            ist.stream(graph, on_disk="yes")
        with pytest.raises(
            OptionError, match=r"recipes are for streams on disk, on a modelled device or on a GPU: give on_disk=True"
        ):
            ist.stream(graph, policy="emogi")
        with pytest.raises(StoreError, match="is in memory; on_disk=True needs a store"), ist.read(([0], [1])) as near:
            ist.stream(near, on_disk=True)
        with (
            ist.stream(graph) as live,
            pytest.raises(OptionError, match="merge: the edges of this stream are in memory"),
        ):
            live.merge()


def random_batch(draw: np.random.Generator, count: int, top: int) -> dict[str, Any]:
    ends, gone = draw.integers(0, top, (2, count)), draw.integers(0, top, (2, count))
    return {"inserts": (*ends, draw.integers(1, 9, count).astype(np.int32)), "deletes": tuple(gone)}


def test_changes_are_merged_while_batches_go_on(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The merge is held up until some batches have come meanwhile; they are not lost."""
    draw, may_go, begun, plain = np.random.default_rng(1), threading.Event(), threading.Event(), merged_store.merged

    def slow(*given: Any) -> Any:
        begun.set()
        assert may_go.wait(200)
        return plain(*given)

    with (
        ist.open(store) as graph,
        ist.stream(graph, [ist.SSSP(source=0), "weakly_connected_components"], memory="5%", threads=2) as live,
    ):
        monkeypatch.setattr(merged_store, "merged", slow)
        live.context.merger.capacity = live.context.merger.due = 20_000
        while not begun.is_set():
            live.apply(**random_batch(draw, 200, 1100))
        live.context.merger.capacity = 1 << 20  # no batch waits for the merge
        before = live.graph._base
        for _ in range(3):
            live.apply(**random_batch(draw, 20, 1100))
        live.apply(add_vertices=[-3, 5000], remove_vertices=[5])
        assert live.graph._base is before and live.merges == 0, "it is not merged yet"
        may_go.set()
        live.context.merger._thread.join()
        live.apply(**random_batch(draw, 5, 1100))
        assert live.merges == 1 and live.graph._base is not before
        assert live.graph.changes_bytes < 20_000
        for _ in range(2):
            live.apply(**random_batch(draw, 30, 1100))
        assert live.check() == {}
    assert [path.name for path in store.parent.iterdir()] == ["g.isthmus"]


def test_batches_wait_for_a_merge_when_there_is_no_room(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, plain = np.random.default_rng(1), merged_store.merged

    def slow(*given: Any) -> Any:
        time.sleep(0.3)
        return plain(*given)

    monkeypatch.setattr(merged_store, "merged", slow)
    with ist.open(store) as graph, ist.stream(graph, [ist.BFS(source=0)], memory="5%") as live:
        live.context.merger.capacity = live.context.merger.due = 20_000
        for _ in range(30):
            live.apply(**random_batch(draw, 100, 1100))
            assert live.graph.changes_bytes <= (FULL + 1) * 20_000
        assert live.merges >= 2 and live.check() == {}


def test_a_merge_that_fails_is_told_and_tried_again(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, plain, tries = np.random.default_rng(1), merged_store.merged, itertools.count()

    def failing(*given: Any) -> Any:
        if next(tries) == 0:
            raise StoreError("no space left on device")
        return plain(*given)

    monkeypatch.setattr(merged_store, "merged", failing)
    with ist.open(store) as graph, ist.stream(graph, [ist.BFS(source=0)], memory="5%") as live:
        live.context.merger.capacity = live.context.merger.due = 20_000
        for _ in range(60):
            live.apply(**random_batch(draw, 100, 1100))
            live.context.merger.finish()
        assert live.notes == [
            "changes could not be merged into a new store, and stay in memory: no space left on device"
        ]
        assert live.merges >= 1 and live.check() == {}


@pytest.mark.parametrize("merge_first", [True, False])
def test_a_log_on_disk(store: Path, tmp_path: Path, merge_first: bool) -> None:
    """Opened again, the stream is where it was; a checkpoint is the new store under the changes."""
    draw, folder = np.random.default_rng(1), tmp_path / "log"
    with ist.open(store) as graph, ist.stream(graph, [ist.SSSP(source=0)], log=folder, memory="5%") as live:
        for _ in range(3):
            live.apply(**random_batch(draw, 50, 1100))
        if merge_first:
            live.merge()
        expected = by_vertex(live["sssp"])
    with ist.stream(log=folder, memory="5%") as live:
        assert live.on_disk and live.number == 3 and by_vertex(live["sssp"]) == expected
        live.apply(remove_vertices=[7], inserts=[(-5, 3, 1)])
        live.checkpoint()
        assert live.graph.changes_bytes == 0
        live.apply(**random_batch(draw, 50, 1100))
        assert live.check() == {}
        expected = by_vertex(live["sssp"])
        with ist.stream(log=folder, read_only=True, on_disk=True) as beside:
            assert beside.number == 5 and by_vertex(beside["sssp"]) == expected and beside.check() == {}
    with ist.stream(log=folder) as live:  # in memory this time
        assert not live.on_disk and by_vertex(live["sssp"]) == expected
    assert not [path.name for path in folder.iterdir() if "merging" in path.name]


def test_from_the_shell(store: Path, tmp_path: Path) -> None:
    rows = [{"op": "insert", "source": 0, "target": 2000 + k, "weight": 1} for k in range(30)]
    (tmp_path / "u.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    command = [sys.executable, "-m", "isthmus.cli.main", "stream", str(store), "--program", "sssp:source=0"]
    command += ["--updates", str(tmp_path / "u.jsonl")]
    done = subprocess.run(
        [*command, "--memory", "10%", "--batch", "7", "--check", "--json"], capture_output=True, text=True, timeout=250
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["on_disk"] == {"merges": 0, "policy": "auto"} and found["check"] == {"ok": True, "batches": 5}
    near = subprocess.run([*command, "--in-memory", "--json"], capture_output=True, text=True, timeout=250)
    assert json.loads(near.stdout)["on_disk"] is None


PEAK = """
import sys
import numpy as np
import isthmus as ist
from isthmus.memory import peak_rss

draw = np.random.default_rng(1)
program = {"sssp": ist.SSSP(source=0), "pagerank": ist.PageRank(tol=1e-3)}.get(sys.argv[2], sys.argv[2])
with ist.open(sys.argv[1]) as graph, ist.stream(graph, [program], memory="10%", threads=2) as live:
    live.context.merger.due = live.context.merger.capacity = 1 << 18
    for _ in range(8):
        ends, gone = draw.integers(0, graph.vertices, (2, 4000)), draw.integers(0, graph.vertices, (2, 4000))
        live.apply(inserts=(*ends, draw.integers(1, 9, 4000).astype(np.int32)), deletes=tuple(gone))
    live.context.merger.finish()
    print(live.budget, peak_rss(), live.merges)
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stores whose edges are larger than what is allowed beside a budget. One has no hubs, whose triangles take a
    minute to count.
    """
    folder = tmp_path_factory.mktemp("large")
    with (
        ist.generate("rmat", folder / "hubs.isthmus", scale=19, edge_factor=40, weights="1:9", seed=3) as hubs,
        ist.generate(
            "uniform", folder / "even.isthmus", vertices=1 << 21, edges=20_000_000, weights="1:9", seed=3
        ) as even,
    ):
        assert min(hubs.edge_bytes, even.edge_bytes) > 280e6
    return folder


@pytest.mark.parametrize("program", ["sssp", "pagerank", "weakly_connected_components", "triangle_count"])
def test_a_process_stays_within_the_budget(large: Path, program: str) -> None:
    """Merges included."""
    store = large / ("even.isthmus" if program == "triangle_count" else "hubs.isthmus")
    command = [sys.executable, "-W", "ignore", "-c", PEAK, str(store), program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    budget, peak, merges = map(int, done.stdout.split())
    assert merges >= 1 and peak <= budget + 250e6, f"{(peak - budget) / 1e6:.0f} MB beyond"


@pytest.mark.parametrize("missing", ["file", "thread"])
def test_a_merge_that_cannot_begin_does_not_stop_the_stream(
    store: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    draw, starts = np.random.default_rng(1), threading.Thread.start

    def apart(graph: Any) -> Any:
        raise StoreError("too many open files")

    def start(thread: threading.Thread) -> None:
        if thread.name == "isthmus-merge":
            raise RuntimeError("can't start new thread")
        starts(thread)

    with ist.stream(store, [ist.BFS(source=0)], memory="5%") as live:
        live.context.merger.capacity = live.context.merger.due = 1000
        with monkeypatch.context() as failing:
            failing.setattr(OverlayGraph, "apart", apart) if missing == "file" else failing.setattr(
                threading.Thread, "start", start
            )
            live.apply(**random_batch(draw, 200, 1100))
        assert len(live.notes) == 1 and live.number == 1
        live.apply(**random_batch(draw, 200, 1100))
        live.context.merger.finish()
        assert live.merges >= 1 and len(live.notes) == 1 and live.check() == {}


def test_a_folder_that_cannot_be_written_to_is_told_once_and_ends_in_one_clear_error(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes do not outgrow their room; when the folder can be written to again, the same stream goes on."""
    draw, tries = np.random.default_rng(1), itertools.count(1)

    def failing(*given: Any) -> Any:
        next(tries)
        raise StoreError("cannot write here: Permission denied")

    with ist.stream(store, [ist.BFS(source=0)], memory="5%") as live:
        live.context.merger.capacity = live.context.merger.due = 20_000
        with monkeypatch.context() as broken:
            broken.setattr(merged_store, "merged", failing)
            with pytest.raises(
                BudgetError, match=r"the batch was not applied: .* of earlier changes fill .*: cannot write here: Perm"
            ):
                for _ in range(100):
                    live.apply(**random_batch(draw, 100, 1100))
                    live.context.merger.finish()
            before, number = next(tries), live.number
            assert before < 8, "it tries less and less often"
            for _ in range(5):
                with pytest.raises(BudgetError, match="the batch was not applied"):
                    live.apply(**random_batch(draw, 100, 1100))
            assert next(tries) == before + 1, "and not again for every batch that is refused"
        assert live.graph.changes_bytes <= (FULL + 1) * 20_000 and live.number == number
        assert live.notes == [
            "changes could not be merged into a new store, and stay in memory: cannot write here: Permission denied"
        ]
        assert live.check() == {}, "the answers are those of the last batch"
        live.context.merger._not_before = 0.0
        live.apply(**random_batch(draw, 100, 1100))
        assert live.merges == 1 and live.check() == {}


def test_closing_stops_a_merge(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not write the rest of the new store first."""
    draw, begun, portions, plain = (
        np.random.default_rng(1),
        threading.Event(),
        itertools.count(1),
        merged_store.in_order,
    )

    def slow(*given: Any) -> Any:
        next(portions)
        begun.set()
        time.sleep(0.2)
        return plain(*given)

    monkeypatch.setattr(merged_store, "in_order", slow)
    with ist.open(store) as graph, ist.stream(graph, [ist.BFS(source=0)], memory="5%") as live:
        live.context.merger.capacity = live.context.merger.due = 10_000
        while not begun.is_set():
            live.apply(**random_batch(draw, 100, 1100))
        overlay = live.graph.sides["out"].overlay
        in_all = sum(1 for _ in merged_store.windows(overlay, 8))
    assert in_all > 20 and next(portions) < 10
    assert [path.name for path in store.parent.iterdir()] == ["g.isthmus"]
    assert not [thread.name for thread in threading.enumerate() if thread.name == "isthmus-merge"]


def test_closing_waits_for_a_batch_of_another_thread(store: Path) -> None:
    """Its reads were cut off: they waited for ever, or took what another reader had asked for."""
    draw, ended = np.random.default_rng(1), list[str]()
    live = ist.stream(store, [ist.SSSP(source=0)], memory="5%", threads=2)
    live.context.merger.capacity = live.context.merger.due = 5000

    def work() -> None:
        with pytest.raises(StoreError, match="the graph is closed"):
            for _ in range(100_000):
                live.apply(**random_batch(draw, 200, 1100))
        ended.append("refused")

    thread = threading.Thread(target=work)
    thread.start()
    while live.number < 5:
        time.sleep(0.01)
    live.close()
    thread.join(200)
    assert ended == ["refused"]
    assert not any(each.name == "isthmus-merge" for each in threading.enumerate())


def test_runs_and_lists_beside_batches_and_merges_see_one_batch(store: Path) -> None:
    """Every batch gives vertex 0 another neighbour for one that it had: a reader finds 40, also while a merge is taken
    over.
    """
    draw, wrong, over = np.random.default_rng(1), list[Any](), threading.Event()

    def look(found: Any) -> None:
        try:
            while not over.is_set():
                if (count := found()) != 40:
                    wrong.append(count)
        except Exception as error:
            wrong.append(error)

    with ist.stream(store, [ist.BFS(source=0)], memory="60MB", on_disk=True, threads=2) as live:
        live.context.merger.capacity = live.context.merger.due = 15_000
        hers = list(range(5000, 5040))
        live.apply(inserts=[(0, v, 1) for v in hers], deletes=[(0, v) for v in live.graph.neighbors(0).tolist()])
        readers = [
            threading.Thread(target=look, args=(lambda: len(live.graph.neighbors(0)),)),
            threading.Thread(target=look, args=(lambda: int((ist.bfs(live.graph, 0, threads=1).values == 1).sum()),)),
        ]
        for reader in readers:
            reader.start()
        for number in range(40):
            gone, hers[number] = hers[number], 6000 + number
            more, less = (random_batch(draw, 60, 1000)[name] for name in ("inserts", "deletes"))
            inserts = [(0, hers[number], 1), *zip(more[0] + 1, more[1] + 1, more[2], strict=True)]
            live.apply(inserts=inserts, deletes=[(0, gone), *zip(less[0] + 1, less[1] + 1, strict=True)])
        over.set()
        for reader in readers:
            reader.join()
        assert wrong == [] and live.merges >= 2 and live.check() == {}
