"""Every code, in both bit orders, is read as its definition says; nothing is read behind the end."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bv import Coder

from isthmus.graph.reading.bv_properties import CODES
from isthmus.kernels.text import bit_codes

KINDS = [("UNARY", 1), ("GAMMA", 1), ("DELTA", 1), ("NIBBLE", 1), ("OMEGA", 1), *(("ZETA", k) for k in (1, 2, 3, 5, 7))]
KINDS += [("GOLOMB", k) for k in (1, 3, 8, 1000)] + [("PI", k) for k in (1, 2, 3, 4)]
RELAXED = settings(max_examples=15, deadline=None)


def words_of(bits: str, little: bool) -> np.ndarray:
    data = Coder(little).packed(bits)
    padded = data + bytes(-len(data) % 8 + 8 * bit_codes.PADDING)
    return np.frombuffer(padded, "<u8" if little else ">u8").astype(np.uint64)


def read(bits: str, name: str, k: int, little: bool, count: int, end: int | None = None) -> tuple[list[int], int]:
    """(Numbers, position behind them) of a stream."""
    order, table = True if little else None, np.zeros((1, 1 << bit_codes.TABLE_BITS), np.uint32)
    bit_codes.fill_table(table[0], CODES[name], k, order)
    out = np.zeros(count, np.int64)
    at = bit_codes.read_all(
        words_of(bits, little), 0, len(bits) if end is None else end, table, np.array([[CODES[name], k]]), order, 0, out
    )
    return out.tolist(), at


@pytest.mark.parametrize("little", [False, True])
@pytest.mark.parametrize(("name", "k"), KINDS)
@RELAXED
@given(data=st.data())
def test_numbers_are_read_as_they_were_written(name, k, little, data):
    most = {"UNARY": 300, "GOLOMB": 300 * k}.get(name, (1 << 60) - 2 if name not in ("ZETA", "PI") else 1 << 45)
    numbers = data.draw(st.lists(st.one_of(st.integers(0, 20), st.integers(0, most)), max_size=30))
    bits = "".join(Coder(little).code(name, n, k) for n in numbers)
    assert read(bits, name, k, little, len(numbers)) == (numbers, len(bits))


@pytest.mark.parametrize("little", [False, True])
@pytest.mark.parametrize(("name", "k"), KINDS)
@pytest.mark.parametrize("number", [1, 5, 700, 100_000])
def test_a_code_that_the_end_cuts_is_beyond_it(name, k, little, number):
    bits = Coder(little).code(name, number, k)
    assert read(bits, name, k, little, 1) == ([number], len(bits))
    for end in range(max(len(bits) - 70, 0), len(bits)):
        assert read(bits[:end], name, k, little, 1, end)[1] > end


@pytest.mark.parametrize("little", [False, True])
@pytest.mark.parametrize(
    ("name", "k"), [("GAMMA", 1), ("DELTA", 1), ("ZETA", 3), ("NIBBLE", 1), ("OMEGA", 1), ("PI", 2)]
)
def test_numbers_beyond_62_bits_are_huge(name, k, little):
    for number in (1 << 62, 1 << 80, 1 << 200):
        bits = Coder(little).code(name, number, k) + "0" * 300
        assert read(bits, name, k, little, 1)[0] == [bit_codes.HUGE]


def test_zeros_without_an_end_are_refused_before_all_of_them_are_read():
    assert read("0" * 10_000, "GAMMA", 1, False, 1) == ([bit_codes.HUGE], 64)
    assert read("0" * 10_000, "UNARY", 1, False, 1)[1] == bit_codes.BEYOND


def test_examples_of_the_definitions():
    """From Boldi and Vigna's tables of codes, and Elias' omega."""
    big = Coder()
    assert [big.gamma(n) for n in range(4)] == ["1", "010", "011", "00100"]
    assert [big.delta(n) for n in range(4)] == ["1", "0100", "0101", "01100"]
    assert [big.zeta(n, 3) for n in (0, 1, 2, 6, 7)] == ["100", "1010", "1011", "1111", "0100000"]
    assert big.nibble(9) == "00011001"
    assert big.omega(10) == "1110110"
