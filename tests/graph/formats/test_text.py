"""Text edge lists: every layout that people write, block boundaries, compression, and lines that are wrong."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.naive import assert_graph, clean

import isthmus as ist
from isthmus.errors import GraphFormatError, OptionError
from isthmus.graph.formats import format_of

TRIANGLE = [(1, 2, None), (2, 3, None), (3, 1, None)]


@pytest.fixture
def write(tmp_path):
    """`write(content, name)`: the path of a file with this content."""

    def write(content: str | bytes, name: str = "edges.txt") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def zstd(content: bytes) -> bytes:
    return pa.compress(content, codec="zstd", asbytes=True)


# ---- layouts


@pytest.mark.parametrize(
    "content",
    [
        "1 2\n2 3\n3 1\n",
        "1\t2\n2\t3\n3\t1\n",
        "1,2\n2,3\n3,1\n",
        "1;2\n2;3\n3;1\n",
        "1 , 2\n2 ,3\n3, 1\n",
        "1    2\n2 \t 3\n3\t\t1\n",
        "  1 2\n\t2 3\n   3 1\n",
        "1 2  \n2 3\t\n3 1 \n",
        "1 2\r\n2 3\r\n3 1\r\n",
        "1 2\n2 3\n3 1",
        "1 2\r\n2 3\r\n3 1\r",
        "\n\n1 2\n\n2 3\n \t \n3 1\n\n",
        "\r\n1 2\r\n\r\n2 3\r\n3 1\r\n",
        "# Directed graph: web.txt\n# FromNodeId\tToNodeId\n1\t2\n2\t3\n3\t1\n",
        "% a comment\n1 2\n  # indented\n2 3\n3 1\n%",
        "\ufeff1 2\n2 3\n3 1\n",
        "001 2\n2 0000000000000000000000003\n3 1\n",
        "1 2 0.5 note\n2 3 0.25\n3 1 7\n",
    ],
)
def test_layouts(write, content):
    assert_graph(ist.read(write(content)), clean(TRIANGLE))


@pytest.mark.parametrize("comments", ["", "/", "#/"])
def test_comment_characters_are_an_option(write, comments):
    lines = {"": "", "/": "// one\n", "#/": "# one\n/ two\n"}[comments]
    assert_graph(ist.read(write(f"{lines}1 2\n2 3\n3 1\n"), comments=comments), clean(TRIANGLE))


def test_minus_zero_is_zero(write):
    graph = ist.read(write(f"-0 1\n1 {2**64 - 1}\n"))
    assert graph.ids.users(np.arange(3)).tolist() == [0, 1, 2**64 - 1]


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("source,target\n1,2\n2,3\n3,1\n", {"header": True}),
        ("# made by hand\n\nsource target\n1 2\n2 3\n3 1\n", {"header": True}),
        ("to;from\n2;1\n3;2\n1;3\n", {"header": True, "source": "from", "target": "to"}),
        (
            '"the source" "the target"\n1 2\n2 3\n3 1\n',
            {"header": True, "source": "the source", "target": "the target"},
        ),
        ("time,a,b\n9,1,2\n9,2,3\n9,3,1\n", {"header": True, "source": "a", "target": "b"}),
        ("\ufeffu,v\n1,2\n2,3\n3,1\n", {"header": True, "source": "u", "target": "v"}),
        ("9 1 2\n9 2 3\n9 3 1\n", {"source": 2, "target": 3}),
        ("2 1\n3 2\n1 3\n", {"source": "2", "target": "1"}),
        ('1,Area 51,2\n2,,3\n3,"x,7,y",1\n', {"source": 1, "target": 3}),
        ("1\tNew York\t2\n2\tx\t3\n3\ty z\t1\n", {"source": 1, "target": 3}),
    ],
)
def test_headers_and_columns(write, content, options):
    assert_graph(ist.read(write(content), **options), clean(TRIANGLE))


@pytest.mark.parametrize(
    "content",
    [
        "New York,Boston\nBoston,Los Angeles\nLos Angeles,New York\n",
        "New York;Boston\nBoston;Los Angeles\nLos Angeles;New York\n",
        "New York\tBoston\nBoston\tLos Angeles\nLos Angeles\tNew York\n",
        '"New York" Boston\nBoston "Los Angeles"\n"Los Angeles" "New York"\n',
        '"New York" , "Boston"\n"Boston","Los Angeles" \r\n  "Los Angeles" ,New York\n',
    ],
)
def test_strings_with_blanks(write, content):
    cities = [("New York", "Boston", None), ("Boston", "Los Angeles", None), ("Los Angeles", "New York", None)]
    assert_graph(ist.read(write(content)), clean(cities))


def test_strings_with_other_separators_inside(write):
    graph = ist.read(write("Doe, J.\tRoe; K.\nRoe; K.\tDoe, J.\n"))
    assert_graph(graph, clean([("Doe, J.", "Roe; K.", None), ("Roe; K.", "Doe, J.", None)]))


def test_string_ids_sort_bytewise(write):
    edges = [("é", "z", None), ("Z", "a", None), ("\U0001f600", "\uffff", None), ("10", "9", None)]
    graph = ist.read(write("".join(f"{u} {v}\n" for u, v, _ in edges)))
    assert graph.ids.users(np.arange(graph.vertices)).tolist() == [
        "10",
        "9",
        "Z",
        "a",
        "z",
        "é",
        "\uffff",
        "\U0001f600",
    ]
    assert_graph(graph, clean(edges))


def test_integers_can_be_read_as_strings(write):
    graph = ist.read(write("1 10\n10 9\n"), ids="string")
    assert graph.ids.users(np.arange(3)).tolist() == ["1", "10", "9"]


def test_source_column_after_target_column_may_not_be_empty(write):
    with pytest.raises(GraphFormatError, match=r"edges.txt:2: expected 'source target'.*got 'c,'"):
        ist.read(write("b,a\nc,\n"), ids="string", source=2, target=1)


def test_ignored_columns_are_reported(write):
    report = ist.read(write("1 2 5 6\n2 3 5 6\n")).report
    assert report.reader == {"format": "text", "lines": 2, "columns_ignored": 2}


# ---- ids of every size


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        ([0, 1, 2], "dense"),
        ([0, 1, 3], "int64"),
        ([-1, 0, 1], "int64"),
        ([-(2**63), 0, 2**63 - 1], "int64"),
        ([0, 2**32 - 1, 2**32], "int64"),
        ([0, 2**63, 2**64 - 1], "uint64"),
    ],
)
def test_ids_of_64_bits(write, ids, kind):
    a, b, c = ids
    graph = ist.read(write(f"{a} {b}\n{b} {c}\n{c} {a}\n"))
    assert graph.info()["ids"] == kind
    assert_graph(graph, clean([(a, b, None), (b, c, None), (c, a, None)]))


@pytest.mark.parametrize("wrong", [2**64, -(2**63) - 1, 10**30, -(10**19)])
@pytest.mark.parametrize("column", [0, 1])
def test_ids_beyond_64_bits(write, wrong, column):
    line = f"{wrong} 1" if column == 0 else f"1 {wrong}"
    with pytest.raises(GraphFormatError, match=rf"edges.txt:2: expected ids that fit 64 bits, got '{line}'"):
        ist.read(write(f"1 2\n{line}\n"))


@pytest.mark.parametrize("apart", [0, 300])
def test_negative_and_huge_ids_do_not_go_together(write, sized, apart):
    sized(text_chunk=512)
    with pytest.raises(GraphFormatError, match=r"ids below 0 and above 2\*\*63 - 1 in one file"):
        ist.read(write(f"-1 2\n{'1 2' + chr(10)}" + "1 2\n" * apart + f"3 {2**63}\n"))


# ---- weights


@pytest.mark.parametrize(
    "weight",
    [
        "0",
        "1",
        "-0",
        "+3",
        "2.5",
        ".5",
        "5.",
        "1e3",
        "1E-3",
        "1e+2",
        "0.1",
        "123456789012345678901234567890",
        "9007199254740993",
        "0.30000000000000004",
        "1.7976931348623157e308",
        "5e-324",
        "2.2250738585072011e-308",
        "1e22",
        "1e23",
        "8.41e21",
        "0.000000000000000000000000000001234567890123456789",
        "1e-400",
        "00012.50",
    ],
)
def test_weights_are_read_as_python_reads_them(write, weight):
    graph = ist.read(write(f"1 2 {weight}\n"), weight=3)
    assert graph.edge_weights(1, 2).tolist() == [9007199254740993 if weight == "9007199254740993" else float(weight)]


@settings(max_examples=30, deadline=None)
@given(
    weights=st.lists(st.floats(0, allow_nan=False, allow_infinity=False), min_size=1, max_size=200),
    digits=st.integers(1, 25),
)
def test_any_weight_is_read_exactly(tmp_path_factory, weights, digits):
    path = tmp_path_factory.mktemp("weights") / "edges.txt"
    spelled = [f"{abs(w):.{digits}g}" for w in weights] + [repr(abs(w)) for w in weights]
    spelled = [s for s in spelled if np.isfinite(float(s))]
    path.write_text("".join(f"0 {i} {s}\n" for i, s in enumerate(spelled)))
    graph = ist.read(path, weight=3, weight_dtype="float64")
    assert graph.store.read("out.weights").tolist() == [float(s) for s in spelled]


def test_a_decimal_point_whatever_the_locale(write):
    import locale

    before = locale.setlocale(locale.LC_NUMERIC)
    for name in ("de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"):
        try:
            locale.setlocale(locale.LC_NUMERIC, name)
        except locale.Error:
            continue
        try:
            assert ist.read(write("1 2 1.23456789012345678901\n"), weight=3).edge_weights(1, 2).tolist() == [
                1.23456789012345678901
            ]
        finally:
            locale.setlocale(locale.LC_NUMERIC, before)
        return
    pytest.skip("no locale with a decimal comma is installed")


@pytest.mark.parametrize(
    ("weight", "stored"), [("3", "int32"), ("3.0", "float64"), (2**31, "int64"), (2**63, "float64")]
)
def test_the_type_of_weights(write, weight, stored):
    assert ist.read(write(f"1 2 {weight}\n"), weight=3).info()["weight_type"] == stored


@pytest.mark.parametrize("ids", ["int", "string"])
def test_whole_weights_are_exact_to_64_bits(write, sized, ids):
    sized(text_chunk=32)
    weights = [5, 2**31, 2**53 + 1, 2**62 + 3, 2**63 - 1, -(2**53) - 1]
    path = write("".join(f"0 {v} {w}\n" for v, w in enumerate(weights)) + f"0 6 {'0' * 20}7\n")
    graph = ist.read(path, weight=3, ids=ids, allow_negative=True)
    assert graph.info()["weight_type"] == "int64"
    assert graph.store.read("out.weights").tolist() == [*weights, 7]


def test_a_fraction_makes_large_weights_decimals(write, sized):
    sized(text_chunk=32)
    graph = ist.read(write(f"0 1 {2**53 + 1}\n0 2 0.5\n"), weight=3)
    assert graph.store.read("out.weights").tolist() == [2.0**53, 0.5]


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ("nan", "expected a finite weight"),
        ("NaN", "expected a finite weight"),
        ("-nan", "expected a finite weight"),
        ("inf", "expected a finite weight"),
        ("+Infinity", "expected a finite weight"),
        ("-inf", "expected a finite weight"),
        ("1e309", "expected a finite weight"),
        ("-1", r"expected a weight of at least 0 \(allow_negative=True admits others\)"),
        ("-1e-300", r"expected a weight of at least 0 \(allow_negative=True admits others\)"),
        ("n", "expected a number as weight in column 3"),
        ("-n", "expected a number as weight in column 3"),
        ("-", "expected a number as weight in column 3"),
        ("1e", "expected a number as weight in column 3"),
        ("1.2.3", "expected a number as weight in column 3"),
        ("0x10", "expected a number as weight in column 3"),
        ("1,5", "expected a number as weight in column 3"),
        ("heavy", "expected a number as weight in column 3"),
    ],
)
@pytest.mark.parametrize("ids", ["int", "string"])
def test_weights_that_are_wrong(write, ids, weight, message):
    with pytest.raises(GraphFormatError, match=rf"edges.txt:2: {message}, got '1 3 {re.escape(weight)}'"):
        ist.read(write(f"1 2 4\n1 3 {weight}\n"), weight=3, ids=ids)


def test_a_decimal_comma_is_not_cut_off(write):
    with pytest.raises(GraphFormatError, match=r"edges.csv:1: expected a number as weight in column 3, got '1;2;1,5'"):
        ist.read(write("1;2;1,5\n", "edges.csv"), weight=3)


def test_negative_weights_when_asked_for(write):
    assert ist.read(write("1 2 -1.5\n"), weight=3, allow_negative=True).edge_weights(1, 2).tolist() == [-1.5]


@pytest.mark.parametrize("ids", ["int", "string"])
def test_weight_by_name_and_by_number(write, ids):
    path = write("u,v,cost\n1,2,3\n")
    for weight in ("cost", 3, "3"):
        graph = ist.read(path, header=True, weight=weight, ids=ids)
        assert graph.edge_weights(*((1, 2) if ids == "int" else ("1", "2"))).tolist() == [3]


# ---- lines that are wrong


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("7", "expected 'source target' with integer ids"),
        ("7 ", "expected 'source target' with integer ids"),
        ("7,", "expected 'source target' with integer ids"),
        ("a 7", r"expected 'source target' with integer ids \(ids='string' takes any text\)"),
        ("7 b", r"expected 'source target' with integer ids \(ids='string' takes any text\)"),
        ("7x 8", r"expected 'source target' with integer ids \(ids='string' takes any text\)"),
        ("1.0 2", r"expected 'source target' with integer ids \(ids='string' takes any text\)"),
        ("1e3 2", r"expected 'source target' with integer ids \(ids='string' takes any text\)"),
        ("+7 8", r"expected 'source target' with integer ids \(ids='string' takes any text\)"),
        ("- 8", r"expected 'source target' with integer ids \(ids='string' takes any text\)"),
        (",7", r"expected 'source target' with integer ids \(ids='string' takes any text\)"),
        ("7,,8", r"expected 'source target' with integer ids \(ids='string' takes any text\)"),
        ("7 8\r9 10", "expected lines that end in a newline, not in a carriage return alone"),
        ("\x00\x01", r"expected 'source target' with integer ids \(ids='string' takes any text\)"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_malformed_line_is_named(write, line, message, newline):
    content = "1 2" + newline + "# comment" + newline + newline + line + newline + "3 4" + newline
    shown = re.escape(repr(line))
    with pytest.raises(GraphFormatError, match=rf"^\S*edges.txt:4: {message}, got {shown}$"):
        ist.read(write(content))


@pytest.mark.parametrize("line", ["a", '"a,b', 'a,"b', '"a"x,b'])
def test_a_malformed_line_of_strings_is_named(write, line):
    with pytest.raises(GraphFormatError, match=rf"edges.csv:2: expected 'source target', got {re.escape(repr(line))}$"):
        ist.read(write(f"x,y\n{line}\nz,x\n", "edges.csv"), ids="string")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('"",b', "an id between the quotes"),
        ('a,""', "an id between the quotes"),
        ("a,", "'source target'"),
        (",a", "'source target'"),
        ("1,", "'source target' with integer ids"),
        (",1", "'source target' with integer ids"),
    ],
)
def test_an_empty_id_is_refused_and_the_way_to_skip_it_named(write, line, expected):
    other = "1,2" if "1" in line else "x,y"
    hint = r"\(missing='skip' leaves out lines without a source or target\)"
    with pytest.raises(
        GraphFormatError, match=rf"edges.csv:2: expected {expected} {hint}, got {re.escape(repr(line))}$"
    ):
        ist.read(write(f"{other}\n{line}\n{other}\n", "edges.csv"))
    assert ist.read(write(f"{other}\n{line}\n{other}\n", "edges.csv"), missing="skip").edges == 2


def test_ids_must_be_utf8(write):
    with pytest.raises(GraphFormatError, match=r"edges.txt:3: expected ids in UTF-8, got 'b \ufffd'"):
        ist.read(write(b"a b\n# \xff\nb \xff\n"))


def test_a_header_without_the_option_says_so(write):
    with pytest.raises(
        GraphFormatError, match=r"edges.csv:1: .*header=True skips a line of names.* got 'source,target'"
    ):
        ist.read(write("source,target\n1,2\n2,3\n", "edges.csv"))


@pytest.mark.parametrize(
    "content", ["source,target\na,b\n", "# x\nTo,From\na,b\nb,c\n", '"src","dst"\na,b\n', "source,target\n"]
)
def test_names_read_as_an_edge_are_noticed(write, content):
    with pytest.warns(
        ist.IsthmusWarning, match=r"edges.csv:[12]: '.*' looks like names of columns .*; give header=True"
    ):
        ist.read(write(content, "edges.csv"))


def test_words_above_numbers_are_noticed(write):
    with pytest.warns(ist.IsthmusWarning, match=r"edges.csv:1: 'person,friend' looks like names of columns"):
        ist.read(write("person,friend\n1,2\n2,3\n", "edges.csv"), ids="string")


@pytest.mark.parametrize("content", ["u,v\nv,w\n", "from,here\nhere,there\n", "a,b\n1,c\n"])
def test_other_words_are_ids(write, recwarn, content):
    ist.read(write(content, "edges.csv"))
    assert len(recwarn) == 0


def test_a_header_below_comments_is_hinted_at(write):
    with pytest.raises(GraphFormatError, match=r"edges.csv:2: .*header=True skips a line of names.* got 'a,b'"):
        ist.read(write("# comment\na,b\n1,2\n2,3\n", "edges.csv"))
    with pytest.raises(
        GraphFormatError, match=r"edges.csv:1: .*weight in column 3 \(header=True skips a line of names\)"
    ):
        ist.read(write("a,b,weight\nx,y,2\n", "edges.csv"), weight=3)


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        ("weight,dst,src", (2, 1, 0)),
        ("From,To,weight", (0, 1, 2)),
        ("x,target,source", (2, 1, None)),
        ("a,b,c", (0, 1, None)),
    ],
)
def test_a_header_tells_the_columns(write, names, columns):
    rows = [(1, 2, 3), (4, 5, 6)]
    edges = [tuple(None if column is None else row[column] for column in columns) for row in rows]
    path = write(names + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows), "edges.csv")
    assert_graph(ist.read(path, header=True), clean(edges))


def test_a_header_gives_way_to_options(write):
    path = write("source,target,weight\n1,2,3\n", "edges.csv")
    assert_graph(ist.read(path, header=True, source="weight", target="source"), clean([(3, 1, None)]))
    assert_graph(ist.read(path, header=True, weight="none"), clean([(1, 2, None)]))


def test_a_column_that_may_hold_weights_is_noticed(write, recwarn):
    with pytest.warns(
        ist.IsthmusWarning, match=r"edges.txt: one further column ignored; weight=3 reads a column as the weight"
    ):
        assert not ist.read(write("1 2 5\n")).weighted
    ist.read(write("1 2 5\n"), weight="none")
    ist.read(write("1 2 5 6\n"), weight=3)
    assert len(recwarn) == 0


def test_columns_that_are_not_there(write):
    with pytest.raises(
        GraphFormatError, match=r"edges.txt:1: expected 'source target weight' with integer ids in columns 1, 2, 4"
    ):
        ist.read(write("1 2 3\n"), weight=4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weight": "cost"}, "column 'cost' is a name; give header=True"),
        ({"weight": "cost", "header": True}, "no column 'cost'; the header has u, v"),
        ({"source": 0}, "columns are counted from 1, got 0"),
        ({"source": -1}, "columns are counted from 1, got -1"),
        ({"source": 2}, "source, target and weight must be different columns"),
        ({"weight": 1}, "source, target and weight must be different columns"),
    ],
)
def test_wrong_columns(write, options, message):
    with pytest.raises(OptionError, match=message):
        ist.read(write("u v\n1 2\n"), **options)


def test_a_long_line_is_shortened(write):
    with pytest.raises(GraphFormatError, match=r"got 'x{77}\.\.\.'$"):
        ist.read(write("1 2\n2 3\n" + "x" * 500 + " 1\n"))


def test_a_line_without_end(write, sized):
    sized(text_chunk=512)
    with pytest.raises(GraphFormatError, match="a line is longer than 512 bytes; is this a text edge list"):
        ist.read(write("1" * 2000))


# ---- block boundaries


@pytest.mark.parametrize("chunk", [16, 17, 23, 64, 1000])
@pytest.mark.parametrize("end", ["\n", "", "\r\n"])
def test_lines_straddle_blocks(write, sized, chunk, end):
    pairs = [(i * 37 % 101, i * 53 % 89) for i in range(300)]
    path = write("\n".join(f"{u} {v}" for u, v in pairs) + end)
    sized(text_chunk=chunk)
    assert_graph(ist.read(path, threads=2), clean([(u, v, None) for u, v in pairs]))


def test_a_file_that_is_a_whole_number_of_blocks(write, sized):
    sized(text_chunk=16)
    assert_graph(ist.read(write("1 2\n" * 8)), clean([(1, 2, None)] * 8))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("bad", [1, 5, 40, 99, 100])
@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize("ids", ["int", "string"])
def test_the_line_number_is_right_in_any_block(write, sized, threads, bad, header, ids):
    lines = [f"{n} {n + 1}" for n in range(100)]
    lines[bad - 1] = "oops"
    if header:
        lines = ["# first", "", "u v", *lines]
    sized(text_chunk=64)
    line = bad + (3 if header else 0)
    with pytest.raises(GraphFormatError, match=rf"edges.txt:{line}: expected 'source target'.*, got 'oops'"):
        ist.read(write("\n".join(lines)), header=header, threads=threads, ids=ids)


def test_the_first_of_several_bad_lines_is_named(write, sized):
    sized(text_chunk=64)
    with pytest.raises(GraphFormatError, match=r"edges.txt:51: "):
        ist.read(write("1 2\n" * 50 + "one\n" + "1 2\n" * 20 + "two\n"), threads=2)


def test_wide_ids_in_a_later_block(write, sized):
    sized(text_chunk=64)
    edges = [(n, n + 1, None) for n in range(50)] + [(3, 2**40, None), (-7, 3, None)]
    assert_graph(ist.read(write("".join(f"{u} {v}\n" for u, v, _ in edges))), clean(edges))


# ---- compressed


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("edges.txt.gz", gzip.compress),
        ("edges.csv.GZ", gzip.compress),
        ("edges.tsv.zst", zstd),
        ("edges.gz", gzip.compress),
        ("edges.txt.gz", lambda data: gzip.compress(data[:6]) + gzip.compress(data[6:])),
        ("edges.txt.zst", lambda data: zstd(data[:6]) + zstd(data[6:])),
    ],
)
def test_compressed_files(write, name, pack):
    assert_graph(ist.read(write(pack(b"1 2\n2 3\n3 1\n"), name)), clean(TRIANGLE))


@pytest.mark.parametrize(("name", "pack"), [("edges.txt.gz", gzip.compress), ("edges.txt.zst", zstd)])
@pytest.mark.parametrize("cut", [1, 9, 200])
def test_truncated_compressed_files(write, tmp_path, name, pack, cut):
    random = np.random.default_rng(1).integers(0, 10**6, (2000, 2))
    whole = pack("".join(f"{u} {v}\n" for u, v in random).encode())
    path = write(whole[:-cut], name)
    with pytest.raises(GraphFormatError, match=rf"{name}: cannot read: .*"):
        ist.ingest(path, tmp_path / "g.isthmus")
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_damaged_gzip(write):
    random = np.random.default_rng(1).integers(0, 10**6, (2000, 2))
    whole = bytearray(gzip.compress("".join(f"{u} {v}\n" for u, v in random).encode()))
    whole[len(whole) // 2] ^= 0x10
    with pytest.raises(GraphFormatError, match=r"edges.txt.gz(: cannot read|:\d+: expected)"):
        ist.read(write(bytes(whole), "edges.txt.gz"))


def test_not_gzip_at_all(write):
    with pytest.raises(GraphFormatError, match=r"edges.txt.gz: cannot read: "):
        ist.read(write("1 2\n", "edges.txt.gz"))


def test_an_empty_file_is_no_gzip_file(write):
    with pytest.raises(GraphFormatError, match=r"edges.txt.gz: cannot read: "):
        ist.read(write("", "edges.txt.gz"))


@pytest.mark.parametrize(("name", "pack"), [("bomb.txt.gz", gzip.compress), ("bomb.txt.zst", zstd)])
def test_a_decompression_bomb_is_stopped(write, sized, name, pack):
    sized(free_expansion=1 << 16, text_chunk=1 << 14)
    path = write(pack(b"1 2\n" * 500_000), name)
    with pytest.raises(GraphFormatError, match=rf"{name}: \d+ bytes decompress to more than \d+; .*max_expansion="):
        ist.read(path, max_expansion=20)
    assert ist.read(path, max_expansion=100_000).edges == 500_000


def test_the_cap_leaves_small_files_alone(write):
    assert ist.read(write(gzip.compress(b"1 2\n" * 100_000), "edges.txt.gz"), max_expansion=1).edges == 100_000


# ---- nothing there


@pytest.mark.parametrize("content", ["", "\n", "# only\n% comments\n", "\n \n\t\n", "\ufeff", "\r\n"])
@pytest.mark.parametrize("ids", ["auto", "string"])
def test_no_edges(write, tmp_path, content, ids):
    graph = ist.ingest(write(content), tmp_path / "g.isthmus", ids=ids)
    assert (graph.vertices, graph.edges, graph.arcs) == (0, 0, 0)
    assert graph.report.warnings == [f"{tmp_path / 'edges.txt'}: no edges"]
    assert ist.verify(graph.path).ok


def test_no_edges_but_vertices(write):
    assert ist.read(write("# none\n"), vertices=4).vertices == 4


def test_a_header_and_nothing_else(write):
    assert ist.read(write("u v\n"), header=True).vertices == 0
    with pytest.raises(GraphFormatError, match="expected a header line, found none"):
        ist.read(write("# comment\n"), header=True)


@pytest.mark.parametrize(("line", "wrong"), [("0 4", 4), ("-3 1", -3), (f"{2**63} 1", 2**63)])
def test_ids_outside_a_promised_count(write, line, wrong):
    with pytest.raises(GraphFormatError, match=rf"edges.txt: expected ids from 0 to 3, got {wrong}$"):
        ist.read(write(f"0 1\n{line}\n"), vertices=4)


# ---- which format


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.txt", "text"),
        ("a.TXT.GZ", "text"),
        ("a.csv.zst", "text"),
        ("noending", "text"),
        ("a.b.wel", "text"),
        ("a.parquet", "parquet"),
        ("a.feather", "arrow"),
        ("a.properties", "graphalytics"),
        ("a.e", "graphalytics"),
        ("a.adj", "adjacency"),
        ("a.wsg", "gapbs"),
        ("a.isthmus", "isthmus"),
        ("a.mtx.gz", "matrix-market"),
        ("a.co", "dimacs"),
        ("a.sgr", "galois"),
        ("a.bwcsr", "subway"),
        ("a.ligra", "ligra"),
        ("a.graph", "metis"),
        ("a.graphml", "graphml"),
    ],
)
def test_the_ending_tells_the_format(name, expected):
    assert format_of(Path(name)) == expected


def test_a_folder_of_text_is_refused(tmp_path):
    (tmp_path / "edges.txt").mkdir()
    with pytest.raises(GraphFormatError, match="is a folder; expected a text file"):
        ist.read(tmp_path / "edges.txt")


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(GraphFormatError, match="expected a folder of Parquet or Arrow parts, found nothing"):
        ist.read(tmp_path)


def test_the_third_column_of_a_wel_file_is_its_weight(tmp_path):
    path = tmp_path / "g.wel"
    path.write_text("0 1 5\n1 2 6\n")
    graph = ist.read(path)
    assert graph.weighted
    assert graph.edge_weights(1, 2).tolist() == [6]


@pytest.mark.parametrize("ending", [".bz2", ".xz", ".zip"])
def test_what_is_no_edge_list_is_refused_by_its_ending(tmp_path, ending):
    path = tmp_path / f"g{ending}"
    path.write_text("0 1\n")
    with pytest.raises(GraphFormatError, match=f"g{ending}: .*format='text'"):
        ist.read(path)
    assert ist.read(path, format="text").edges == 1
