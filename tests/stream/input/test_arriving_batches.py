"""Updates from files and pipes, in batches by rows and by time.

Tests `stream/input/arriving_batches.py`, `stream/input/sources.py`, `stream/input/lines.py`,
`stream/input/update_rows.py`, `stream/input/text_rows.py` and `stream/results/changes.py`.
"""

from __future__ import annotations

import gzip
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import isthmus as ist
from isthmus.stream.input.arriving_batches import arriving_batches
from isthmus.stream.input.batch_columns import Kinds
from isthmus.stream.input.lines import PipeLines
from isthmus.stream.input.sources import TextUpdates, open_updates
from isthmus.stream.input.update_rows import Rows
from isthmus.stream.input.update_tables import ALL_COLUMNS, edits_of_table
from isthmus.stream.results.changes import save_changes

INTEGERS = Kinds("int64", np.dtype(np.int32))
HEADER = "op,source,target,weight,time\n"


def batches(path: Any, kinds: Kinds = INTEGERS, format: str | None = None, **how: Any) -> list[list[tuple[Any, ...]]]:
    """The rows of every batch."""
    return [table_rows(arrival.rows, kinds) for arrival in arriving_batches(open_updates(path, kinds, format), **how)]


def table_rows(rows: Rows, kinds: Kinds) -> list[tuple[Any, ...]]:
    edits = edits_of_table(rows.table(), kinds, rows.name, rows.where)
    assert edits.weights is not None
    return list(
        zip(edits.wishes.tolist(), edits.sources.tolist(), edits.targets.tolist(), edits.weights.tolist(), strict=True)
    )


ROWS = [("insert", 1, 2, 5), ("insert", 3, 4, 6), ("delete", 1, 2, None), ("update", 3, 4, 7), ("insert", 5, 6, 8)]
EXPECTED = [(1, 1, 2, 5), (1, 3, 4, 6), (2, 1, 2, 0), (3, 3, 4, 7), (1, 5, 6, 8)]


def written(folder: Path, kind: str) -> Path:
    path = folder / f"u.{kind}"
    columns = dict(zip(("op", "source", "target", "weight"), map(list, zip(*ROWS, strict=True)), strict=True))
    if kind == "parquet":
        pq.write_table(pa.table(columns), path, row_group_size=2)
    elif kind in ("arrow", "arrows"):
        with (pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream)(path, pa.table(columns).schema) as writer:
            writer.write_table(pa.table(columns), max_chunksize=2)
    elif kind == "jsonl":
        rows = [{name: value for name, value in zip(columns, row, strict=True) if value is not None} for row in ROWS]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        mark = "\t" if "tsv" in kind else ","
        text = (
            mark.join(columns)
            + "\r\n\n"
            + "\n".join(mark.join("" if value is None else str(value) for value in row) for row in ROWS)
        )
        path.write_bytes(gzip.compress(text.encode()) if kind.endswith("gz") else text.encode())
    return path


@pytest.mark.parametrize("kind", ["parquet", "arrow", "arrows", "csv", "tsv", "csv.gz", "jsonl", "log"])
def test_files_of_any_format_in_batches(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, kind)
    assert batches(path, batch=2) == [EXPECTED[:2], EXPECTED[2:4], EXPECTED[4:]]
    assert batches(path) == [EXPECTED]


def test_a_table_or_a_reader_is_followed_too() -> None:
    table = pa.table({"op": ["insert"] * 5, "source": range(5), "target": range(5)})
    assert [len(rows) for rows in batches(table, batch=3)] == [3, 2]
    assert [len(rows) for rows in batches(table.to_reader(2), batch=3)] == [3, 2]


