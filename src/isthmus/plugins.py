"""Discovery of parts (algorithms, formats, engines, recipes): files of a folder, and entry points of other packages.

A part is declared in the file that holds it, by `NAME = Kind("name", ...)`, by `class Name(Kind)` with a `name`, or by
a function decorated with `@kind`, whose help text is the first paragraph of its docstring. Literals in a declaration
(its help text, its file endings, its colour) are read from the text of the file, so that help and lists import nothing.
A file is imported when its part is used.

Another package adds parts by entry points. They are looked up only for a name that is not built in, or for a complete
list. A built-in part always wins: an installed package cannot change what a built-in name means.
"""

from __future__ import annotations

import ast
import difflib
import errno
import importlib
import importlib.util
import os
import pkgutil
import re
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from isthmus.errors import PluginError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

LAST = 1 << 30  # the place of a declaration that gives none
Part = TypeVar("Part")


@dataclass(frozen=True)
class Declared:
    """A declaration as read from its file: where it is, and its literals."""

    name: str
    module: str
    attribute: str
    facts: dict[str, Any] = field(default_factory=dict)


def built_in(package: str) -> list[str]:
    """Names of the modules in a package's folder. Neither they nor the package are imported."""
    return [info.name for info in modules_of(package)]


def modules_of(package: str) -> list[pkgutil.ModuleInfo]:
    """The modules in a package's folder, which has some: Python takes a folder that cannot be read for an empty one."""
    found = list(pkgutil.iter_modules(folder_of(package)))
    if not found:
        raise OSError(errno.EIO, os.strerror(errno.EIO), f"package {package}")
    return found


def folder_of(package: str) -> list[str]:
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.submodule_search_locations is not None, package
    return list(spec.submodule_search_locations)


def declarations(package: str, kind: str) -> list[Declared]:
    """Declarations of one kind in the files of a package's folder, read without importing them."""
    found: list[Declared] = []
    for info in modules_of(package):
        spec = info.module_finder.find_spec(info.name, None)
        if spec is None:  # its file was there a moment ago: Python takes one whose state cannot be read for none
            raise OSError(errno.EIO, os.strerror(errno.EIO), f"module {package}.{info.name}")
        source = source_of(spec.loader, info.name) if spec.loader is not None else None
        candidate = source is not None and re.search(rf"= {kind}\(|\({kind}\)|^@{kind}\b", source, re.MULTILINE)
        for statement in ast.parse(source).body if source is not None and candidate else ():
            found += declared_by(statement, f"{package}.{info.name}", kind)
    return found


def source_of(loader: Any, name: str) -> str | None:
    """The source of a module; None: it has none. Raises OSError if it cannot be read."""
    try:
        return loader.get_source(name)  # type: ignore[no-any-return]
    except ImportError as error:
        raise (error.__cause__ if isinstance(error.__cause__, OSError) else error) from None


def declared_by(statement: ast.stmt, module: str, kind: str) -> Iterator[Declared]:
    """The declaration in a statement of a module, if it is one."""
    for read in (declaring_class, declaring_call, declaring_function):
        found = read(statement, kind)
        if found is not None and "name" in found[1]:
            attribute, facts = found
            yield Declared(facts["name"], module, attribute, facts)


Declaration = tuple[str, dict[str, Any]]  # the attribute of the module, and the literals


def declaring_class(statement: ast.stmt, kind: str) -> Declaration | None:
    """`class Name(Kind)` with attributes."""
    if not isinstance(statement, ast.ClassDef) or not any(is_named(base, kind) for base in statement.bases):
        return None
    assigned = {
        each.targets[0].id: each.value
        for each in statement.body
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name)
    }
    return statement.name, literals(assigned)


