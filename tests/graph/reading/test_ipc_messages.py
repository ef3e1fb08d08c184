"""What Arrow messages claim to hold once decompressed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from isthmus.graph.reading.ipc_messages import BadMessage, claims

ROWS = 3000
NUMBERS = pa.table({"u": np.arange(ROWS), "v": np.zeros(ROWS, np.int64)})
WORDS = pa.table({"u": pa.array(["abc"] * ROWS).dictionary_encode(), "v": ["de"] * ROWS})


def write(table, path, how, codec, rows=1000):
    make = pa.ipc.new_file if how == "file" else pa.ipc.new_stream
    with (
        pa.OSFile(str(path), "wb") as sink,
        make(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer,
    ):
        writer.write_table(table, max_chunksize=rows)


def claimed(path):
    with path.open("rb") as raw:
        return list(claims(raw.fileno()))


@pytest.mark.parametrize("how", ["file", "stream"])
@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_compressed_batches(tmp_path, how, codec):
    write(NUMBERS, tmp_path / "a", how, codec)
    assert [claim for claim in claimed(tmp_path / "a") if claim] == [16_000] * 3
    write(WORDS, tmp_path / "b", how, codec)
    assert sum(claimed(tmp_path / "b")) == pytest.approx(WORDS.nbytes, rel=0.02)


@pytest.mark.parametrize("how", ["file", "stream"])
def test_batches_that_are_not_compressed_claim_nothing(tmp_path, how):
    write(WORDS, tmp_path / "a", how, None)
    assert sum(claimed(tmp_path / "a")) == 0
    write(WORDS.slice(0, 0), tmp_path / "b", how, "zstd")
    assert sum(claimed(tmp_path / "b")) == 0


@pytest.mark.parametrize("how", ["file", "stream"])
def test_any_damage_is_read_or_refused(tmp_path, how):
    write(WORDS, tmp_path / "a", how, "zstd")
    whole = (tmp_path / "a").read_bytes()
    random = np.random.default_rng(5)
    refused = 0
    for _ in range(500):
        data = bytearray(whole)
        for at in random.integers(0, len(data), 4):
            data[at] = random.integers(0, 256)
        (tmp_path / "b").write_bytes(bytes(data[: random.integers(1, len(data) + 1)]))
        try:
            claimed(tmp_path / "b")
        except BadMessage:
            refused += 1
    assert refused > 100
