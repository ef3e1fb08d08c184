"""Programs that users ask a stream to maintain: `isthmus.SSSP(source=7)`, or a program of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from isthmus.errors import OptionError, ProgramError
from isthmus.graph.changing.advancing import AdvancingGraph
from isthmus.programs.algorithm import Algorithm
from isthmus.programs.algorithms.core_number import CoreNumber
from isthmus.programs.algorithms.triangle_count import TriangleCount
from isthmus.programs.catalogue import ALGORITHMS
from isthmus.programs.declaration import Accumulative, Monotone
from isthmus.programs.per_source import BySource
from isthmus.programs.program import Program
from isthmus.programs.scores.spreading import Spreading
from isthmus.runtime.session import Session
from isthmus.stream.maintain.accumulative import MaintainedAccumulative
from isthmus.stream.maintain.by_source import MaintainedBySource
from isthmus.stream.maintain.cores import MaintainedCores
from isthmus.stream.maintain.far_scores import MaintainedFarSpreading
from isthmus.stream.maintain.maintained import Maintained
from isthmus.stream.maintain.maintained_scores import MaintainedSpreading
from isthmus.stream.maintain.maintained_triangles import MaintainedTriangles
from isthmus.stream.maintain.monotone import MaintainedMonotone
from isthmus.stream.maintain.qualification import qualified

MAINTAINERS: dict[Any, Callable[[Any, Session, str | None], Maintained]] = {  # by the kind of program
    Monotone: MaintainedMonotone,
    Spreading: MaintainedSpreading,
    Accumulative: MaintainedAccumulative,
    CoreNumber: MaintainedCores,
    TriangleCount: MaintainedTriangles,
}
FAR_MAINTAINERS = {**MAINTAINERS, Spreading: MaintainedFarSpreading}


@dataclass(frozen=True)
class ProgramRequest:
    """An algorithm with its options, to be kept current. `name`: what its result is called in the stream."""

    algorithm: Algorithm
    options: dict[str, Any] = field(default_factory=dict)
    name: str | None = None


def wanted(algorithm: Algorithm) -> Any:
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


def maintained(requested: Any, session: Session) -> Maintained:
    """What keeps a program current; raises OptionError or ProgramError if nothing does."""
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
    if isinstance(requested, BySource):
        return MaintainedBySource(requested, session, name, keeper)
    if isinstance(requested, Program):
        found = keeper(requested, session, name)
        if own:
            found.qualification = qualified(found, requested)
        return found
    raise OptionError(f"expected a program such as isthmus.SSSP(source=7), got {type(requested).__name__}")


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


def keeper(program: Program, session: Session, name: str | None) -> Maintained:
    """What keeps a program of one of the known kinds current."""
    assert isinstance(session.graph, AdvancingGraph)
    for kind, maintains in (MAINTAINERS if session.graph.lists_are_near else FAR_MAINTAINERS).items():
        if isinstance(program, kind):
            return maintains(program, session, name)
    kinds = "isthmus.monotone or isthmus.accumulative"
    raise ProgramError(
        f"{program.name} cannot be kept current: what a batch changes is known only for programs declared with {kinds}"
    )
