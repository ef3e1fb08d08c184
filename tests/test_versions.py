"""`benchmarks/versions.py` with this tree on both sides: streams and starts, figures of a cell, which cells exist."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
SOURCE = BENCHMARKS.parent / "src"


@pytest.fixture
def versions(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("versions")


@pytest.mark.timeout(260)
def test_streams_and_starts_are_compared(tmp_path):
    figures = tmp_path / "figures.json"
    command = [
        sys.executable,
        BENCHMARKS / "versions.py",
        "--before",
        SOURCE,
        "--only",
        "streams",
        "start",
        "--graphs",
        "kron7",
    ]
    command += [
        "--algorithms",
        "sssp",
        "core_number",
        "--sizes",
        "30",
        "1000000",
        "--rounds",
        "1",
        "--memory",
        "10%",
        "--json",
        figures,
    ]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    cells = json.loads(figures.read_text())
    assert [(c["kind"], c["algorithm"], c["memory"], c["size"]) for c in cells] == [
        *(
            ("streams", name, memory, size)
            for memory in (None, "10%")
            for name in ("sssp", "core_number")
            for size in (30, 1_000_000)
        ),
        ("start", "bfs", None, None),
        ("start", "bfs", "10%", None),
    ]
    for cell in cells:
        if cell["size"] == 1_000_000:
            assert "give a smaller size" in cell["left"]
        else:
            assert not cell["left"]
            assert all(len(cell[kind][side]) == 1 for kind in ("total", "wall") for side in ("before", "after"))
            assert min(cell["peak"].values()) > 50e6
    assert (
        "| kron7 | sssp, batches of 30 | 10%, auto | " in done.stdout
        and "| kron12 | isthmus run bfs | in memory | " in done.stdout
    )


def test_cells_in_memory_and_from_disk_are_summed_up_apart(versions):
    cells = [versions.Cell("a", "bfs"), versions.Cell("a", "bfs", "10%"), versions.Cell("b", "sssp", "10%")]
    for cell, after in zip(cells, (1.0, 2.0, 8.0), strict=True):
        cell.total = {"before": [1.0], "after": [after]}
        cell.peak = {"before": 100, "after": 110}
    lines = versions.summary(cells)
    assert [line.split(":")[-1] for line in lines if "mean" in line] == [" 1.000", " 4.000", " 2.520"]
    assert lines[4] == "From disk: worst cell: 8.00 (b, sssp, 10%, auto)"


def test_a_ratio_is_the_median_of_rounds(versions):
    cell = versions.Cell("a", "bfs", size=10, kind="streams")
    assert cell.ratio({"before": [1.0, 10.0, 4.0], "after": [2.0, 10.0, 6.0]}) == 1.5


@pytest.mark.parametrize(
    ("kind", "memory", "expected"),
    [
        ("runs", None, {}),
        ("runs", "10%", {"memory": "10%", "policy": "auto"}),
        ("streams", None, {"on_disk": False}),
        ("streams", "10%", {"memory": "10%", "policy": "auto", "on_disk": True}),
    ],
)
def test_options_of_a_cell(versions, kind, memory, expected):
    assert versions.Cell("a", "bfs", memory, kind=kind).options(2) == {"threads": 2, **expected}


def test_without_a_budget_all_cells_are_in_memory(versions):
    options = SimpleNamespace(
        memory=None, recipes=["auto"], algorithms=["bfs"], only=["runs", "streams", "start"], sizes=[1, 2]
    )
    assert [cell.what for cell in versions.plan("a", options)] == ["bfs", "bfs, batches of 1", "bfs, batches of 2"]
    assert [cell.memory for cell in versions.starts(options)] == [None]


class Compiling:
    """A process that compiles in its first life."""

    def __init__(self, *told):
        self.rounds, self.closed = 0, False
        MADE.append(self)

    def run(self, keep=None):
        self.rounds += 1

    def compiled(self):
        return len(MADE) == 1

    def close(self):
        self.closed = True


MADE: list[Compiling] = []


def test_a_process_that_compiled_is_replaced(versions, monkeypatch, tmp_path):
    MADE.clear()
    monkeypatch.setattr(versions, "Worker", Compiling)
    worker = versions.warmed(versions.Cell("a", "bfs"), "before", tmp_path, tmp_path, {}, tmp_path)
    assert [(each.rounds, each.closed) for each in MADE] == [(2, True), (1, False)] and worker is MADE[1]