BAD_TEXT = [
    (
        "csv",
        "op,target\n",
        "u.csv:1: no column 'source'; there are op, target; the first line of a CSV names its columns",
    ),
    (
        "csv",
        "insert,1,2\n",
        "u.csv:1: no column 'op'; there are insert, 1, 2; the first line of a CSV names its columns",
    ),
    (
        "csv",
        HEADER + "insert,1,2,3,\n\ninsert,1,x,3,\n",
        "u.csv:4: column 'target': expected an integer, as the graph's ids are, got 'x'",
    ),
    ("csv", HEADER + "insert,1,2,3,\ninsert,1\n", "u.csv:3: expected 5 values .*, got 2: 'insert,1'"),
    ("csv", HEADER + "insert,1,2.5,3,\n", r"u.csv:2: column 'target': expected an integer, .*got '2\.5'"),
    ("csv", HEADER + "insert,1,2,nan,\n", "u.csv:2: column 'weight': expected a finite number, got nan"),
    (
        "csv",
        HEADER + "insert,1,2,2.5,\n",
        r"u.csv:2: column 'weight': expected a whole number, as the graph's weights are int32, got 2\.5",
    ),
    ("csv", HEADER + "insert,1,2,9999999999,\n", "u.csv:2: column 'weight': expected a number that int32 holds"),
    ("csv", HEADER + "insert,1,2,much,\n", "u.csv:2: column 'weight': expected a number, got 'much'"),
    ("csv", HEADER + "insert,1,2,3,\nmove,1,2,3,\n", "u.csv:3: column 'op': expected insert, delete, .* got 'move'"),
    ("csv", HEADER + "insert,99999999999999999999,2,3,\n", "u.csv:2: column 'source': expected an id from"),
    ("csv", HEADER + 'insert,"1,2,3,\n', "u.csv:2: expected"),
    ("csv", HEADER + "insert,,2,3,\n", "u.csv:2: column 'source': expected an id, got null"),
    ("csv", HEADER + "update,1,2,,\n", "u.csv:2: column 'weight': expected a number, got null"),
    (
        "jsonl",
        '{"op":"insert","source":1,"target":2}\n{"op":"insert","source":1,"tar',
        "u.jsonl:2: expected a JSON object such as .*, got",
    ),
    (
        "jsonl",
        '{"op":"insert","source":1,"target":"2"}\n',
        "u.jsonl:1: column 'target': expected an integer, as the graph's ids are, got '2'",
    ),
    ("jsonl", '{"op":"insert","source":1}\n', "u.jsonl:1: column 'target': expected an id, got null"),
    (
        "jsonl",
        '{"op":"insert","source":1,"target":2,"weight":NaN}\n',
        "u.jsonl:1: column 'weight': expected a finite number, got nan",
    ),
    ("jsonl", '{"op":"update","source":1,"target":2}\n', "u.jsonl:1: column 'weight': expected a number, got null"),
    ("jsonl", '{"source":1,"target":2}\n', "u.jsonl:1: column 'op': expected an operation, got null"),
    (
        "jsonl",
        '{"op":"insert","source":true,"target":2}\n',
        "u.jsonl:1: column 'source': expected an integer.* got True",
    ),
    ("jsonl", '{"op":"insert","source":1,\n"target":2}\n', "u.jsonl:1: expected a JSON object such as"),
    ("jsonl", "7\n", "u.jsonl:1: expected a JSON object such as .*, got '7'"),
    ("json", "[{}]\n", "u.json: is a JSON array; expected one object per line"),
]


@pytest.mark.parametrize(("kind", "text", "message"), BAD_TEXT, ids=range(len(BAD_TEXT)))
def test_bad_text_names_line_and_column(tmp_path: Path, kind: str, text: str, message: str) -> None:
    (tmp_path / f"u.{kind}").write_text(text)
    with pytest.raises(ist.BatchError, match=message):
        batches(tmp_path / f"u.{kind}")


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "u.csv").write_bytes(b"op,source,target\ninsert,a,\xff\xfe\n")
    with pytest.raises(ist.BatchError, match=r"u.csv:2: expected text in UTF-8, got b'insert,a"):
        batches(tmp_path / "u.csv", Kinds("string", None))


