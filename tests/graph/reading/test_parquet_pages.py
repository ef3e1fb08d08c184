"""What the pages of a Parquet file claim, beside what pyarrow knows of the same file."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from isthmus.graph.reading.parquet_pages import DICTIONARY, BadPage, header_at, pages_of, read_struct, row_groups, whole

WORDS = [f"{'w' * (i % 50)}{i}" for i in range(3000)]
TABLE = pa.table({"words": WORDS, "numbers": np.arange(3000), "few": ["a", "bcd", None] * 1000})


@pytest.fixture
def chunks(tmp_path):
    """Write TABLE, and yield (open file, chunk, the same by pyarrow) of all columns of all row groups."""
    opened = []

    def write(**options):
        path = tmp_path / "t.parquet"
        pq.write_table(TABLE, path, **options)
        opened.append(os.open(path, os.O_RDONLY))
        with pq.ParquetFile(path) as file:
            groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        theirs = [group.column(i) for group in groups for i in range(group.num_columns)]
        ours = [chunk for _, found in row_groups(opened[-1]) for chunk in found]
        assert [chunk.name for chunk in ours] == [chunk.path_in_schema for chunk in theirs]
        assert [rows for rows, _ in row_groups(opened[-1])] == [group.num_rows for group in groups]
        return [(opened[-1], chunk, other) for chunk, other in zip(ours, theirs, strict=True)]

    yield write
    for descriptor in opened:
        os.close(descriptor)


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "brotli", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_pages_are_found_to_the_last(chunks, compression, version, dictionary):
    options = {"data_page_size": 2000, "row_group_size": 2000, "write_page_index": True}
    for file, chunk, theirs in chunks(
        compression=compression, data_page_version=version, use_dictionary=dictionary, **options
    ):
        pages = list(pages_of(file, chunk, 1 << 30))
        assert sum(page.values for page in pages if page.kind != DICTIONARY) == theirs.num_values
        headers = theirs.total_uncompressed_size - sum(page.size for page in pages)
        assert 0 < headers < 400 * len(pages)
        assert any(page.kind == DICTIONARY for page in pages) == dictionary


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "brotli", "lz4"])
def test_the_longest_value_of_a_dictionary(chunks, compression):
    longest = [
        page.longest for file, chunk, _ in chunks(compression=compression) for page in pages_of(file, chunk, 1 << 30)
    ]
    assert longest[0] == max(map(len, WORDS))
    assert 3 in longest
    small = [page.longest for file, chunk, _ in chunks(compression=compression) for page in pages_of(file, chunk, 1)]
    assert set(small) == {None}


def test_values_that_share_beginnings_may_be_as_long_as_their_page(chunks):
    file, chunk, _ = chunks(
        use_dictionary=False, column_encoding={"words": "DELTA_BYTE_ARRAY", "few": "PLAIN", "numbers": "PLAIN"}
    )[0]
    assert all(page.bytes_per_row == page.size for page in pages_of(file, chunk, 1 << 30))


def test_a_header_longer_than_a_look(tmp_path):
    pq.write_table(pa.table({"u": ["z" * 1500, "a" * 1500]}), tmp_path / "t.parquet", use_dictionary=False)
    with (tmp_path / "t.parquet").open("rb") as raw:
        header, length = header_at(raw.fileno(), 4)
    assert length > 1500
    assert header[2] == 2 * 1504 + 6  # and the levels


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "does not end"),
        (b"\x15", "does not end"),
        (b"\x15" + b"\xff" * 20, "more than 64 bits"),
        (b"\x1c" * 50, "nested too deeply"),
        (b"\x1b\x15\x00", "a map"),
        (b"\x19\xf9" + b"\xff" * 3 + b"\x01", "does not end"),
        (b"\x1d", "unknown type 13"),
    ],
)
def test_headers_that_do_not_follow_the_format(tmp_path, data, message):
    (tmp_path / "h").write_bytes(data)
    with (tmp_path / "h").open("rb") as raw, pytest.raises(BadPage, match=message):
        header_at(raw.fileno(), 0)


def test_members_of_other_types_are_not_taken_for_numbers():
    assert whole({1: {2: 3}}, 1) == whole({}, 1) == -1
    assert whole({1: 7}, 1) == 7


def test_a_column_that_ends_within_a_page(chunks, tmp_path):
    (file, chunk, _), *_ = chunks(use_dictionary=False)
    chunk.size -= 1
    with pytest.raises(BadPage, match="beyond its column"):
        list(pages_of(file, chunk, 1 << 30))


def test_any_bytes_are_read_or_refused():
    random = np.random.default_rng(3)
    for _ in range(3000):
        data = random.integers(0, 256, 40).astype(np.uint8).tobytes()
        try:
            _, end = read_struct(data, 0)
            assert end <= len(data)
        except (BadPage, IndexError):
            pass
