"""Engines by name: those of this folder, and those of other packages (entry points `isthmus.engines`).

Policies choose engines by code, an integer that fits arrays. Built-in engines have fixed codes; another engine gets the next
one when it is first asked for, so its code means the same in one process only.
"""

from __future__ import annotations

from isthmus.engines.engine import Engine
from isthmus.errors import PluginError
from isthmus.plugins import Catalogue

NOTHING = 0  # the choice of no engine
LAST_CODE = 254  # choices are kept as bytes, and 255 means unknown


def is_engine(part: object) -> bool:
    return isinstance(part, type) and issubclass(part, Engine)


ENGINES: Catalogue[type[Engine]] = Catalogue("engine", "isthmus.engines", "Engine", is_engine, "code")
_OTHERS: dict[str, int] = {}  # codes that were given out


def code_of(name: str) -> int:
    """The number that policies choose an engine by."""
    if name in ENGINES.declared:
        return int(ENGINES.declared[name].facts["code"])
    if name not in _OTHERS:
        engine(name)
        code = max(NAMES) + 1
        if code > LAST_CODE:
            raise PluginError(f"engine {name!r} is one too many: there is room for {LAST_CODE}")
        _OTHERS[name], NAMES[code] = code, name
    return _OTHERS[name]


def engine(name: str) -> type[Engine]:
    """The engine of that name; a clear error where there is none."""
    try:
        return ENGINES[name]
    except KeyError:
        raise PluginError(f"engine: expected one of {ENGINES.unknown(name)}") from None


def colour_of(name: str) -> str:
    """What an engine is drawn in; read without importing it where it is built in."""
    if name in ENGINES.declared:
        return str(ENGINES.declared[name].facts["colour"])
    return ENGINES[name].colour if name in ENGINES else Engine.colour


NAMES: dict[int, str] = {code_of(name): name for name in ENGINES.declared}  # of engines with a code, in the order of drawings