def declaring_call(statement: ast.stmt, kind: str) -> Declaration | None:
    """`NAME = Kind("name", ...)`."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return None
    call = statement.value
    if not isinstance(call, ast.Call) or not is_named(call.func, kind) or not call.args:
        return None
    return statement.targets[0].id, literals({"name": call.args[0], **keywords(call)})


def declaring_function(statement: ast.stmt, kind: str) -> Declaration | None:
    """A function that is decorated with `@kind` or `@kind(...)`."""
    if not isinstance(statement, ast.FunctionDef):
        return None
    for decorator in statement.decorator_list:
        if is_named(decorator.func if isinstance(decorator, ast.Call) else decorator, kind):
            words = first_paragraph(ast.get_docstring(statement) or "")
            return statement.name, {**literals(keywords(decorator)), "name": statement.name, "words": words}
    return None


def is_named(expression: ast.expr, name: str) -> bool:
    return isinstance(expression, ast.Name) and expression.id == name


def keywords(call: ast.expr) -> dict[str, ast.expr]:
    """The keyword arguments of a call; none of another expression."""
    return {word.arg: word.value for word in call.keywords if word.arg} if isinstance(call, ast.Call) else {}


def first_paragraph(text: str) -> str:
    """The first paragraph of a docstring as one line."""
    return " ".join(text.split("\n\n")[0].split())


def literals(values: dict[str, ast.expr]) -> dict[str, Any]:
    """The values that are literals."""
    found = {}
    for name, value in values.items():
        try:
            found[name] = ast.literal_eval(value)
        except ValueError:
            continue
    return found


@cache
def entry_points(group: str) -> tuple[EntryPoint, ...]:
    """Entry points of installed packages in a group, ordered by name. Takes a few milliseconds, once in a process."""
    from importlib.metadata import entry_points as installed

    return tuple(sorted(installed(group=group), key=lambda entry: (entry.name, entry.value)))


def described(entry: EntryPoint) -> str:
    """An entry point for messages: its package and its declaration."""
    package = f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "an installed package"
    return f"{package} (entry point {entry.name} = {entry.value} of {entry.group})"


class Catalogue(MutableMapping[str, Part], Generic[Part]):
    """Parts of one kind by name: built in, added in this process (`catalogue[name] = part`), or by other packages.

    Iteration and length leave other packages out; `names` has them too. `accepts` says whether an object is such a
    part, and raises PluginError or returns False if it is not. Declarations come in the order of their `place`.
    """

    def __init__(
        self,
        noun: str,
        package: str,
        kind: str,
        accepts: Callable[[Any], bool] = lambda part: True,
        place: str = "place",
    ) -> None:
        self.noun, self.group = noun, f"isthmus.{noun}s"
        self._package, self._kind, self._accepts, self._place = package, kind, accepts, place
        self._parts: dict[str, Part] = {}  # added in this process, or loaded
        self._added: dict[str, None] = {}

    @cached_property
    def declared(self) -> dict[str, Declared]:
        """The built-in parts' declarations by name."""
        found = sorted(
            declarations(self._package, self._kind), key=lambda each: (each.facts.get(self._place, LAST), each.name)
        )
        return {each.name: each for each in found}

    def __getitem__(self, name: str) -> Part:
        if name not in self._parts:
            found = self._namesake(name)
            if found is None:
                found = self._built_in(self.declared[name]) if name in self.declared else self._load(name)
            self._parts[name] = found
        return self._parts[name]

    def _namesake(self, name: str) -> Part | None:
        """A part whose file and variable have its name: found without reading the other files."""
        if name not in built_in(self._package):
            return None
        part = getattr(importlib.import_module(f"{self._package}.{name}"), name, None)
        return part if part is not None and self._accepts(part) and getattr(part, "name", None) == name else None

    def __setitem__(self, name: str, part: Part) -> None:
        self._parts[name] = part
        if name not in self.declared:
            self._added[name] = None

    def __delitem__(self, name: str) -> None:
        del self._parts[name]
        self._added.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter([*self.declared, *self._added])

    def __len__(self) -> int:
        return len(self.declared) + len(self._added)

    def __contains__(self, name: object) -> bool:
        return (
            name in self._parts
            or name in self.declared
            or any(entry.name == name for entry in entry_points(self.group))
        )

    def names(self) -> list[str]:
        """All names: built-in parts first, then those of other packages."""
        return list(dict.fromkeys([*self, *(entry.name for entry in entry_points(self.group))]))

    def words(self) -> dict[str, str]:
        """All names with their help text. Nothing is imported; a part of another package shows its package."""
        ours = {name: each.facts.get("words", "") for name, each in self.declared.items()}
        added = {name: getattr(self._parts[name], "words", "") for name in self._added}
        theirs = {
            entry.name: f"from {entry.dist.name}" if entry.dist is not None else ""
            for entry in entry_points(self.group)
        }
        return {**ours, **added, **{name: words for name, words in theirs.items() if name not in ours}}

    def unknown(self, name: str) -> str:
        """The end of an error message for an unknown name: the known names, and the one received."""
        hidden = "".join(
            f"; {self._hidden(entry)}" for entry in entry_points(self.group) if entry.name in self.declared
        )
        near = difflib.get_close_matches(str(name), self.names(), 1)
        return f"{', '.join(self.names())}, got {name!r}{f' (did you mean {near[0]}?)' if near else ''}{hidden}"

    def _built_in(self, declared: Declared) -> Part:
        part: Part = getattr(importlib.import_module(declared.module), declared.attribute)
        return part

    def _load(self, name: str) -> Part:
        """A part of another package; any failure is an error that names the package."""
        found = [entry for entry in entry_points(self.group) if entry.name == name]
        if not found:
            raise KeyError(name)
        if len(found) > 1:
            raise PluginError(
                f"{self.noun} {name!r} is declared more than once: {'; '.join(map(described, found))}; uninstall "
                f"all but one"
            )
        self._check_names(found[0])
        try:
            part = found[0].load()
        except Exception as error:
            text = f"{type(error).__name__}: {error}".rstrip(": ").splitlines()[0]
            raise PluginError(f"{self.noun} {name!r} of {described(found[0])} cannot be loaded: {text}") from error
        try:
            accepted = self._accepts(part)
        except PluginError as error:
            raise PluginError(f"{described(found[0])}: {error}") from None
        if not accepted or part.name != name:
            got = f"one named {part.name!r}" if isinstance(getattr(part, "name", None), str) else f"{part!r}"
            raise PluginError(f"{described(found[0])}: expected {self._kind} {name!r}, got {got}")
        return part  # type: ignore[no-any-return]

    def _check_names(self, entry: EntryPoint) -> None:
        """Refuse a package that also declares a part with a built-in name: that part could never be used."""
        for other in entry_points(self.group):
            same = entry.dist is not None and other.dist is not None and other.dist.name == entry.dist.name
            if same and other.name in self.declared:
                raise PluginError(self._hidden(other))

    def _hidden(self, entry: EntryPoint) -> str:
        return (
            f"{self.noun} {entry.name!r} of {described(entry)} has the name of a built-in {self.noun}; it needs "
            f"another name"
        )