def test_values_that_arrow_refuses_and_python_accepts(tmp_path: Path) -> None:
    (tmp_path / "u.csv").write_text(HEADER + "insert, 1 ,2,3.0,\nadd_vertex,9,,,\ndelete,1,2,,\n")
    assert batches(tmp_path / "u.csv")[0] == [(1, 1, 2, 3), (2, 1, 2, 0)]
    (tmp_path / "u.jsonl").write_text(
        '{"op":"insert","source":1,"target":2}\n{"op":"insert","src":0,"source":1,"target":3,"weight":4.0}\n'
    )
    assert batches(tmp_path / "u.jsonl")[0] == [(1, 1, 2, 1), (1, 1, 3, 4)], "in JSON a missing weight is 1"


def test_other_bad_inputs(tmp_path: Path) -> None:
    (tmp_path / "u.parquet").write_bytes(b"PAR1 no such thing")
    with pytest.raises(ist.GraphFormatError, match=r"u.parquet: not a readable parquet file"):
        batches(tmp_path / "u.parquet")
    with pytest.raises(ist.GraphFormatError, match="is a folder; expected a file of updates"):
        batches(tmp_path)
    with pytest.raises(ist.OptionError, match="format: expected csv, jsonl, parquet or arrow, got 'xml'"):
        batches(tmp_path / "u.parquet", format="xml")
    with pytest.raises(ist.OptionError, match="updates: expected a path, a table, or - for standard input, got int"):
        batches(7)
    pq.write_table(pa.table({"source": [1], "target": [2]}), tmp_path / "v.parquet")
    with pytest.raises(ist.BatchError, match=r"v.parquet: no column 'op'; there are source, target"):
        batches(tmp_path / "v.parquet")
    (tmp_path / "w.csv").write_text("op,source,target\ninsert,1,2\n")
    with pytest.raises(ist.OptionError, match="window= needs a column 'time', or updates from a pipe"):
        batches(tmp_path / "w.csv", window=1.0)
    (tmp_path / "empty.csv").write_text("")
    assert batches(tmp_path / "empty.csv") == [] == batches(written_header(tmp_path))


def written_header(folder: Path) -> Path:
    (folder / "header.csv").write_text(HEADER)
    return folder / "header.csv"


def test_windows_by_the_column_time(tmp_path: Path) -> None:
    times = [0, 0.4, 0.9, 1.0, 5.0, 5.2, 9.0]
    (tmp_path / "u.csv").write_text(HEADER + "".join(f"insert,1,{row},1,{when}\n" for row, when in enumerate(times)))
    found = list(arriving_batches(open_updates(tmp_path / "u.csv", INTEGERS), window=1.0))
    assert [len(each.rows) for each in found] == [3, 1, 2, 1]
    assert [each.seconds for each in found] == pytest.approx([0.9, 0.1, 4.2, 3.8])
    assert [len(rows) for rows in batches(tmp_path / "u.csv", window=1.0, batch=2)] == [2, 2, 2, 1]


def test_a_batch_ends_where_a_removed_vertex_is_used(tmp_path: Path) -> None:
    rows = [
        "insert,1,2",
        "remove_vertex,7,",
        "remove_vertex,1,",
        "add_vertex,1,",
        "insert,1,3",
        "delete,7,1",
        "remove_vertex,9,",
    ]
    (tmp_path / "u.csv").write_text("op,source,target\n" + "\n".join(rows) + "\n")
    parts = [len(each.rows) for each in arriving_batches(open_updates(tmp_path / "u.csv", INTEGERS))]
    assert parts == [2, 1, 4]
    with ist.stream(ist.read((np.array([1, 7]), np.array([7, 1])))) as live:
        assert [report.changes for report in live.follow(tmp_path / "u.csv")] == [2, 1, 4]
        assert sorted(live.graph.changing_ids.users().tolist()) == [1, 2, 3]


