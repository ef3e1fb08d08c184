"""Programs that a user requests from a stream: `isthmus.SSSP(source=7)`, or a program of their own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from isthmus.errors import OptionError
from isthmus.programs.algorithm import Algorithm
from isthmus.programs.catalogue import ALGORITHMS
from isthmus.programs.per_source import BySource
from isthmus.programs.program import Program
from isthmus.stream.maintain.maintained import Maintained
from isthmus.stream.maintain.qualification import qualified
from isthmus.stream.maintain.registry import maintainer_of
from isthmus.stream.stream_session import StreamSession


@dataclass(frozen=True)
class ProgramRequest:
    """An algorithm with its options, to be maintained. `name`: what its result is called in the stream."""

    algorithm: Algorithm
    options: dict[str, Any] = field(default_factory=dict)
    name: str | None = None


def request_function(algorithm: Algorithm) -> Any:
    """The function behind `isthmus.SSSP`."""

    def make(*args: Any, name: str | None = None, **options: Any) -> ProgramRequest:
        names = [parameter.name for parameter in algorithm.parameters]
        return ProgramRequest(algorithm, {**dict(zip(names, args, strict=False)), **options}, name)

    assert algorithm.live is not None
    make.__name__ = make.__qualname__ = algorithm.live.title
    make.__doc__ = (
        f"{algorithm.words} Kept current by a stream: isthmus.stream(graph, [isthmus.{algorithm.live.title}(...)])."
    )
    return make


def maintained(requested: Any, session: StreamSession) -> Maintained:
    """The maintained program for a request; raises OptionError or ProgramError if there is none."""
    name, own = None, not isinstance(requested, ProgramRequest | str)
    if isinstance(requested, str):
        if requested not in ALGORITHMS:
            raise OptionError(
                f"there is no algorithm {requested!r}; a stream maintains {', '.join(maintainable())}, and your own "
                f"programs"
            )
        requested = ProgramRequest(ALGORITHMS[requested])
    if isinstance(requested, ProgramRequest):
        live, name = requested.algorithm.live, requested.name
        if live is None:
            raise OptionError(not_maintained(requested.algorithm))
        try:
            requested = live.program(session.graph.snapshot, **requested.options)
        except TypeError as error:
            raise OptionError(f"{live.title}: {str(error).split('() ', 1)[-1]}") from None
    if not isinstance(requested, BySource | Program):
        raise OptionError(f"expected a program such as isthmus.SSSP(source=7), got {type(requested).__name__}")
    found = maintainer_of(requested, session, name)
    if own and isinstance(requested, Program):
        found.qualification = qualified(found, requested)
    return found


def maintainable() -> list[str]:
    """Names of the algorithms that a stream maintains."""
    return [name for name in ALGORITHMS.names() if ALGORITHMS[name].live is not None]


def not_maintained(algorithm: Algorithm) -> str:
    """Why a stream does not maintain an algorithm, and what it does."""
    reason = f": {algorithm.not_live}" if algorithm.not_live else ""
    names = ", ".join(maintainable())
    instead = f"run isthmus.{algorithm.name} on live.graph after a batch instead"
    return (
        f"{algorithm.name} cannot be kept current{reason}; {instead}. A stream maintains {names}, and your own programs"
    )
