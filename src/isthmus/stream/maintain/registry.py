"""Which class maintains which kind of program. The class's own file declares it:

    @maintains(CoreNumber)
    class MaintainedCores(MaintainedCounts): ...

Files of this folder are found by that line, so a new one needs no change elsewhere.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from isthmus.errors import ProgramError
from isthmus.plugins import built_in

if TYPE_CHECKING:
    from isthmus.stream.maintain.maintained import Maintained
    from isthmus.stream.stream_session import StreamSession

FOLDER = __name__.rpartition(".")[0]
Class = TypeVar("Class", bound="type[Maintained]")
_declared: dict[tuple[type, bool], Any] = {}  # by the kind of program, and whether its lists are in memory


def maintains(kind: type, in_memory: bool | None = None) -> Callable[[Class], Class]:
    """Declare that a class maintains programs of this kind, and of kinds derived from it.

    `in_memory`: only where all lists are in memory, or only where they are not; None: in both cases.
    """

    def declare(maintainer: Class) -> Class:
        for near in (True, False) if in_memory is None else (in_memory,):
            _declared[kind, near] = maintainer
        return maintainer

    return declare


@cache
def load() -> None:
    """Import all files of this folder, so that they declare what they maintain."""
    for name in built_in(FOLDER):
        importlib.import_module(f"{FOLDER}.{name}")


def maintainer_of(program: Any, session: StreamSession, name: str | None = None) -> Maintained:
    """What maintains a program: the class declared for the nearest kind that the program is derived from."""
    load()
    near = session.graph.lists_are_near
    for kind in type(program).__mro__:
        if (kind, near) in _declared:
            found: Maintained = _declared[kind, near](program, session, name)
            return found
    raise ProgramError(
        f"{program.name} cannot be kept current: what a batch changes is known only for programs declared with "
        "isthmus.monotone or isthmus.accumulative"
    )
