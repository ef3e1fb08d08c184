"""Mutation tests: what `tests/mutants.toml` names is there, and mutants are changes that run."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "isthmus"


@pytest.fixture
def mutants(monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = importlib.util.spec_from_file_location("mutants", TESTS / "mutants.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mutants", module)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_all_decisions_are_mutated(mutants: Any) -> None:
    entries = mutants.CONFIG["tests"]
    for entry, tests in entries.items():
        assert (SOURCE / entry).exists(), entry
        assert all((TESTS / name).is_file() for name in tests), entry
    pure = [
        path for part in ("policies", "schedule") for path in (SOURCE / part).glob("*.py") if path.name != "__init__.py"
    ]
    assert {str(path.relative_to(SOURCE)) for path in pure} <= set(entries)
    assert set(mutants.CONFIG["settings"]["interpreted"]) <= set(entries)


TEXT = """def half(n: int | None, most: int = 8) -> int | None:
    total = n // 2
    return total if total < most else most
"""


@pytest.fixture
def of_text(mutants: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    pytest.importorskip(
        "cosmic_ray", reason="mutants are cosmic-ray's, which is not installed: the extra `mutation` has it"
    )
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    (tmp_path / mutants.SOURCE).mkdir(parents=True)
    (tmp_path / mutants.SOURCE / "half.py").write_text(TEXT)
    return lambda most, seed=1: mutants.drawn("half.py", most, seed)[0]


def test_mutants_are_changes_that_compile_and_are_no_annotations(of_text: Any) -> None:
    changed = [mutant.after for mutant in of_text(1000)]
    assert len(set(changed)) == len(changed) > 20
    assert TEXT not in changed
    for text in changed:
        assert "n: int | None" in text and "-> int | None" in text
        ast.parse(text)


def test_the_same_mutants_are_drawn_each_time(of_text: Any) -> None:
    assert of_text(5) == of_text(5) == of_text(20)[:5] != of_text(5, seed=2)


def test_a_change_is_shown_with_its_line(mutants: Any) -> None:
    mutant = mutants.Mutant(mutants.SOURCE / "half.py", TEXT, TEXT.replace("<", "<="))
    assert (
        mutant.change
        == "half.py:3: return total if total < most else most  ->  return total if total <= most else most"
    )
    assert mutants.Mutant(mutants.SOURCE / "a.py", "@b\nc\n", "c\n").change == "a.py:1: @b  ->  (removed)"
