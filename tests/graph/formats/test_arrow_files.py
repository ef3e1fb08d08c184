"""Parquet and Arrow files, and folders of them; damaged and dishonest ones too."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from tests.naive import assert_graph, clean

import isthmus as ist
from isthmus.errors import BudgetError, GraphFormatError, OptionError
from isthmus.graph.formats import arrow_files

EDGES = [(3, 7, 0.5), (7, 9, 1.5), (9, 3, 2.5), (3, 9, 3.5)]
PLAIN = [(u, v, None) for u, v, _ in EDGES]
TABLE = pa.table(dict(zip(("source", "target", "cost"), map(list, zip(*EDGES, strict=True)), strict=True)))


def write_stream(table, path):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


def write_file(table, path):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


WRITERS = {
    "edges.parquet": lambda table, path: pq.write_table(table, path, row_group_size=3),
    "edges.pq": lambda table, path: pq.write_table(table, path, compression="zstd"),
    "edges.arrow": write_file,
    "edges.ipc": write_file,
    "edges.arrows": write_stream,
    "edges.feather": lambda table, path: feather.write_feather(table, path, compression="lz4"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_files(tmp_path, name):
    path = tmp_path / name
    WRITERS[name](TABLE, path)
    assert_graph(ist.read(path), clean(PLAIN))
    assert_graph(ist.read(path, weight="cost"), clean(EDGES))


@pytest.mark.parametrize("name", WRITERS)
def test_files_of_strings(tmp_path, name):
    table = pa.table({"u": ["b", "é", "b"], "v": ["é", "a", "a"]})
    WRITERS[name](table, tmp_path / name)
    assert_graph(ist.read(tmp_path / name), clean([("b", "é", None), ("é", "a", None), ("b", "a", None)]))


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_folder_of_parts_is_read_in_order_of_names(tmp_path, ending):
    folder = tmp_path / "edges"
    folder.mkdir()
    for number in range(4):
        WRITERS[f"edges.{ending}"](TABLE.slice(number, 1), folder / f"part-{number}.{ending}")
    (folder / "_SUCCESS").write_text("")
    (folder / ".part-9.crc").write_text("junk")
    assert_graph(ist.read(folder, weight="cost", parallel="first"), clean(EDGES, parallel="first"))


def test_parts_in_folders_of_folders(tmp_path):
    folder = tmp_path / "edges.parquet"
    for number in range(2):
        (folder / f"year={number}").mkdir(parents=True)
        pq.write_table(TABLE.slice(2 * number, 2), folder / f"year={number}" / "part.parquet")
    assert_graph(ist.read(folder), clean(PLAIN))


def test_a_folder_of_different_formats(tmp_path):
    pq.write_table(TABLE, tmp_path / "a.parquet")
    write_file(TABLE, tmp_path / "b.arrow")
    with pytest.raises(GraphFormatError, match="expected a folder of Parquet or Arrow parts, found arrow, parquet"):
        ist.read(tmp_path)


def test_a_folder_without_parts(tmp_path):
    with pytest.raises(GraphFormatError, match="no Parquet or Arrow files in this folder"):
        ist.read(tmp_path, format="parquet")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"source": [1], "goal": [2]}, "b.parquet: expected one column 'target', found 0"),
        ({"source": [1], "target": [2.5]}, "b.parquet: column 'target' holds double, expected integers or strings"),
        ({"source": [1], "target": ["x"]}, "b.parquet: column 'target' holds string, expected integers"),
    ],
)
def test_parts_that_differ(tmp_path, other, message):
    pq.write_table(TABLE, tmp_path / "a.parquet")
    pq.write_table(pa.table(other), tmp_path / "b.parquet")
    with pytest.raises(GraphFormatError, match=message):
        ist.read(tmp_path)


def test_parts_whose_integers_differ_in_width(tmp_path):
    pq.write_table(TABLE.select(["source", "target"]), tmp_path / "a.parquet")
    more = pa.table({"source": pa.array([1], pa.int8()), "target": pa.array([2**63], pa.uint64())})
    pq.write_table(more, tmp_path / "b.parquet")
    assert_graph(ist.read(tmp_path), clean([*PLAIN, (1, 2**63, None)]))


def test_only_the_columns_in_use_are_read(tmp_path):
    pq.write_table(TABLE.append_column("note", pa.array([[1], None, [], [2]])), tmp_path / "e.parquet")
    assert_graph(ist.read(tmp_path / "e.parquet"), clean(PLAIN))


def test_wrong_column_names(tmp_path):
    pq.write_table(TABLE, tmp_path / "e.parquet")
    with pytest.raises(OptionError, match=r"e.parquet: no column 'weight'; there are source, target, cost"):
        ist.read(tmp_path / "e.parquet", weight="weight")


@pytest.mark.parametrize("name", ["edges.parquet", "edges.arrow", "edges.arrows"])
def test_nothing_in_it(tmp_path, name):
    WRITERS[name](TABLE.slice(0, 0), tmp_path / name)
    graph = ist.read(tmp_path / name)
    assert (graph.vertices, graph.edges) == (0, 0)
    assert graph.report.warnings == [f"{tmp_path / name}: no edges"]


@pytest.mark.parametrize("name", ["edges.parquet", "edges.arrow", "edges.arrows"])
def test_nulls(tmp_path, name):
    WRITERS[name](pa.table({"source": [1, 2, None], "target": [2, 3, 4]}), tmp_path / name)
    with pytest.raises(GraphFormatError, match=rf"{name}: row 2: expected a value in column 'source', got null"):
        ist.read(tmp_path / name)


# ---- damaged


@pytest.mark.parametrize("name", ["edges.parquet", "edges.arrow", "edges.feather"])
@pytest.mark.parametrize("keep", [0, 1, 8, 0.5, 0.9])
def test_truncated_files(tmp_path, name, keep):
    path = tmp_path / name
    WRITERS[name](pa.table({"source": np.arange(5000), "target": np.arange(5000) % 77}), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: keep if isinstance(keep, int) else int(len(whole) * keep)])
    with pytest.raises(GraphFormatError, match=rf"{name}: (not a readable|damaged)"):
        ist.ingest(path, tmp_path / "g.isthmus")
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_a_truncated_stream(tmp_path):
    path = tmp_path / "edges.arrows"
    write_stream(pa.table({"source": np.arange(5000), "target": np.arange(5000)}), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - len(whole) // 3 + 5])
    with pytest.raises(GraphFormatError, match=r"edges.arrows: damaged: "):
        ist.read(path)


def test_a_page_with_another_checksum(tmp_path):
    path = tmp_path / "e.parquet"
    random = np.random.default_rng(1).integers(0, 1000, (2, 20_000))
    pq.write_table(pa.table({"u": random[0], "v": random[1]}), path, compression="none", write_page_checksum=True)
    data = bytearray(path.read_bytes())
    data[1000:1400] = bytes(400)
    path.write_bytes(bytes(data))
    with pytest.raises(GraphFormatError, match=r"e.parquet: (damaged|not a readable)"):
        ist.read(path)


def test_strings_that_point_outside_their_file(tmp_path):
    """An Arrow file's offsets are data like any other; trusting them would end the process."""
    path = tmp_path / "e.arrow"
    names = pa.array([f"name {i}" for i in range(1000)])
    write_file(pa.table({"u": names, "v": names}).combine_chunks(), path)
    data = bytearray(path.read_bytes())
    ends = np.cumsum([len(f"name {i}") for i in range(2)]).astype("<i4").tobytes()
    at = data.find(ends)
    assert at > 0
    data[at : at + 4] = (2**30).to_bytes(4, "little")
    path.write_bytes(bytes(data))
    with pytest.raises(GraphFormatError, match=r"e.arrow: damaged: "):
        ist.read(path)


