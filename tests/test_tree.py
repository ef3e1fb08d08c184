"""The tree of tests mirrors the source."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "isthmus"
OF_PARTS = sorted(path for path in TESTS.glob("*/**/test_*.py") if (SOURCE / path.relative_to(TESTS).parts[0]).is_dir())


@pytest.mark.parametrize("path", OF_PARTS, ids=str)
def test_a_file_is_named_for_the_source_it_tests_or_names_it(path: Path) -> None:
    """engines/test_filter.py tests engines/filter.py. A file that tests several names them in its docstring:
    `engines/filter.py`.
    """
    place = path.relative_to(TESTS)
    if not (SOURCE / place.with_name(place.name.removeprefix("test_"))).exists():
        named = re.findall(r"`([\w/]+\.py)`", ast.get_docstring(ast.parse(path.read_text())) or "")
        assert named, f"{place} mirrors no source file, and its docstring names none"
        assert all((SOURCE / name).exists() for name in named), f"{place}: {named}"
