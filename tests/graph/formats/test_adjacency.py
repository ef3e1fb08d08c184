"""Adjacency lists as text."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from tests.naive import assert_graph, clean

import isthmus as ist
from isthmus.errors import GraphFormatError, OptionError


@pytest.fixture
def write(tmp_path):
    def write(content, name="g.adj"):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path / name

    return write


@pytest.mark.parametrize(
    "content",
    [
        "1 2 3\n2 3\n5\n",
        "1 2 3\n2 3\n5",
        "1\t2\t3\r\n2\t3\r\n5\r\n",
        "1,2,3\n2,3,\n5,\n",
        "# lists\n  1   2  3  \n\n2 3\n%\n5 \n",
    ],
)
def test_layouts(write, content):
    assert_graph(ist.read(write(content)), clean([(1, 2, None), (1, 3, None), (2, 3, None)], [5]))


@pytest.mark.parametrize("chunk", [16, 33])
def test_lines_straddle_blocks(write, sized, chunk):
    sized(adjacency_chunk=chunk)
    edges = [(u, v, None) for u in range(40) for v in range(u % 4)]
    lines = "".join(" ".join(map(str, [u, *range(u % 4)])) + "\n" for u in range(40))
    assert_graph(ist.read(write(lines)), clean(edges, range(40)))


@pytest.mark.parametrize("between", [" ", "\t", ",", " , "])
@pytest.mark.parametrize("chunk", [16, 33, 100])
def test_a_list_longer_than_a_block(write, sized, chunk, between):
    sized(adjacency_chunk=chunk)
    lines = [[7, 1], [1_000_000, *range(2000)], [3], [-5, *range(300)], [4, 7]]
    edges = [(line[0], v, None) for line in lines for v in line[1:]]
    text = "\ufeff" + "".join(between.join(map(str, line)) + "\n" for line in lines)
    assert_graph(ist.read(write(text)), clean(edges, [3]))
    assert_graph(ist.read(write(text.rstrip())), clean(edges, [3]))


def test_a_long_comment(write, sized):
    sized(adjacency_chunk=32)
    assert_graph(ist.read(write("1 2\n#no 5 list " * 1 + "3 4 " * 50 + "\n2 3\n")), clean([(1, 2, None), (2, 3, None)]))


@pytest.mark.parametrize("wrong", ["x", ",,", "2.5"])
def test_the_line_number_is_right_after_a_long_list(write, sized, wrong):
    sized(adjacency_chunk=32)
    long = "1 " + "2 3 " * 200
    with pytest.raises(GraphFormatError, match=r"g.adj:3: expected 'source target target ...' with integer ids"):
        ist.read(write(f"{long}\n5 6\n{long}{wrong} 7\n"))


def test_a_word_without_end(write, sized):
    sized(adjacency_chunk=64)
    with pytest.raises(GraphFormatError, match=r"g.adj: a word is longer than 32 bytes; are these adjacency lists"):
        ist.read(write("1 2\n3 " + "4" * 500))


def test_compressed(write):
    assert_graph(ist.read(write(gzip.compress(b"1 2\n"), "g.adj.gz")), clean([(1, 2, None)]))


@pytest.mark.parametrize("ids", [[-(2**63), -1, 2**63 - 1], [0, 2**63, 2**64 - 1]])
def test_ids_of_64_bits(write, ids):
    a, b, c = ids
    assert_graph(ist.read(write(f"{a} {b} {c}\n{c}\n")), clean([(a, b, None), (a, c, None)]))


@pytest.mark.parametrize("content", ["", "# none\n"])
def test_nothing_there(write, content):
    assert ist.read(write(content)).vertices == 0


@pytest.mark.parametrize("line", ["1 x", "x 1", "1 2.5", "1 ,, 2", "1 2\r3 4"])
def test_a_malformed_line_is_named(write, sized, line):
    sized(adjacency_chunk=32)
    with pytest.raises(GraphFormatError, match=r"g.adj:31: expected 'source target target ...' with integer ids, got "):
        ist.read(write("1 2 3\n" * 30 + line + "\n"))


def test_ids_beyond_64_bits(write):
    with pytest.raises(GraphFormatError, match=f"g.adj:2: expected ids that fit 64 bits, got '3 {2**64}'"):
        ist.read(write(f"1 2\n3 {2**64}\n"))


def test_negative_and_huge_ids_do_not_go_together(write):
    with pytest.raises(GraphFormatError, match=r"ids below 0 and above 2\*\*63 - 1"):
        ist.read(write(f"-1 2\n3 {2**63}\n"))


@pytest.mark.parametrize(("content", "wrong"), [("0 1\n4\n", 4), ("0 4\n", 4), ("-1\n", -1)])
def test_ids_outside_a_promised_count(write, content, wrong):
    with pytest.raises(GraphFormatError, match=f"expected ids from 0 to 3, got {wrong}$"):
        ist.read(write(content), vertices=4)


@pytest.mark.parametrize("options", [{"weight": 3}, {"ids": "string"}, {"source": 2}, {"header": True}])
def test_options_without_a_meaning_here(write, options):
    with pytest.raises(OptionError, match=r"does not apply|carry no weights"):
        ist.read(write("1 2\n"), **options)


def test_a_folder_is_refused(tmp_path):
    (tmp_path / "g.adj").mkdir()
    with pytest.raises(GraphFormatError, match="is a folder"):
        ist.read(tmp_path / "g.adj")


def test_a_duplicate_line_repeats_its_edges(write):
    graph = ist.read(write("1 2\n1 2\n"))
    assert (graph.edges, np.asarray(graph.neighbors(1)).tolist()) == (2, [2, 2])
