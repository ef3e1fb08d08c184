"""Imports point one way: errors <- base <- kernels <- graph, link <- frontier <- programs <- ... <- cli."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "isthmus"
# A part may import itself and parts of a lower rank. Parts of one rank do not know each other.
RANKS = {
    "errors": 0,
    "checks": 1,
    "messages": 1,
    "memory": 2,
    "plugins": 2,
    "progress": 2,
    "sizes": 2,
    "threads": 2,
    "kernels": 3,
    "graph": 4,
    "link": 5,
    "frontier": 6,
    "programs": 7,
    "engines": 8,
    "cache": 9,
    "policies": 10,
    "schedule": 10,
    "devices": 11,
    "runtime": 12,
    "stream": 13,
    "report": 13,
    "networkx": 13,
    "cli": 14,
}
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
    if path.relative_to(SOURCE).parts[:3] == ("devices", "cuda", "kernels"):
        return  # kernels for GPUs
    assert not any(name.split(".")[0] in ("numba", "llvmlite") for name in imported(path))


@pytest.mark.parametrize("path", [p for p in MODULES if part_of(p) == "kernels"], ids=str)
def test_kernels_know_arrays_only(path):
    for name in imported(path):
        assert not name.startswith("isthmus.") or name.startswith("isthmus.kernels"), f"{path} imports {name}"


@pytest.mark.parametrize("path", [p for p in MODULES if "cuda" not in p.relative_to(SOURCE).parts], ids=str)
def test_only_the_chooser_knows_gpus(path):
    """Nobody outside `devices/cuda` imports it; the chooser does so by name, when a GPU is asked for."""
    for name in imported(path):
        assert not name.startswith("isthmus.devices.cuda"), f"{path} imports {name}"


ABOVE_GRAPH = [path for path in MODULES if RANKS.get(part_of(path), 0) > RANKS["graph"]]


@pytest.mark.parametrize("path", ABOVE_GRAPH, ids=str)
def test_parts_above_graph_know_snapshots_not_stores(path):
    """What they know of a graph is a Snapshot: no store, no manifest."""
    for name in imported(path):
        assert not name.startswith("isthmus.graph.store.manifest"), f"{path} imports {name}"
        assert name not in ("isthmus.graph.store.store.Store", "isthmus.graph.store.store.MemoryStore"), (
            f"{path} imports {name}"
        )
    for node in ast.walk(ast.parse(path.read_text())):
        assert not (isinstance(node, ast.Attribute) and node.attr in ("manifest", "store")), f"{path}:{node.lineno}"


@pytest.mark.parametrize("path", ABOVE_GRAPH, ids=str)
def test_private_attributes_are_those_of_self(path):
    allowed = ("self", "cls", "link") if path.name == "link.py" else ("self", "cls")  # `__new__` has no self yet
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            if ast.unparse(node) == "os._exit":  # documented, and public in spite of its name
                continue
            owner = node.value
            mine = isinstance(owner, ast.Name) and owner.id in allowed
            inherited = isinstance(owner, ast.Call) and isinstance(owner.func, ast.Name) and owner.func.id == "super"
            assert mine or inherited, f"{path}:{node.lineno}: {ast.unparse(node)}"


def test_every_imported_package_is_installed_with_isthmus():
    """No command may need an extra: the README's commands run after the install that it names."""
    project = tomllib.loads((SOURCE.parent.parent / "pyproject.toml").read_text())["project"]
    installed = {re.match(r"[\w-]+", each)[0] for each in project["dependencies"]}
    needed = (
        {name.split(".")[0] for path in MODULES for name in imported(path)} - set(sys.stdlib_module_names) - {"isthmus"}
    )
    # Asked for by name; parts of jinja2 and of numba.
    needed -= {"polars", "networkx", "pytest", "markupsafe", "llvmlite"}
    assert needed <= installed
