"""The table of functions in docs/networkx.md is that of `networkx/info.py`. `python tests/networkx/test_docs.py` writes
it.
"""

from __future__ import annotations

from pathlib import Path

from isthmus.networkx.info import FUNCTIONS

PAGE = Path(__file__).parent.parent.parent / "docs" / "networkx.md"
BEGIN, END = "<!-- table: python tests/networkx/test_docs.py -->\n", "<!-- end of table -->\n"


def table() -> str:
    return "| function | |\n|---|---|\n" + "".join(f"| `{name}` | {words} |\n" for name, words in FUNCTIONS.items())


def test_the_table_is_that_of_the_backend() -> None:
    text = PAGE.read_text()
    assert text[text.index(BEGIN) + len(BEGIN) : text.index(END)] == table(), (
        "python tests/networkx/test_docs.py writes it anew"
    )


def write() -> None:
    text = PAGE.read_text()
    PAGE.write_text(text[: text.index(BEGIN) + len(BEGIN)] + table() + text[text.index(END) :])


if __name__ == "__main__":
    write()
