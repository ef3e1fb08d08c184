"""Damage of every kind to the files of a log: a torn tail is cut, other damage is an error that says where.

Tests `stream/log/frames.py` and `stream/log/segments.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from isthmus.errors import StoreError
from isthmus.stream.log import frames
from isthmus.stream.log.frames import BATCH, BEGIN, HEADER, MARK, framed
from isthmus.stream.log.log_writer import LogWriter
from isthmus.stream.log.segments import Reading, Tail, name_of

SEED = 12345
CONTENTS = [b"first", b"", b"third " + framed(7, BATCH, 4, 99), b"the fourth"]


def log(marks: bool = True) -> tuple[bytes, list[int]]:
    """A log of four batches, and where each of them ends. `marks`: every batch is marked as synced."""
    data, ends = framed(SEED, BEGIN, 0, 0), [HEADER]
    for number, content in enumerate(CONTENTS, 1):
        data += framed(SEED, BATCH, number, number - 1 if marks else 0, content)
        ends.append(len(data))
        if marks:
            data += framed(SEED, MARK, number, number)
    return data, ends


def written(folder: Path, data: bytes, before: int = 0) -> Path:
    path = folder / name_of(before)
    path.unlink(missing_ok=True)  # ext4 syncs a file that is written again in place, which takes long
    path.write_bytes(data)
    return path


def read(folder: Path, since: int = 0) -> tuple[list[bytes], Reading]:
    reading = Reading(folder, SEED, since)
    return [frame.content for frame, _ in reading], reading


def test_a_sound_log(tmp_path: Path) -> None:
    data, _ = log()
    path = written(tmp_path, data)
    for since in range(5):
        found, reading = read(tmp_path, since)
        assert found == CONTENTS[since:]
        tail = reading.tail
        assert (tail.number, tail.path, tail.end, tail.torn, tail.unsure) == (4, path, len(data), 0, len(data))
    data, _ = log(marks=False)
    written(tmp_path, data)
    assert read(tmp_path)[1].tail.unsure == HEADER, "nothing says that a batch was synced"


@pytest.mark.parametrize("marks", [False, True])
def test_truncated_at_every_byte(tmp_path: Path, marks: bool) -> None:
    """What was whole is there, and the rest is known to be torn."""
    data, ends = log(marks)
    for size in range(len(data) + 1):
        written(tmp_path, data[:size])
        found, reading = read(tmp_path)
        whole = sum(end <= size for end in ends[1:])
        assert found == CONTENTS[:whole] and reading.tail.number == whole
        assert reading.tail.end + reading.tail.torn == size and (reading.tail.end in [0, *ends] or marks)


def flip(path: Path, bit: int, data: bytes = b"") -> None:
    """Flip a bit of a file in place, or put it back as it is in `data`."""
    with path.open("r+b") as file:
        file.seek(max(bit, 0) // 8)
        value = data[max(bit, 0) // 8] if data else file.read(1)[0] ^ 1 << bit % 8
        file.seek(max(bit, 0) // 8)
        file.write(bytes([value]))


def test_every_bit_flipped(tmp_path: Path) -> None:
    """A batch that a later frame knows to be on disk is never cut. Behind the last of them, a mark may be."""
    data, ends = log()
    path = written(tmp_path, data)
    for bit in range(8 * len(data)):
        flip(path, bit - 1, data)
        flip(path, bit)
        if bit // 8 >= ends[-1]:
            assert read(tmp_path)[0] == CONTENTS
            continue
        with pytest.raises(StoreError, match=r"checksum does not match\); restore the folder") as error:
            read(tmp_path)
        where = int(str(error.value).split(f"{path}: byte ")[1].split(":")[0])
        assert where <= bit // 8 < where + HEADER + 200, "it says where"


def test_batches_that_were_not_synced_may_be_torn_in_any_order(tmp_path: Path) -> None:
    """A power cut may leave the second of two batches and not the first: neither was acknowledged."""
    data, ends = log(marks=False)
    for lost in range(4):
        torn = bytearray(data)
        torn[ends[lost] : ends[lost + 1]] = bytes(ends[lost + 1] - ends[lost])
        written(tmp_path, torn)
        found, reading = read(tmp_path)
        assert found == CONTENTS[:lost] and (reading.tail.end, reading.tail.torn) == (
            ends[lost],
            len(data) - ends[lost],
        )


def test_frames_of_another_log_and_of_clients_mean_nothing(tmp_path: Path) -> None:
    data, _ = log(marks=False)
    for stranger in (framed(7, MARK, 4, 4), framed(SEED + 1, BATCH, 5, 4, b"x"), b"ISLF" * 40):
        written(tmp_path, data + stranger)
        found, reading = read(tmp_path)
        assert found == CONTENTS and reading.tail.torn == len(stranger)


def test_several_segments(tmp_path: Path) -> None:
    data, ends = log()
    written(tmp_path, data)
    second = written(tmp_path, framed(SEED, BEGIN, 4, 4) + framed(SEED, BATCH, 5, 4, b"fifth"), 4)
    assert read(tmp_path)[0] == [*CONTENTS, b"fifth"] and read(tmp_path, 4)[0] == [b"fifth"]
    assert read(tmp_path, 3)[1].tail.path == second
    with pytest.raises(StoreError, match="the log lacks batches 1 to 4: expected a file log-000000000000"):
        (tmp_path / name_of(0)).rename(tmp_path / "aside")
        read(tmp_path)
    assert read(tmp_path, 4)[0] == [b"fifth"], "the checkpoint has the others"
    (tmp_path / "aside").rename(tmp_path / name_of(0))
    for size in range(ends[-1]):
        written(tmp_path, data[:size])
        with pytest.raises(StoreError, match=f"{name_of(0)}: byte .*is damaged|the log lacks batches"):
            read(tmp_path)
    written(tmp_path, data)
    written(tmp_path, b"", 4)  # killed while it was begun
    found, reading = read(tmp_path)
    assert found == CONTENTS and (reading.tail.path, reading.tail.end) == (second, 0)
    for since in (0, 2):
        second.unlink(missing_ok=True)
        written(tmp_path, framed(SEED, BEGIN, 6, 6), 6)
        with pytest.raises(StoreError, match="the log lacks batches 5 to 6"):
            read(tmp_path, since)


def test_a_checkpoint_that_has_more_than_the_log(tmp_path: Path) -> None:
    written(tmp_path, log()[0])
    found, reading = read(tmp_path, 9)
    assert found == [] and (reading.tail.number, reading.tail.path) == (9, None), "a new segment is begun"
    with pytest.raises(StoreError, match="the log lacks all batches from 1 on"):
        (tmp_path / name_of(0)).unlink()
        read(tmp_path)


def test_frames_in_another_order(tmp_path: Path) -> None:
    begin, one, two = framed(SEED, BEGIN, 0, 0), framed(SEED, BATCH, 1, 0), framed(SEED, BATCH, 2, 0)
    for data, at in (
        (begin + two, HEADER),
        (begin + one + one, 2 * HEADER),
        (one, 0),
        (begin + begin, HEADER),
        (begin + one + begin, 96),
    ):
        path = written(tmp_path, data)
        with pytest.raises(StoreError, match=f"{path}: byte {at}: expected batch"):
            read(tmp_path)


def test_a_search_finds_headers_across_its_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "AT_ONCE", 50)
    data, ends = log()
    flipped = bytearray(data)
    flipped[ends[0] + 1] ^= 1
    written(tmp_path, flipped)
    with pytest.raises(StoreError, match=f"byte {HEADER}: batch 1 is damaged"):
        read(tmp_path)


def test_a_batch_that_comes_while_a_log_is_read(tmp_path: Path) -> None:
    """It is not read, and its mark does not make the end look damaged."""
    writer = LogWriter(tmp_path, 7, Tail(0))
    for number in (1, 2):
        writer.append(number, b"x" * 100)
        writer.wait(number)
    batches = iter(Reading(tmp_path, 7, 0))
    next(batches)
    writer.append(3, b"y")
    writer.wait(3)
    assert [frame.header.number for frame, _ in batches] == [2]
    writer.close()
