"""The papers' experiments all run, on small graphs; what they compare with is what the papers print, and wrong answers
stop them.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import isthmus as ist
from isthmus import sizes
from isthmus.schedule import contribution

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def module(monkeypatch):
    """A module of the experiments, by name; what it shrinks is put back."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    with sizes.using():
        yield lambda name: importlib.import_module(f"published.{name}")


@pytest.mark.timeout(420)
def test_smoke(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    titles = importlib.import_module("papers").EXPERIMENTS
    command = [sys.executable, str(BENCHMARKS / "papers.py"), "--smoke"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n## ") + 1 == len(titles) == 45
    assert (
        "| rmat11 | released | 2." in done.stdout
        and "| OK | paper | 4.76 | 0.9900 | 12 % | 79 % | 55 % | 0.168 |" in done.stdout
    )
    assert "| PR, ours | rmat11 |" in done.stdout and "| PR, paper | SK | 57.60 |" in done.stdout


def test_missing_graphs_are_named(module, monkeypatch, tmp_path):
    monkeypatch.setenv("ISTHMUS_DATA", str(tmp_path))
    lab = module("lab").Lab(tmp_path, ["cnr-2000", "rmat5"], 5)
    assert [case.name for case in lab.cases] == ["rmat5"] and "cnr-2000" in lab.skipped[0]


@pytest.mark.parametrize("other, expected", [("subway", 4.81), ("emogi", 1.75), ("grus", 1.98), ("filter", 7.99)])
def test_published_speed_ups(module, other, expected):
    """The geometric means of Table IV, which are known from elsewhere."""
    lab, table = module("lab"), module("hytgraph").TABLE_4
    found = lab.mean(x / y for cells in table.values() for x, y in zip(cells[other], cells["hytgraph"], strict=True))
    assert found == pytest.approx(expected, rel=0.005)


def test_published_speed_ups_over_graphie(module):
    """The mean, least and greatest that Scaph's text gives for its Table 3."""
    found = [
        x / y for graphie, scaph in module("systems").TABLE_3.values() for x, y in zip(graphie, scaph, strict=True)
    ]
    assert (np.mean(found), min(found), max(found)) == pytest.approx((8.93, 3.03, 16.41), rel=0.01)


def test_value_of_edges(module):
    """Edges of active vertices, of those that are active later, and of others, in partitions with any active vertex."""
    seen = module("motives").Uses()
    seen.degrees, seen.cuts, seen.active = (
        np.array([2, 1, 1]),
        np.array([0, 2, 4]),
        [np.array(some) for some in ([0], [1], [0, 2])],
    )
    assert module("motives").values(seen) == [(0.5, 0.0, 0.0), (0.25, 0.25, 0.0), (0.75, 0.0, 0.25)]


def test_uses_are_those_of_all_iterations(module, tmp_path):
    lab = module("lab").Lab(tmp_path, ["rmat7"], 7)
    with module("motives").watched() as seen:
        run = lab.run(lab.cases[0], "SSSP", "emogi")
    assert [active.size for active in seen.active] == [step.active_vertices for step in run.iterations]
    assert [int(seen.degrees[active].sum()) for active in seen.active] == [step.active_edges for step in run.iterations]


@pytest.mark.parametrize("hint, expected", [("PF", 0.79), ("AB", 0.53), ("RM", 0.84), ("PF+AB", 0.40), ("PF+RM", 0.67)])
def test_published_hints(module, hint, expected):
    grus = module("grus")
    place = list(grus.COLUMNS).index(hint)
    assert module("lab").mean(row[1 + place] for row in grus.TABLE_1.values()) == pytest.approx(expected, abs=0.011)


def test_published_savings(module):
    """What Grapin's text says of its Tables 1, 4, 5 and 6."""
    grapin = module("grapin")
    cuts = [100 * (1 - volume / zero) for zero, volume, *_ in grapin.TABLE_5.values()]
    assert (round(min(cuts)), round(max(cuts))) == (67, 80) and np.mean(cuts) == pytest.approx(72, abs=1)
    times = [total / edges for edges, _, total, *_ in grapin.TABLE_1.values()]
    assert (min(times), max(times)) == pytest.approx((9.9, 16.5), rel=0.04)
    kept = [100 * (1 - total / scratch) for _, scratch, total, *_ in grapin.TABLE_1.values()]
    assert (min(kept), max(kept)) == pytest.approx((20, 79), abs=2)
    shares = [100 * replacing / both for _, both, _, replacing in grapin.TABLE_6.values()]
    assert (round(min(shares[2:]), 1), round(max(shares[2:]), 1)) == (2.5, 9.6) and round(max(shares), 1) == 27.0
    for table in grapin.TABLE_4.values():
        assert {len(cells) for cells in table.values()} == {5}
    assert all(int(need.split()[1]) > int(need.split()[3]) for need in grapin.needs()[2:]), (
        "4 GB are too little for its Table 5"
    )


def test_streams_are_counted_done_once_and_checked(module, tmp_path):
    lab = module("lab").Lab(tmp_path, ["rmat9"], 9)
    streams, [case] = module("streams").Streams.of(lab), lab.cases
    run = streams.run(case, "grapin", share=0.01, watch=True)
    assert streams.run(case, "grapin", share=0.01, watch=True) is run and module("streams").Streams.of(lab) is streams
    uses = run.uses
    assert uses.read == pytest.approx(run.read, rel=0.02), "corrections read lists before they change"
    assert 0 < uses.missed < uses.read and uses.missed == pytest.approx(run.total.miss_edges, rel=0.02)
    assert all(0 < part < uses.read for part in (uses.again, uses.before)) and 0 < uses.top <= uses.read
    assert not any(isinstance(value, np.ndarray) and value.size for value in vars(uses).values()), "only sums are kept"
    assert streams.run(case, "grapin", share=0.01, watch=True, remembered=1).bytes != run.bytes
    streams._answers[next(iter(streams._answers))] += "0"
    with pytest.raises(SystemExit, match="the answer is wrong"):
        streams.run(case, "grapin-zc", share=0.01)


def test_uses_of_batches(module, monkeypatch):
    """Two batches on three lists of 2, 3 and 5 edges, and on as many that nobody reads."""
    uses = module("streams").Uses(6)
    degrees = np.array([2, 3, 5, 1, 1, 1])
    uses.add(np.array([2, 1, 0, 0, 0, 0]), np.array([1, 1, 0, 0, 0, 0]), degrees)
    uses.add(np.array([0, 3, 1, 0, 0, 0]), np.array([0, 2, 1, 0, 0, 0]), degrees)
    assert (uses.read, uses.again, uses.before) == (7 + 14, 2 + 6, 3)
    assert (uses.missed, uses.missed_again, uses.missed_before) == (5 + 11, 3, 3)
    monkeypatch.setattr(module("streams"), "FIFTH", 0.4)
    uses.end()
    assert uses.top == 12, "the second list is read four times"


@pytest.mark.parametrize("ratio", [0.0, 0.25, 1.0])
def test_batches_insert_and_delete_edges_of_the_graph(module, tmp_path, ratio):
    streams = module("streams").Streams.of(module("lab").Lab(tmp_path, ["rmat9"], 9))
    cut = streams.cut(streams.cases[0], held=0.2)
    seen = []
    for number in range(3):
        inserts, deletes = module("streams").changes(cut, number, 40, ratio)
        assert (inserts[0].size, deletes[0].size, len(inserts)) == (round(40 * ratio), 40 - round(40 * ratio), 3)
        for columns in (inserts[:2], deletes):
            seen += zip(*(column.tolist() for column in columns), strict=True)
    assert len(set(seen)) == len(seen) == 120


@pytest.mark.parametrize("algorithm", ["PR", "SSSP", "WCC", "BFS", "MST", "NNDR", "GCS"])
def test_a_wrong_answer_stops(module, tmp_path, algorithm):
    lab = module("lab").Lab(tmp_path, ["rmat7"], 7)
    [case] = lab.cases
    lab.run(case, algorithm, "filter")
    lab.run(case, algorithm, "emogi")
    known = lab._answers[case.name, algorithm]
    lab._answers[case.name, algorithm] = known + 1 if algorithm not in ("PR", "GCS") else np.full(known.size, 9.0)
    with pytest.raises(SystemExit, match="the answer is wrong"):
        lab.run(case, algorithm, "subway")


def test_a_run_is_done_once(module, tmp_path):
    lab = module("lab").Lab(tmp_path, ["rmat7"], 7)
    [case] = lab.cases
    assert lab.run(case, "BFS", "filter") is lab.run(case, "BFS", "filter")
    assert lab.run(case, "BFS", "filter") is not lab.apart().run(case, "BFS", "filter")


def test_a_scaled_card(module, tmp_path):
    """Fixed times and sizes shrink, rates do not."""
    from isthmus.devices.model.figures import find

    lab = module("lab").Lab(tmp_path, [], 7)
    card, small = find("rtx2080ti"), find(lab.scaled("rtx2080ti", 10_000_000, 1e9))
    assert small.near.launch_seconds == pytest.approx(card.near.launch_seconds / 100)
    assert small.managed.block_bytes == 65536
    assert small.managed.fault_seconds / small.managed.batch_faults == pytest.approx(card.managed.fault_seconds / 256)
    assert small.link.bandwidth == card.link.bandwidth and small.link.direct == card.link.direct


def components(lab, name, monkeypatch):
    """Bytes moved / edges of HyTGraph's components: hubs first, and last."""
    order = contribution.order
    first = lab.run(lab.case(name), "WCC", "hytgraph").ratio
    monkeypatch.setattr(contribution, "order", lambda stages, priorities=None: order(stages, np.arange(stages.size)))
    last = lab.apart().run(lab.case(name), "WCC", "hytgraph").ratio
    return first, last


def test_hubs_first_move_fewer_edges(module, tmp_path, monkeypatch):
    """Every edge about once, since the labels of hubs win; hubs last, nearly all edges twice."""
    first, last = components(module("lab").Lab(tmp_path, (), 15), "rmat15", monkeypatch)
    assert first < 1.3 and last > 1.6


@pytest.mark.parametrize("name", ["soc-slashdot0902", "cit-HepPh"])
def test_hubs_first_on_real_graphs(module, data, tmp_path, monkeypatch, name):
    monkeypatch.setenv("ISTHMUS_DATA", str(data))
    first, last = components(module("lab").Lab(tmp_path, (), 15), name, monkeypatch)
    assert first < 1.4 and first < 0.75 * last


def test_components_are_named_alike_in_any_order(module):
    pairs = (np.array([9, 3, 7, 7, 1, 2]), np.array([3, 5, 8, 6, 7, 2]))
    found = [
        ist.run(module("lab").SmallestLabel(), ist.read(pairs, directed=False, order=order))
        for order in ("natural", "hub")
    ]
    assert found[0].filled().tolist() == found[1].filled().tolist() == [0, 1, 2, 2, 0, 0, 0, 2]
