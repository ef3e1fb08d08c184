"""The parser of lines: exact numbers, and nothing read behind the last newline."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.kernels.text import edge_text as kernels

NO_COMMENTS = np.empty(0, np.uint8)
LOCALE = kernels.c_locale()
RELAXED = settings(max_examples=100, deadline=None)


def parse(text: bytes, columns=(0, 1, -1), dtype=np.uint64, separator=kernels.SPACE, comments=b"#", negative=False):
    """(status, edges, where, flags) of parse_integer_edges."""
    data = np.frombuffer(text, np.uint8)
    lines = kernels.count_lines(data)
    sources, targets = np.empty(lines, dtype), np.empty(lines, dtype)
    weights = np.empty(lines) if columns[2] >= 0 else None
    marks = np.frombuffer(comments, np.uint8) if comments else NO_COMMENTS
    status, edges, where, flags = kernels.parse_integer_edges(
        data, np.array(columns, np.int64), separator, marks, negative, LOCALE, sources, targets, weights
    )
    columns = [sources[:edges].tolist(), targets[:edges].tolist()] + (
        [] if weights is None else [weights[:edges].tolist()]
    )
    return status, list(zip(*columns, strict=True)), where, flags


def guarded(text: bytes) -> np.ndarray:
    """`text` right before a page that may not be touched: one byte too far ends the process."""
    size = -(-len(text) // mmap.PAGESIZE) * mmap.PAGESIZE
    array = np.frombuffer(mmap.mmap(-1, size + mmap.PAGESIZE), np.uint8)
    array[size - len(text) : size] = np.frombuffer(text, np.uint8)
    no_access = 0
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(array.ctypes.data + size), mmap.PAGESIZE, no_access) == 0
    return array[size - len(text) : size]


def test_plain_lines():
    assert parse(b"1 2\n30 40\n") == (kernels.OK, [(1, 2), (30, 40)], 10, 0)


@pytest.mark.parametrize(
    ("field", "value", "flags"),
    [
        (b"0", 0, 0),
        (b"-0", 0, 0),
        (b"9223372036854775807", 2**63 - 1, 0),
        (b"9223372036854775808", 2**63, kernels.SAW_HUGE_ID),
        (b"18446744073709551615", 2**64 - 1, kernels.SAW_HUGE_ID),
        (b"-1", 2**64 - 1, kernels.SAW_NEGATIVE_ID),
        (b"-9223372036854775808", 2**63, kernels.SAW_NEGATIVE_ID),
        (b"000000000000000000000000000042", 42, 0),
    ],
)
def test_integers_of_64_bits(field, value, flags):
    assert parse(b"%s 1\n" % field) == (kernels.OK, [(value, 1)], len(field) + 3, flags)
    assert parse(b"1 %s\n" % field)[1:] == ([(1, value)], len(field) + 3, flags)


@pytest.mark.parametrize(
    "field", [b"18446744073709551616", b"99999999999999999999", b"-9223372036854775809", b"1" * 40]
)
def test_integers_beyond_64_bits(field):
    assert parse(b"1 2\n3 %s\n" % field)[::2] == (kernels.TOO_BIG, 4)


@RELAXED
@given(value=st.integers(-(2**70), 2**70))
def test_any_integer(value):
    status, edges, _, flags = parse(b"%d 0\n" % value)
    if -(2**63) <= value < 2**64:
        assert (status, edges) == (kernels.OK, [(value % 2**64, 0)])
        assert flags == (kernels.SAW_NEGATIVE_ID if value < 0 else kernels.SAW_HUGE_ID if value >= 2**63 else 0)
    else:
        assert status == kernels.TOO_BIG


@pytest.mark.parametrize(
    ("line", "wide"), [(b"4294967295 0\n", False), (b"4294967296 0\n", True), (b"0 -1\n", True), (b"-0 0\n", False)]
)
def test_narrow_arrays_ask_for_wide_ones(line, wide):
    assert (parse(line, dtype=np.uint32)[0] == kernels.WIDE) == wide


@RELAXED
@given(value=st.floats(0, allow_nan=False, allow_infinity=False), digits=st.integers(0, 30), exponent=st.booleans())
def test_any_weight_is_what_python_reads(value, digits, exponent):
    spelled = f"{abs(value):.{digits}e}" if exponent else f"{abs(value):.{digits}f}"
    status, edges, _, _ = parse(f"1 2 {spelled}\n".encode(), (0, 1, 2))
    assert (
        (status, edges) == (kernels.OK, [(1, 2, float(spelled))])
        if np.isfinite(float(spelled))
        else status == kernels.NOT_FINITE
    )


@RELAXED
@given(digits=st.text("0123456789", min_size=1, max_size=30), point=st.integers(0, 30), power=st.integers(-330, 330))
def test_hard_decimals_are_what_python_reads(digits, point, power):
    spelled = f"{digits[:point]}.{digits[point:]}e{power}"
    status, edges, _, _ = parse(f"1 2 {spelled}\n".encode(), (0, 1, 2))
    if np.isfinite(float(spelled)):
        assert (status, edges) == (kernels.OK, [(1, 2, float(spelled))])
    else:
        assert status == kernels.NOT_FINITE


@pytest.mark.parametrize(
    ("weight", "flags"),
    [
        (b"5", 0),
        (b"2147483647", 0),
        (b"2147483648", kernels.SAW_LARGE_WEIGHT),
        (b"5.0", kernels.SAW_FRACTION),
        (b"5e0", kernels.SAW_FRACTION),
    ],
)
def test_what_kind_of_weights_there_were(weight, flags):
    assert parse(b"1 2 %s\n" % weight, (0, 1, 2))[3] == flags


@pytest.mark.parametrize(
    ("text", "status", "where"),
    [
        (b"1 2\n\n \n3\n", kernels.MISSING, 7),
        (b"x 2\n", kernels.BAD_SOURCE, 0),
        (b"1 2\n1 x\n", kernels.BAD_TARGET, 4),
        (b"  1\n", kernels.MISSING, 2),
        (b"1 2\r3 4\n", kernels.LONE_RETURN, 0),
        (b"1 2\r\n3 4\r\n", kernels.OK, 10),
        (b"1 2\r\r\n", kernels.OK, 6),
    ],
)
def test_the_offending_line_is_found(text, status, where):
    assert parse(text)[::2] == (status, where)


@pytest.mark.parametrize(
    ("text", "separator", "edges"),
    [
        (b"1,x 9,2\n", kernels.COMMA, [(1, 2)]),
        (b"1,,2\n", kernels.COMMA, [(1, 2)]),
        (b'1,"a,7",2\n', kernels.COMMA, [(1, 2)]),
        (b"1;x,9;2\n", kernels.SEMICOLON, [(1, 2)]),
        (b"1\tx 9\t2\n", kernels.TAB, [(1, 2)]),
        (b"1 x,9 2\n", kernels.SPACE, [(1, 2)]),
        (b"1 x,9\t2\n", kernels.SPACE, [(1, 2)]),
    ],
)
def test_fields_that_are_passed_over_end_at_the_separator(text, separator, edges):
    assert parse(text, (0, 2, -1), separator=separator)[:2] == (kernels.OK, edges)


def split(text: bytes, separator: int, columns=(0, 1, -1)):
    data = np.frombuffer(text, np.uint8)
    spans = np.empty((kernels.count_lines(data), 4), np.int64)
    status, edges, where, _ = kernels.split_string_edges(
        data, np.array(columns, np.int64), separator, NO_COMMENTS, False, LOCALE, spans, np.empty(spans.shape[0])
    )
    return status, [(text[a:b], text[c:d]) for a, b, c, d in spans[:edges]], where


@pytest.mark.parametrize(
    ("text", "separator", "edges"),
    [
        (b"a b\n", kernels.SPACE, [(b"a", b"b")]),
        (b"a,b  c;d\n", kernels.SPACE, [(b"a,b", b"c;d")]),
        (b"a b,c d\n", kernels.COMMA, [(b"a b", b"c d")]),
        (b"a b , c d \r\n", kernels.COMMA, [(b"a b", b"c d")]),
        (b' "a, b" ,"c"\n', kernels.COMMA, [(b"a, b", b"c")]),
        (b"a b\t\tc,d\n", kernels.TAB, [(b"a b", b"c,d")]),
        (b'"a" "b c"\n', kernels.SPACE, [(b"a", b"b c")]),
        (b"a,b,rest of it\n", kernels.COMMA, [(b"a", b"b")]),
    ],
)
def test_strings(text, separator, edges):
    assert split(text, separator)[:2] == (kernels.OK, edges)


@pytest.mark.parametrize("text", [b"a\n", b"a,\n", b",b\n", b'"a,b\n', b'"a"b,c\n', b'a,"b\n'])
def test_strings_that_are_wrong(text):
    assert split(text, kernels.COMMA)[0] in (kernels.BAD_SOURCE, kernels.BAD_TARGET, kernels.MISSING)


def test_copied_spans():
    text = np.frombuffer(b"abcdef", np.uint8)
    out = np.zeros(4, np.uint8)
    kernels.copy_spans(text, np.array([4, 0, 2]), np.array([6, 1, 3]), np.array([0, 2, 3, 4]), out)
    assert out.tobytes() == b"efac"


@RELAXED
@given(
    data=st.binary(max_size=60),
    columns=st.sampled_from([(0, 1, -1), (0, 1, 2), (1, 3, 0)]),
    separator=st.sampled_from(b"\t ,;"),
)
def test_no_bytes_crash_the_parsers(data, columns, separator):
    """Whatever the bytes: a status in range, no more edges than lines, no read past the end."""
    text = guarded(data + b"\n")
    lines = int(kernels.count_lines(text))
    column_array, weights = np.array(columns, np.int64), np.empty(lines)
    ids = np.empty((2, lines), np.uint64)
    parsed = kernels.parse_integer_edges(text, column_array, separator, NO_COMMENTS, False, LOCALE, *ids, weights)
    spans = np.full((lines, 4), -1, np.int64)
    found = kernels.split_string_edges(text, column_array, separator, NO_COMMENTS, False, LOCALE, spans, weights)
    for status, edges, where, _ in (parsed, found):
        assert kernels.OK <= status <= kernels.LONE_RETURN
        assert 0 <= edges <= lines
        assert 0 <= where <= text.size
    used = spans[: found[1]]
    assert (
        ((used >= 0) & (used <= text.size)).all()
        and (used[:, 0] <= used[:, 1]).all()
        and (used[:, 2] <= used[:, 3]).all()
    )
    most = int(kernels.count_fields(text))
    status, edges, alone, _, _ = kernels.parse_adjacency(
        text, NO_COMMENTS, *(np.empty(most, np.uint64) for _ in range(3))
    )
    assert kernels.OK <= status <= kernels.LONE_RETURN
    assert edges + alone <= most


@pytest.mark.parametrize("tail", ["-n", "n", "na", "-i", "+in", "-", "1e", "1e-", ".", "\r", ""])
def test_short_fields_at_the_end_of_memory(tail):
    text = guarded(f"1 2 {tail}\n".encode())
    sources, targets, weights = np.empty(1, np.uint64), np.empty(1, np.uint64), np.empty(1)
    status, edges, _, _ = kernels.parse_integer_edges(
        text, np.array([0, 1, 2]), kernels.SPACE, NO_COMMENTS, False, LOCALE, sources, targets, weights
    )
    assert status != kernels.OK and edges == 0
