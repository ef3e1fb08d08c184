"""Engines by name: those of this folder, and those of other packages (entry points `isthmus.engines`).

Policies choose engines by code, an integer, so that choices are arrays. Built-in engines have fixed codes. Another
engine gets the next free code when it is first used, so its code is valid in one process only.
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
_OTHERS: dict[str, int] = {}  # codes of engines that are not built in


def code_of(name: str) -> int:
    """The code by which policies choose an engine."""
    if name in ENGINES.declared:
        return int(ENGINES.declared[name].facts["code"])
    if name not in _OTHERS:
        engine(name)
        code = max(NAMES) + 1
        if code > LAST_CODE:
            raise PluginError(f"engine {name!r}: too many engines, expected at most {LAST_CODE}")
        _OTHERS[name], NAMES[code] = code, name
    return _OTHERS[name]


def engine(name: str) -> type[Engine]:
    """The engine of that name; PluginError if there is none."""
    try:
        return ENGINES[name]
    except KeyError:
        raise PluginError(f"engine: expected one of {ENGINES.unknown(name)}") from None


def colour_of(name: str) -> str:
    """The colour of an engine in drawings; a built-in engine is not imported for it."""
    if name in ENGINES.declared:
        return str(ENGINES.declared[name].facts["colour"])
    return ENGINES[name].colour if name in ENGINES else Engine.colour


# of engines with a code, in the order of drawings.
NAMES: dict[int, str] = {code_of(name): name for name in ENGINES.declared}
