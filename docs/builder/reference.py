"""The Python reference as Markdown: signatures, words and fields of every public name, from the source.

Docstrings are Markdown, so they are put into MyST's directives of the Python domain as they are. Options of an
algorithm come from its declaration, which help on the shell uses too. `pages.py` says what is on which page.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

from docs.builder.pages import ALGORITHMS, INTERNAL, LIVE, PAGES, Page, Section
from docs.builder.signatures import signature_of, type_text
from docs.builder.source_comments import fields_of

import isthmus
from isthmus.programs.algorithm import Algorithm
from isthmus.programs.catalogue import ALGORITHMS as CATALOGUE

DATA = {  # public names that have no docstring
    "Vertex": "The type of an algorithm's parameter that is a vertex: the shell turns its argument into one of the "
    "graph's ids."
}
OPTIONS = {  # what **options stands for, by its type
    "RunOptions": "`options` are [those of every run](runs.md#options-of-every-run).",
    "SessionOptions": "`options` are [those of every run](runs.md#options-of-every-run): `device` to `far`.",
    "CallOptions": "`options` are [those of a call](runs.md#options-of-every-run): from `watch` on.",
}


def pages() -> dict[str, str]:
    """The text of every page, by its name."""
    return {name: page_text(page) for name, page in PAGES.items()}


def page_text(page: Page) -> str:
    parts = [f"# {page.title}", page.words, *(section_text(section) for section in page.sections)]
    return "\n\n".join(part for part in parts if part) + "\n"


def section_text(section: Section) -> str:
    parts = [f"## {section.title}", *([section.words] if section.words else [])]
    parts += [option_list(of_path(path)) for path in section.fields]
    parts += [entry(name, getattr(isthmus, name)) for name in section.names]
    parts += [entry(path.split(":")[1], of_path(path), path.split(":")[0]) for path in section.classes]
    parts += [algorithm_entry(CATALOGUE[name]) for name in CATALOGUE.declared] if section.all_of == ALGORITHMS else []
    parts += [live_entry(title, algorithm) for title, algorithm in live().items()] if section.all_of == LIVE else []
    return "\n\n".join(parts)


def public_names() -> set[str]:
    """The names that `import isthmus` offers, without those of plugins."""
    return {name for name in isthmus.__all__ if name in CATALOGUE.declared or name not in CATALOGUE} - {
        "__version__"
    } | set(live())


def live() -> dict[str, Algorithm]:
    """Algorithms that a stream keeps current, by the names that users give them by."""
    found = [CATALOGUE[name] for name in CATALOGUE.declared]
    return {each.live.title: each for each in found if each.live is not None}


def described(page: str) -> list[str]:
    """The public names that a page describes."""
    return [name for section in PAGES[page].sections for name in [*section.names, *names_of(section.all_of)]]


def names_of(kind: str) -> list[str]:
    return {ALGORITHMS: list(CATALOGUE.declared), LIVE: list(live())}.get(kind, [])


def of_path(path: str) -> Any:
    module, name = path.split(":")
    return getattr(importlib.import_module(module), name)


def directive(kind: str, head: str, content: str, ticks: int = 4) -> str:
    fence = "`" * ticks
    return f"{fence}{{py:{kind}}} {head}\n\n{content}\n{fence}"


def entry(name: str, value: Any, module: str = "isthmus") -> str:
    """A function, a class or another public name."""
    where = f"{module}.{name}"
    if inspect.isclass(value):
        return class_entry(where, value)
    if name in DATA:
        return directive("data", where, DATA[name])
    return directive("function", where + signature_of(value), with_options(value))


def with_options(function: Any) -> str:
    """A docstring, and what its `**options` are."""
    return "\n\n".join(
        [
            words(function),
            *(text for kind, text in OPTIONS.items() if f"Unpack[{kind}]" in annotation_of_options(function)),
        ]
    )


def annotation_of_options(function: Any) -> str:
    given = inspect.signature(function).parameters.values()
    return " ".join(str(each.annotation) for each in given if each.kind is each.VAR_KEYWORD)


def words(value: Any) -> str:
    """The docstring, which must exist."""
    found = inspect.getdoc(value)
    assert found, f"{value} has no docstring"
    return found


def class_entry(where: str, cls: type) -> str:
    """A class with its fields, properties and methods."""
    name = cls.__name__
    head = where
    if name in ("State", "Functions", "Column", "Option", "Answer"):  # classes that users make themselves
        head += signature_of(cls)
    parts = [words(cls)]
    if issubclass(cls, isthmus.IsthmusError):
        parts.append(f"Exit code on the shell: {cls.exit_code}.")
    parts += [
        directive("attribute", f"{field}\n:type: {kind}", comment, 3) for field, (kind, comment) in fields(cls).items()
    ]
    parts += [member_entry(member, value) for member, value in members(cls)]
    return directive("exception" if issubclass(cls, Exception) else "class", head, "\n\n".join(parts), 5)


def fields(cls: type) -> dict[str, tuple[str, str]]:
    return {
        name: told
        for name, told in fields_of(cls).items()
        if not name.startswith("_") and name not in INTERNAL.get(cls.__name__, ())
    }


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties: of the class and of those it is made from, in the order of the source."""
    mine = [each for each in cls.__mro__ if each.__module__.startswith("isthmus.") and not issubclass(cls, Exception)]
    seen = {name for each in mine for name in INTERNAL.get(each.__name__, ())}
    if len(mine) > 1 and mine[1].__name__ == "Result":
        mine = mine[:1]  # what differs from the class that is described beside it
    for each in mine:
        for name, value in vars(each).items():
            if name.startswith("_") or name in seen:
                continue
            if isinstance(value, property) or inspect.isfunction(value) or isinstance(value, classmethod):
                seen.add(name)
                yield name, value


