"""Pages from templates, each one file without scripts or external files. Every string from outside is escaped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import isthmus
from isthmus.errors import OptionError, StoreError
from isthmus.graph.store.files import refuse_address
from isthmus.graph.store.replacement import replacing
from isthmus.memory import format_size

FOLDER = Path(__file__).parent
STYLE = FOLDER / "base.html"  # the frame of all pages, with their style sheet


def check(path: str | Path) -> Path:
    """Check a report's path before a long run: raise what `write` would for a bad name or a missing folder."""
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise OptionError(f"{path}: expected a name that ends in .html")
    if not path.absolute().parent.is_dir():
        refuse_address(path, "a report")
        raise OptionError(f"{path.parent}: no such folder")
    return path


def rendered(template: str, **facts: Any) -> str:
    """A page as text."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(FOLDER)
    found = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return found.get_template(template).render(version=isthmus.__version__, size=format_size, **facts)


def written(path: Path, text: str) -> None:
    """Write a page whole or not at all."""
    try:
        with replacing(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise StoreError(f"{path}: cannot write the report: {error.strerror or error}") from error


def as_text(value: Any) -> Any:
    """The value with all its strings, nested ones too, made valid UTF-8."""
    if isinstance(value, dict):
        return {as_text(key): as_text(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [as_text(inner) for inner in value]
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value
