"""Docs that are derived: the table of algorithms, that every algorithm is described, the picture of the parts, and that
all files and modules that pages name exist. `python tests/test_docs.py` writes the table.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from docs.builder import parts
from tests import readme

from isthmus.programs.catalogue import ALGORITHMS

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "algorithms.md"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "guide").glob("*.md")])
FOLDERS = ("src/isthmus", "tests", "docs", "benchmarks", "examples")  # paths in pages begin there, or at the root
PARTS = "|".join(sorted(path.name for path in (ROOT / "src" / "isthmus").iterdir() if path.is_dir()))
FILE = re.compile(r"`([\w./-]+\.py)\b[^`\n]*`")
FOLDER = re.compile(rf"`((?:src|tests|docs|benchmarks|examples|{PARTS})/(?:[\w-]+/)*)`")
LINK = re.compile(r"\]\((?:\.\./)+((?:src|tests|benchmarks|examples)/[^)#]+)\)")
MODULE = re.compile(r"\b((?:isthmus|tests|benchmarks)(?:\.\w+){2,})")
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


def test_the_picture_of_the_parts_is_that_of_the_imports() -> None:
    assert parts.PICTURE.read_text() == parts.drawn(parts.imports()), "python docs/builder/parts.py draws it anew"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_and_modules_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    if page.name == "networkx.md":  # its tables name the files of NetworkX's own tests
        text = re.sub(r"^\|.*$|`test_\w+\.py`", "", text, flags=re.MULTILINE)
    assert list(missing(text)) == []


def missing(text: str) -> Iterator[str]:
    """The files, folders and modules of this project that a text names and that do not exist."""
    known = {path.name for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    for name in FILE.findall(text):
        if not (is_there(name) if "/" in name else name in known):
            yield name
    yield from (name for name in FOLDER.findall(text) + LINK.findall(text) if not is_there(name))
    yield from (name for name in MODULE.findall(text) if not is_module(name.split(".")))


def is_there(name: str) -> bool:
    return any((ROOT / folder / name).exists() for folder in ("", *FOLDERS))


def is_module(words: list[str]) -> bool:
    """Whether a dotted name leads to a module, and no further than to a member of a member there."""
    root = ROOT / "src" if words[0] == "isthmus" else ROOT
    paths = [root.joinpath(*words[:count]) for count in range(len(words), 1, -1)]
    return paths[0].is_dir() or any(path.with_suffix(".py").is_file() for path in paths[:3])


def test_a_file_that_does_not_exist_is_found() -> None:
    text = "`runtime/loop.py: Loop`, `loop.py`, `cache/`, isthmus.devices.choose and isthmus.memory.Budget exist"
    assert list(missing(text)) == []
    text = "`runtime/desk.py`, `desk.py: Desk`, `kernels/cuda/`, [this](../src/isthmus/none.py), "
    text += "isthmus.link.cuda and tests.none.such do not"
    gone = [
        "runtime/desk.py",
        "desk.py",
        "kernels/cuda/",
        "src/isthmus/none.py",
        "isthmus.link.cuda",
        "tests.none.such",
    ]
    assert list(missing(text)) == gone


def write() -> None:
    text = PAGE.read_text()
    PAGE.write_text(text[: text.index(BEGIN) + len(BEGIN)] + table() + text[text.index(END) :])


if __name__ == "__main__":
    write()
