"""Docs that are derived: the table of algorithms, and that every algorithm is described. `python tests/test_docs.py`
writes the table.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

from tests import readme

from isthmus.programs.catalogue import ALGORITHMS

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "algorithms.md"
BEGIN, END = "<!-- table: python tests/test_docs.py -->\n", "<!-- end of table -->\n"


def table() -> str:
    """One row for each algorithm: its name, its options and its words."""
    rows = ["| algorithm | options | answer |\n", "|---|---|---|\n"]
    for name in ALGORITHMS:
        options = ", ".join(f"`{parameter.name}`" for parameter in ALGORITHMS[name].parameters)
        rows.append(f"| [`{name}`](#{name}) | {options or '-'} | {ALGORITHMS[name].words} |\n")
    return "".join(rows)


def test_the_table_is_that_of_the_declarations() -> None:
    text = PAGE.read_text()
    assert text[text.index(BEGIN) + len(BEGIN) : text.index(END)] == table(), "python tests/test_docs.py writes it anew"


def test_every_algorithm_has_a_section_and_is_in_the_readme() -> None:
    sections = re.findall(r"^## (\w+)$", PAGE.read_text(), re.MULTILINE)
    assert sorted(sections) == sorted(ALGORITHMS)
    row = next(line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("| algorithms |"))
    assert sorted(re.findall(r"`(\w+)`", row)) == sorted(ALGORITHMS)


def test_signatures_in_the_page_are_those_of_the_functions() -> None:
    """`name(graph, option=default, ...)` at the head of each section."""
    text = PAGE.read_text()
    for name in ALGORITHMS:
        head = re.search(rf"^## {name}\n\n`{name}\(([^`]*)\)`", text, re.MULTILINE)
        assert head is not None, name
        given = re.findall(r"(\w+)(?==|,|$)", re.sub(r"=[^,]*", "=", head[1]))
        assert given == ["graph", *(parameter.name for parameter in ALGORITHMS[name].parameters)], name


def test_examples_need_nothing_that_an_ordinary_install_lacks_and_the_page_does_not_name() -> None:
    """A page names what else its examples need by `pip install NAME ...`."""
    needs = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    known = {"isthmus", *sys.stdlib_module_names, *(re.match(r"\w+", need)[0] for need in needs)}  # type: ignore[index]
    for page in readme.PAGES:
        text = (ROOT / page).read_text()
        named = {name for line in re.findall(r"`pip install ([\w\s]+)`", text) for name in line.split()}
        for kind, body in readme.blocks(text):
            used = re.findall(r"^(?:import|from) (\w+)", body, re.MULTILINE) if kind == "python" else []
            assert set(used) <= known | named, page


def write() -> None:
    text = PAGE.read_text()
    PAGE.write_text(text[: text.index(BEGIN) + len(BEGIN)] + table() + text[text.index(END) :])


if __name__ == "__main__":
    write()
