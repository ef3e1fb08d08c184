"""The rules of `tests/house.py`: what is counted in parsed files. Each function says its rule.

A review of commit 43b30c1 counted with other scripts. There and here: complexity the same for every function that it
names; patches by monkeypatch 360, the same; questions about places 57 + 26, here 58 + 27; private attributes in
tests 472, here 477.
"""

from __future__ import annotations

import ast
import collections
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CROWD = 20  # files of a folder
PARAMETERS = 12
COMPLEXITY = 15
UNFORMATTED, PATCHED = "# fmt: " + "skip", "monkeypatch." + "setattr"  # in parts, as this file is counted too
PLACES = ("card", "model", "modelled", "outlasting")
MORE_PLACES = ("gpu", "device", "device_bytes", "on", "residency", "clock", "launches")  # names that could replace them
OF_A_PLACE = re.compile(
    "Cuda|Gpu|Card|Numba|Model|Device|Outlasting|Residency|Reads|Ram|Ssd|Near|Far|Overlay|Changing|Managed"
)  # what the name of a class of one place begins with
NOUNS = ("shift", "standing", "ground", "room", "desk", "board", "keepers", "signs", "arrivals")
VERBS = ("lodge", "hear", "lose", "wanted", "remembered", "recalled", "kept")
METAPHORS = NOUNS + VERBS
NOT_PRIVATE = ("_exit", "_replace", "_asdict", "_fields")  # public in spite of their names: of os and of named tuples
BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case)
Definition = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class File:
    """A file of a tree; `path` is relative to the folder that was given."""

    path: Path
    lines: list[str]
    tree: ast.Module


@dataclass(frozen=True)
class Function:
    where: str
    lines: int
    parameters: int
    complexity: int


def parsed(folder: Path) -> list[File]:
    """All Python files of a folder."""
    texts = {path: path.read_text() for path in sorted(folder.rglob("*.py"))}
    return [File(path.relative_to(folder), text.splitlines(), ast.parse(text)) for path, text in texts.items()]


def basenames(files: list[File]) -> list[str]:
    """Names of files that stand in two or more folders. `__init__.py` does not count."""
    found = collections.Counter(file.path.name for file in files if file.path.name != "__init__.py")
    return [f"{name}, {count}" for name, count in sorted(found.items()) if count > 1]


def crowded(files: list[File]) -> list[str]:
    """Folders with more than CROWD files, without folders in them and `__init__.py`."""
    found = collections.Counter(str(file.path.parent) for file in files if file.path.name != "__init__.py")
    return [f"{name}, {count}" for name, count in found.most_common() if count > CROWD]


def functions(file: File) -> Iterator[Function]:
    """Every `def` of a file, also one inside another. Parameters: all kinds, without self and cls."""
    for node in ast.walk(file.tree):
        if isinstance(node, Definition):
            given = node.args
            every = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
            count = len([each for each in every if each.arg not in ("self", "cls")])
            lines = (node.end_lineno or node.lineno) - node.lineno + 1  # without decorators
            yield Function(f"{file.path}:{node.lineno} {node.name}", lines, count, complexity(node))


def complexity(function: Definition) -> int:
    """Cyclomatic: 1, and 1 for each if, elif, conditional expression, loop, except, case, `and` and `or`.

    Also for each `for` and `if` of a comprehension. Functions inside count as part of the one around them.
    """
    found = 1
    for node in ast.walk(function):
        if isinstance(node, BRANCHES):
            found += 1
        elif isinstance(node, ast.BoolOp):
            found += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            found += 1 + len(node.ifs)
    return found


def none_tests(files: list[File], names: tuple[str, ...]) -> list[str]:
    """Where `X is None` or `X is not None` stands, for X one of these names, or an attribute so named.

    A `_` before the name does not matter.
    """
    found = []
    for file in files:
        for node in ast.walk(file.tree):
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot):
                name = getattr(node.left, "id", getattr(node.left, "attr", ""))
                if name.lstrip("_") in names and ast.unparse(node.comparators[0]) == "None":
                    found.append(f"{file.path}:{node.lineno}")
    return found


def place_classes(files: list[File]) -> list[str]:
    """Where `isinstance(..., C)` stands, for every C whose name begins as OF_A_PLACE says, also in a tuple."""
    found = []
    for file in files:
        for node in ast.walk(file.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                names = (getattr(each, "id", getattr(each, "attr", "")) for each in ast.walk(node.args[1]))
                found += [f"{file.path}:{node.lineno}" for name in names if OF_A_PLACE.match(name)]
    return found


def private(files: list[File]) -> list[tuple[bool, str]]:
    """(whether of self, where) of every access to an attribute that begins with one `_`, apart from NOT_PRIVATE."""
    found = []
    for file in files:
        for node in ast.walk(file.tree):
            if isinstance(node, ast.Attribute) and re.match("_[^_]", node.attr) and node.attr not in NOT_PRIVATE:
                owner = ast.unparse(node.value)
                found.append((owner in ("self", "cls", "super()"), f"{file.path}:{node.lineno}"))
    return found


def occurrences(folder: Path, text: str) -> int:
    """How often a text stands in the Python files of a folder."""
    return sum(path.read_text().count(text) for path in folder.rglob("*.py"))


def metaphors(files: list[File]) -> dict[str, collections.Counter[str]]:
    """For each word the names that have it as a part, with their uses.

    `Shift`, `_shift` and `HereShift` have shift, `shifting` has not. Names are those of variables, attributes,
    parameters, functions, classes, modules and keyword arguments. Words in texts do not count.
    """
    found = {word: collections.Counter[str]() for word in METAPHORS}
    for file in files:
        for name in [file.path.stem, *(name for node in ast.walk(file.tree) for name in names_of(node))]:
            for word in found.keys() & set(parts(name)):
                found[word][name] += 1
    return found


def names_of(node: ast.AST) -> list[str]:
    """The names that a node itself has."""
    own = [getattr(node, field, None) for field in ("id", "attr", "arg", "name", "asname")]
    modules = node.module.split(".") if isinstance(node, ast.ImportFrom) and node.module else []
    return [*modules, *(part for each in own if isinstance(each, str) for part in each.split("."))]


def parts(name: str) -> list[str]:
    """The words of a name, in lower case: NearMemory and near_memory have near and memory."""
    return [part.lower() for part in re.findall("[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]