@pytest.fixture
def pipe() -> Iterator[tuple[TextUpdates, Any]]:
    reader, writer = os.pipe()
    file = os.fdopen(writer, "wb", buffering=0)
    yield TextUpdates("pipe", PipeLines(reader, "pipe", own=True), INTEGERS, None, ALL_COLUMNS), file
    file.close()


def line(target: int) -> bytes:
    return b'{"op":"insert","source":1,"target":%d}\n' % target


def test_a_quiet_pipe_is_applied_all_the_same(pipe: Any) -> None:
    source, file = pipe
    found = arriving_batches(source, window=0.05)
    file.write(line(1))
    assert len(next(found).rows) == 1
    file.write(line(2) + line(3) + line(4)[:-9])
    assert len(next(found).rows) == 2, "not the line that has only begun"
    file.write(line(4)[-9:] + line(5)[:-1])
    assert len(next(found).rows) == 1
    file.close()
    assert len(next(found).rows) == 1, "the last line needs no end"
    assert next(found, None) is None


def test_batches_of_a_pipe_by_rows(pipe: Any) -> None:
    source, file = pipe
    file.write(b"".join(map(line, range(7))))
    file.close()
    found = list(arriving_batches(source, batch=3))
    assert [len(each.rows) for each in found] == [3, 3, 1]


def test_what_arrives_meanwhile_belongs_to_the_next_batch(pipe: Any) -> None:
    source, file = pipe
    found = arriving_batches(source, window=0.02)
    file.write(b"op,source,target\ninsert,1,1\n")
    first = next(found)
    threading.Timer(0.1, lambda: (file.write(b"insert,1,2\ninsert,1,3\n"), file.close())).start()
    time.sleep(0.2)
    second = next(found)
    assert [len(first.rows), len(second.rows)] == [1, 2]
    assert second.seconds is not None and 0.05 < second.seconds < 5
    assert next(found, None) is None


def test_a_pipe_that_ends_within_a_line(pipe: Any) -> None:
    source, file = pipe
    file.write(line(1) + line(2)[:20])
    file.close()
    found = arriving_batches(source, batch=1)
    assert len(next(found).rows) == 1
    with pytest.raises(ist.BatchError, match=r"pipe:2: expected a JSON object such as .*, got "):
        next(found)


def test_reports_and_changes(tmp_path: Path) -> None:
    (tmp_path / "u.csv").write_text("op,source,target,time\ninsert,0,3,10\ndelete,0,1,11\ninsert,0,9,13\n")
    with ist.stream(ist.generate("path", vertices=4, directed=True), [ist.BFS(source=0)]) as live:
        reports = list(live.follow(tmp_path / "u.csv", batch=2))
        facts = reports[0].as_dict()
        assert facts["batch"] == 1 and facts["changes"] == 2 and facts["inserted"] == facts["deleted"] == 1
        assert facts["arrival"] == {"seconds": 1.0, "rate": 2.0, "keeps_up": facts["seconds"]["total"] <= 1}
        assert reports[1].arrival == 2.0 and reports[1].arrival_rate == 0.5
        parts = ("read", "update", "correction", "computation", "publication")
        assert facts["seconds"]["total"] == pytest.approx(sum(facts["seconds"][part] for part in parts), abs=1e-3)
        live.apply(deletes=[(0, 3)])
        for ending in ("parquet", "csv"):
            save_changes(live["bfs"], tmp_path / f"c.{ending}")
        assert pq.read_table(tmp_path / "c.parquet").to_pydict() == {"vertex": [3], "old": [1], "new": [None]}
        assert (tmp_path / "c.csv").read_text().split() == ['"vertex","old","new"', "3,1,"]
        with pytest.raises(ist.OptionError, match="batch: expected at least 1, got 0"):
            list(live.follow(tmp_path / "u.csv", batch=0))
