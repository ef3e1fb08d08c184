"""How pages are followed: what counts as a command, and what must be printed (`tests/readme.py`)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests import readme

ROOT = Path(__file__).parent.parent
NOT_RUN = {"docs/coming-from.md"}  # pages with code of libraries that are not installed


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        (["a", "b"], ["a", "b"], True),
        (["a"], ["a", "b"], False),
        (["a", "..."], ["a", "b", "c"], True),
        (["...", "c"], ["a", "b", "c"], True),
        (["...", "c"], ["a", "c", "b"], False),
        (["took ... s"], ["took 0.123 s"], True),
        (["took ... s"], ["took 0.123 m"], False),
        (["(a.b)"], ["(aXb)"], False),
        (["a  "], ["a"], True),
        (["time         0.5 s (I/O wait 0.1)"], ["time         2 s"], True),
        (["time is short"], ["time is long"], False),
        (["a"], ["note: compiling bfs", "a"], True),
    ],
)
def test_dots_stand_for_anything_and_nothing_else_does(shown: list[str], printed: list[str], same: bool) -> None:
    assert readme.is_as_shown(shown, printed) is same


def test_commands_and_what_is_shown_behind_them() -> None:
    first, second, third = readme.steps("console", "$ echo a \\\n  b\na b\n$ make demo\n$ false\nerror: no\n$ true\n")
    assert (first.command, first.printed, first.fails) == ("echo a    b", ["a b"], False)
    assert (second.command, second.printed, second.fails) == ("false", ["error: no"], True)
    assert (third.command, third.printed) == ("true", [])


@pytest.mark.parametrize(
    ("kind", "body", "wrong"),
    [
        ("console", "$ echo a\na\n", ""),
        ("console", "$ echo a\nb\n", "shown:\nb"),
        ("console", "$ false\n", "exit code 1"),
        ("console", "$ echo 'error: no' >&2; exit 3\nerror: no\n", ""),
        ("console", "$ echo 'error: no' >&2\nerror: no\n", "exit code 0"),
        ("python", "print(1)\n#> 1\n", ""),
        ("python", "print(1)\n#> 2\n", "shown:\n2"),
        ("python", "raise ValueError('why')\n#! ValueError: why\n", ""),
        ("python", "raise ValueError('other')\n#! ValueError: why\n", "shown:\nValueError: why"),
        ("python", "raise ValueError('two\\nlines')\n#! ValueError: two\n#! lines\n", ""),
        ("python", "pass\n#! ValueError: why\n", "exit code 0"),
    ],
)
def test_a_step_is_wrong_if_it_prints_or_ends_otherwise(kind: str, body: str, wrong: str, tmp_path: Path) -> None:
    (step,) = readme.steps(kind, body)
    found = step.wrong(tmp_path)
    assert found.startswith(wrong) and bool(found) == bool(wrong)


def test_a_page_with_a_wrong_step_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert readme.follow(("page", "```console\n$ true\n$ false\n```\n")) == (2, 1)
    assert "FAILED" in capsys.readouterr().out


def test_every_page_is_followed() -> None:
    assert {"README.md", "docs/jobs.md", "docs/plugins.md", "docs/guide/troubleshooting.md"} <= set(readme.PAGES)


def test_code_that_is_not_run_is_marked_as_such() -> None:
    """Blocks of the kind `py` are not run: only for other libraries, and their first line says so."""
    for page in readme.PAGES:
        for body in re.findall(r"^```py\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE):
            assert page in NOT_RUN, page
            assert re.match(r"# (cuGraph|NetworKit|GraphFrames) \(not run\)", body), body


def test_names_in_the_table_of_libraries_are_those_of_the_examples() -> None:
    """The first table of docs/coming-from.md: a name in code is used in an example of its library."""
    text = (ROOT / "docs" / "coming-from.md").read_text()
    header, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")
    ]
    for at, library in enumerate(header):
        if library == "job":
            continue
        mine = [
            body
            for _, body in re.findall(r"^```(py|python)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
            if is_of(library, body)
        ]
        assert mine, library
        for row in rows:
            for name in re.findall(r"`([\w=]+)`", row[at]):
                assert any(name in body for body in mine), (library, name)


def is_of(library: str, body: str) -> bool:
    first = {"Isthmus": "import isthmus", "NetworkX": "import networkx"}.get(library, f"# {library}")
    return body.startswith(first)
