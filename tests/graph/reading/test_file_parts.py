"""Patterns of files (`graph/reading/file_parts.py`), and rows and lines without ids (`graph/reading/table_source.py`,
`graph/formats/text.py`).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.naive import assert_graph, clean

import isthmus as ist
from isthmus.errors import GraphFormatError, OptionError

WEIGHTED = [(1, 2, 5), (2, 3, 6), (3, 1, 7)]


@pytest.fixture
def write(tmp_path):
    def write(**files):
        for name, text in files.items():
            (tmp_path / name.replace("__", "-").replace("_", ".")).write_text(text)
        return tmp_path

    return write


def test_a_pattern_of_tables(tmp_path):
    for at, (u, v, w) in enumerate(WEIGHTED):
        table = pa.table({"source": [u], "target": [v], "weight": [w]})
        pq.write_table(table, tmp_path / f"e-{at}.parquet")
    assert_graph(ist.read(tmp_path / "e-*.parquet"), clean(WEIGHTED))
    assert_graph(ist.read(str(tmp_path / "e-[01].parquet")), clean(WEIGHTED[:2]))
    assert_graph(ist.read(tmp_path / "e-2*"), clean(WEIGHTED[2:]))


@pytest.mark.parametrize("names", [str, lambda v: f"v{v}"])
def test_a_pattern_of_texts(write, names):
    lines = [f"{names(u)} {names(v)} {w}\n" for u, v, w in WEIGHTED]
    folder = write(e__1_wel=lines[0] + lines[1], e__2_wel=lines[2].replace("7", "7.5"))
    graph = ist.read(folder / "e-*.wel")
    kind = int if names is str else str
    expected = [(kind(names(u)), kind(names(v)), 7.5 if w == 7 else float(w)) for u, v, w in WEIGHTED]
    assert_graph(graph, clean(expected))
    assert graph.report.reader == {"format": "text", "files": 2, "lines": 3}


def test_patterns_that_match_nothing_or_too_much(write):
    folder = write(a_txt="1 2\n", b_mtx="%%MatrixMarket\n", c_wel="1 2 3\n", n__1_txt="-1 2\n", n__2_txt=f"{2**63} 2\n")
    with pytest.raises(GraphFormatError, match=r"z\*.txt: no such file, and no file matches it as a pattern"):
        ist.read(folder / "z*.txt")
    with pytest.raises(
        GraphFormatError, match=r"expected files of text, or of Parquet or Arrow, got 5 of matrix-market, text"
    ):
        ist.read(folder / "*")
    with pytest.raises(GraphFormatError, match=r"c.wel: expected weights as in .*a.txt, found some"):
        ist.read(folder / "[ac].*")
    with pytest.raises(GraphFormatError, match="ids below 0 and above"):
        ist.read(folder / "n-*.txt")
    with pytest.raises(OptionError, match="unknown option colour"):
        ist.read(folder / "[ac].*", colour="red")


TEXT = '1,2,5\n,2,5\n3,,5\n\n# note\n2,3,6\n4,"",1\n3,1,7\n'


@pytest.mark.parametrize("chunk", [16, 8 << 20])
def test_lines_without_an_id(write, sized, chunk):
    sized(text_chunk=chunk)
    path = write(e_csv=TEXT) / "e.csv"
    with pytest.raises(GraphFormatError, match=r"e.csv:2: expected"):
        ist.read(path, weight=3)
    with pytest.warns(ist.IsthmusWarning, match=r"e.csv: 3 lines without a source or target skipped"):
        graph = ist.read(path, weight=3, missing="skip")
    assert_graph(graph, clean(WEIGHTED))
    assert graph.report.reader["lines_skipped"] == 3


def test_strings_and_lines_that_stay_errors(write):
    folder = write(s_csv="a,b\n,b\nc,\nb,c\n", t_tsv="a\tb\nc\t\nb\tc\n", f_txt="1 2\n3\n", g_csv='1,2\n3\n"x,3\n')
    for name in ("s.csv", "t.tsv"):
        with pytest.warns(ist.IsthmusWarning, match="without a source or target skipped"):
            assert_graph(ist.read(folder / name, missing="skip"), clean([("a", "b", None), ("b", "c", None)]))
    for name in ("f.txt", "g.csv"):
        with pytest.raises(GraphFormatError, match=rf"{name}:2: expected 'source target'"):
            ist.read(folder / name, missing="skip")
    with pytest.raises(OptionError, match="missing: expected error or skip, got 'drop'"):
        ist.read(folder / "s.csv", missing="drop")


NONE = None


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"source": [1, NONE, 2, 3, 4], "target": [2, 7, 3, 1, NONE], "weight": [5, NONE, 6, 7, 1]}),
        pd.DataFrame({"source": [1, NONE, 2, 3, 4], "target": [2, 7, 3, 1, NONE], "weight": [5, 0, 6, 7, 1]}),
        (np.array([1, np.nan, 2, 3, 4]), np.array([2, 7, 3, 1, np.nan]), np.array([5, 0, 6, 7, 1])),
        [(1, 2, 5), (NONE, 7, 0), (2, 3, 6), (3, 1, 7), (4, NONE, 1)],
    ],
    ids=["arrow", "pandas", "arrays", "pairs"],
)
def test_rows_without_an_id(table):
    with pytest.raises(GraphFormatError):
        ist.read(table)
    with pytest.warns(ist.IsthmusWarning, match="2 rows without a source or target skipped"):
        graph = ist.read(table, missing="skip")
    assert_graph(graph, clean(WEIGHTED))
    assert graph.report.reader["rows_skipped"] == 2


def test_rows_of_strings_and_errors_that_stay():
    words = pa.table({"source": ["a", None, "b"], "target": ["b", "z", "c"]})
    with pytest.raises(
        GraphFormatError, match=r"row 1: expected a value in column 'source', got null \(missing='skip' leaves"
    ):
        ist.read(words)
    with pytest.warns(ist.IsthmusWarning, match="1 row without"):
        assert_graph(ist.read(words, missing="skip"), clean([("a", "b", None), ("b", "c", None)]))
    with pytest.raises(GraphFormatError, match=r"row 2: expected a whole number in column 'source', got 1\.5"):
        ist.read((np.array([np.nan, 1, 1.5]), np.array([1, 2, 3])), missing="skip")
    weights = pa.table({"source": [1, None], "target": [2, 3], "weight": [None, 1]})
    with pytest.raises(GraphFormatError, match=r"row 0: expected a value in column 'weight', got null$"):
        ist.read(weights, missing="skip")
