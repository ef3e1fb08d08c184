"""Imports point one way: errors <- base <- kernels <- graph, link <- frontier <- programs <- ... <- cli."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "isthmus"
# A part may import itself and parts of a lower rank. Parts of one rank do not know each other.
RANKS = {
    "errors": 0,
    "checks": 1,
    "memory": 2, "plugins": 2, "progress": 2, "sizes": 2, "threads": 2,
    "kernels": 3,
    "graph": 4,
    "link": 5,
    "frontier": 6,
    "programs": 7,
    "engines": 8,
    "cache": 9,
    "policies": 10, "schedule": 10,
    "runtime": 11,
    "stream": 12, "report": 12,
    "cli": 13,
}  # fmt: skip
MODULES = sorted(SOURCE.rglob("*.py"))


def part_of(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Full names of the modules a file imports, at any depth of nesting."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("path", [p for p in MODULES if p.name != "__init__.py" or p.parent != SOURCE], ids=str)
def test_imports_point_one_way(path):
    mine = part_of(path)
    for name in imported(path):
        if not name.startswith("isthmus."):
            continue
        theirs = name.split(".")[1]
        if theirs == "__version__":
            continue
        assert theirs in RANKS, f"{path}: {name} has no rank"
        assert theirs == mine or RANKS[theirs] < RANKS[mine], f"{path} imports {name}"


@pytest.mark.parametrize("path", [p for p in MODULES if part_of(p) != "kernels"], ids=str)
def test_only_kernels_import_numba(path):
    assert not any(name.split(".")[0] in ("numba", "llvmlite") for name in imported(path))


@pytest.mark.parametrize("path", [p for p in MODULES if part_of(p) == "kernels"], ids=str)
def test_kernels_know_arrays_only(path):
    for name in imported(path):
        assert not name.startswith("isthmus.") or name.startswith("isthmus.kernels"), f"{path} imports {name}"