def test_a_footer_that_promises_other_rows(tmp_path, monkeypatch):
    path = tmp_path / "e.parquet"
    pq.write_table(TABLE, path)

    class Liar(pq.ParquetFile):
        def iter_batches(self, *args, **options):
            yield next(super().iter_batches(*args, **options)).slice(1)

    monkeypatch.setattr(arrow_files.pq, "ParquetFile", Liar)
    with pytest.raises(GraphFormatError, match=r"e.parquet: holds 3 rows, its footer promises 4"):
        ist.read(path)


# ---- files that claim much


LONG = "x" * 3000


def repeated(value, rows):
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([value]))


BOMBS = {
    "dictionary.parquet": lambda path: pq.write_table(
        pa.table({"u": repeated(LONG, 5000), "v": repeated("y", 5000)}), path
    ),
    "snappy.parquet": lambda path: pq.write_table(
        pa.table({"u": [LONG] * 5000, "v": ["y"] * 5000}), path, compression="snappy", use_dictionary=False
    ),
    "beginnings.parquet": lambda path: pq.write_table(
        pa.table({"u": [f"{LONG}{i}" for i in range(5000)], "v": ["y"] * 5000}),
        path,
        use_dictionary=False,
        column_encoding={"u": "DELTA_BYTE_ARRAY", "v": "PLAIN"},
    ),
    "dictionary.feather": lambda path: feather.write_feather(
        pa.table({"u": repeated(LONG, 5000), "v": repeated("y", 5000)}), path
    ),
    "strings.feather": lambda path: feather.write_feather(
        pa.table({"u": [LONG] * 5000, "v": ["y"] * 5000}), path, compression="zstd"
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_strings_that_repeat_are_counted_as_often_as_they_occur(tmp_path, sized, name):
    BOMBS[name](tmp_path / name)
    sized(free_expansion=1 << 20)
    with pytest.raises(GraphFormatError, match=rf"{name}: \d+ bytes decompress to more than \d+; .*max_expansion="):
        ist.read(tmp_path / name, max_expansion=1)
    assert ist.read(tmp_path / name, max_expansion=10**6).edges == 5000


@pytest.mark.parametrize("name", ["dictionary.parquet", "beginnings.parquet", "snappy.parquet"])
def test_few_rows_at_a_time(tmp_path, sized, monkeypatch, name):
    """However many rows repeat a long string, Arrow is asked for few of them at once."""
    BOMBS[name](tmp_path / name)
    sized(least_block_memory=1 << 24)
    asked = []

    class Watched(pq.ParquetFile):
        def iter_batches(self, rows, *args, **options):
            asked.append(rows)
            return super().iter_batches(rows, *args, **options)

    monkeypatch.setattr(arrow_files.pq, "ParquetFile", Watched)
    assert ist.read(tmp_path / name, memory="300MB").edges == 5000
    assert max(asked) * len(LONG) <= max(1 << 24, 300_000_000 // 4)


@pytest.mark.parametrize("name", ["dictionary.parquet", "snappy.parquet", "strings.feather"])
def test_a_page_that_does_not_fit_is_refused_before_it_is_decoded(tmp_path, sized, monkeypatch, name):
    BOMBS[name](tmp_path / name)
    sized(least_block_memory=1 << 10, least_name_bytes=1 << 10)
    monkeypatch.setattr(arrow_files, "batches", lambda *_: pytest.fail("decoded"))
    what = "a batch" if name.endswith("feather") else "a page of column 'u'"
    with pytest.raises(
        BudgetError, match=rf"{name}: {what} decompresses to .*, and the budget leaves .* for it; raise memory="
    ):
        ist.read(tmp_path / name, memory=20_000)


def test_rows_beyond_any_measure_are_refused_by_the_footer(tmp_path, sized, monkeypatch):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"u": np.zeros(100_000, np.int64), "v": np.zeros(100_000, np.int64)}), path)
    sized(free_expansion=1 << 16)
    monkeypatch.setattr(arrow_files, "pages_of", lambda *_: pytest.fail("looked at"))
    with pytest.raises(GraphFormatError, match=r"rows.parquet: \d+ bytes decompress to more than \d+"):
        ist.read(path, max_expansion=1)


