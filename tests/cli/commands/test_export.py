"""`isthmus export`, and results on standard output."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.processes import process

import isthmus as ist


@pytest.fixture
def store(tmp_path: Path) -> Path:
    ist.ingest((["a", "b", "c"], ["b", "c", "a"], [1.5, 2.5, 3.5]), tmp_path / "g.isthmus").close()
    return tmp_path / "g.isthmus"


def test_to_a_file(store: Path, tmp_path: Path) -> None:
    done = process("export", store, "-o", tmp_path / "g.csv.gz", "--memory", "100MB")
    assert (done.returncode, done.stderr) == (0, "")
    assert "written" in done.stdout and "3 edges" in done.stdout
    again = process("ingest", tmp_path / "g.csv.gz", "--header", "-o", tmp_path / "h.isthmus")
    assert again.returncode == 0
    assert ist.open(tmp_path / "h.isthmus").to_arrow() == ist.open(store).to_arrow()


def test_to_standard_output(store: Path) -> None:
    done = process("export", store, "-o", "-")
    assert (done.returncode, done.stdout, done.stderr) == (0, "a\tb\t1.5\nb\tc\t2.5\nc\ta\t3.5\n", "")
    done = process("export", store, "-o", "-", "--format", "csv", "--no-weights", "--no-header")
    assert (done.returncode, done.stdout) == (0, "a,b\nb,c\nc,a\n")
    done = process("export", store, "-o", "-", "--format", "mtx")
    assert done.stdout.startswith("%%MatrixMarket matrix coordinate real general\n3 3 3\n1 2 1.5\n")
    assert (
        done.stderr.startswith("note: ")
        and "vertices are numbered from 1 in ascending order of their ids" in done.stderr
    )


def test_errors_are_one_line(store: Path, tmp_path: Path) -> None:
    for words, message in [
        (("-o", tmp_path / "g.gr"), "could be dimacs or galois; give --format"),
        (("-o", tmp_path / "g.wsg"), "the format has only whole numbers; --no-weights leaves them out"),
        (("-o", tmp_path / "none" / "g.csv"), "no such folder"),
        (("-o", "-", "--format", "parquet"), "is binary; expected a file"),
        (("-o", tmp_path / "g.mtx", "--header"), "--header does not apply to it"),
    ]:
        done = process("export", store, *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert message in done.stderr and done.stderr.count("\n") == 1


def test_a_pattern_and_missing_ids(tmp_path: Path) -> None:
    (tmp_path / "e-1.csv").write_text("1,2\n,3\n")
    (tmp_path / "e-2.csv").write_text("2,3\n")
    done = process("ingest", tmp_path / "e-*.csv", "-o", tmp_path / "g.isthmus", "--missing", "skip")
    assert done.returncode == 0 and "1 line without a source or target skipped" in done.stderr
    assert ist.open(tmp_path / "g.isthmus").to_arrow().to_pydict() == {"source": [1, 2], "target": [2, 3]}


def test_a_result_on_standard_output(store: Path) -> None:
    done = process("run", "bfs", store, "--source", "a", "-o", "-")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith('"vertex","distance"') and len(lines) == 4 and lines[1].startswith('"a",0')
    done = process("run", "bfs", store, "--source", "a", "-o", "-", "--json")
    assert done.returncode == 2 and "-o - and --json both write to standard output" in done.stderr