def member_entry(name: str, value: Any) -> str:
    if isinstance(value, property):
        kind = type_text(inspect.signature(value.fget).return_annotation)  # type: ignore[arg-type]
        return directive("property", f"{name}" + (f"\n:type: {kind}" if kind else ""), words(value))
    function = value.__func__ if isinstance(value, classmethod) else value
    return directive("method", name + signature_of(function, method=True), with_options(function))


def option_list(cls: type) -> str:
    """The fields of a class that holds options, as a list."""
    rows = [
        f"| `{name}` | `{kind}` | {comment} |".replace("str | ", "str \\| ")
        for name, (kind, comment) in fields(cls).items()
    ]
    return "\n".join(["| option | type | |", "|---|---|---|", *(escaped(row) for row in rows)])


def escaped(row: str) -> str:
    """A row of a table whose code may contain bars."""
    cells = row.split("`")
    return "`".join(cell.replace("\\|", "|").replace("|", "\\|") if at % 2 else cell for at, cell in enumerate(cells))


def algorithm_entry(algorithm: Algorithm) -> str:
    """An algorithm: its docstring, the help texts of its options, and where more is said."""
    given = ", ".join(["graph: Graph", *map(str, algorithm.parameters), "**options"])
    rows = [f":param {parameter.name}: {parameter.option.help}" for parameter in algorithm.parameters]
    more = f"More, with an example: [{algorithm.name}](../algorithms.md#{algorithm.name})."
    content = "\n\n".join([words(algorithm.function), *(["\n".join(rows)] if rows else []), more])
    return directive("function", f"isthmus.{algorithm.name}({given}) -> Result", content)


def live_entry(title: str, algorithm: Algorithm) -> str:
    """A program that a stream keeps current."""
    assert algorithm.live is not None
    taken = list(inspect.signature(algorithm.live.program).parameters.values())[1:]
    given = ", ".join([*(parameter_head(each) for each in taken), "name=None"])
    return directive("function", f"isthmus.{title}({given})", words(getattr(isthmus, title)))


def parameter_head(parameter: inspect.Parameter) -> str:
    return parameter.name if parameter.default is inspect.Parameter.empty else f"{parameter.name}={parameter.default!r}"