@pytest.mark.parametrize("name", ["edges.parquet", "edges.arrow", "edges.arrows"])
def test_ids_that_are_not_utf8_are_named(tmp_path, name):
    """Arrow takes the word of a file that its strings are UTF-8."""
    strings = pa.array([b"a", b"b", b"\xffc"]).view(pa.string())
    WRITERS[name](pa.table({"u": strings, "v": ["x", "y", "z"]}), tmp_path / name)
    expected = rf"{name}: (row 2: expected an id in UTF-8 in column 'u', got b'.xffc'|damaged: .*UTF8)"
    with pytest.raises(GraphFormatError, match=expected):
        ist.read(tmp_path / name)


@pytest.mark.parametrize("name", ["bomb.parquet", "bomb.feather"])
def test_a_small_file_that_grows_without_end(tmp_path, sized, name):
    table = pa.table({"source": np.zeros(500_000, np.int64), "target": np.ones(500_000, np.int64)})
    WRITERS["edges.pq" if name.endswith("parquet") else "edges.feather"](table, tmp_path / name)
    sized(free_expansion=1 << 16)
    with pytest.raises(GraphFormatError, match=rf"{name}: \d+ bytes decompress to more than \d+; .*max_expansion="):
        ist.read(tmp_path / name, max_expansion=5)
    assert ist.read(tmp_path / name, max_expansion=10**6).edges == 500_000
