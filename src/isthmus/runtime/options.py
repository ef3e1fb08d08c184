"""Options of a run. They change its speed, never its answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from isthmus.errors import OptionError
from isthmus.runtime.trace import Iteration

Watch = Callable[[Iteration], None]
Say = Callable[[str], None]


class SessionOptions(TypedDict, total=False):
    """What a session is opened with."""

    device: str  # auto, cpu, or model:NAME for a modelled GPU
    memory: str | int | None  # near memory: bytes, "2GB", or "10%" for vertex state plus that share of the edges
    policy: str  # the recipe that decides how edges are brought near
    without: tuple[str, ...]  # parts of the recipe to switch off
    threads: int | None
    verify: bool  # compare every block that is read with its checksum (the default); False trusts the disk
    far: str  # where edges are stored: auto, or ram to treat main memory as far memory (for tests)


class CallOptions(TypedDict, total=False):
    """Further options of a single call."""

    watch: Watch  # called after every iteration
    say: Say | None  # called with messages for the user, such as that a program is compiled
    checkpoint: str | Path | None  # a folder for checkpoints
    checkpoint_every: float  # minutes
    restart: bool  # remove existing checkpoints and start over
    keep_checkpoint: bool  # keep the checkpoints when the run is over
    rehearse: Any  # called with every pass that would run; Rehearsed is raised before the first


class RunOptions(SessionOptions, CallOptions, total=False):
    """The options of `isthmus.bfs(graph, ...)` besides the algorithm's own arguments."""


SESSION = tuple(SessionOptions.__annotations__)
CALL = tuple(CallOptions.__annotations__)  # the last, `rehearse`, is for plans and not told to users


def quiet(iteration: Iteration) -> None:
    pass


@dataclass(frozen=True)
class Settings:
    """A session's options, checked."""

    device: str = "auto"
    memory: str | int | None = None
    policy: str = "auto"
    without: tuple[str, ...] = ()
    threads: int | None = None
    verify: bool = True
    far: str = "auto"

    def __post_init__(self) -> None:
        if self.far not in ("auto", "ram"):
            raise OptionError(f"far: expected auto or ram, got {self.far!r}")


def split(name: str, given: dict[str, Any], own: tuple[str, ...] = ()) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Split keyword arguments into the algorithm's own, the session's and the call's. Raises OptionError for an unknown one."""
    known = {**dict.fromkeys(own, "own"), **dict.fromkeys(SESSION, "session"), **dict.fromkeys(CALL, "call")}
    unknown = [word for word in given if word not in known]
    if unknown:
        raise OptionError(f"{name}: unknown option {', '.join(unknown)}; it has {', '.join([*own, *SESSION, *CALL[:-1]])}")
    parts: dict[str, dict[str, Any]] = {"own": {}, "session": {}, "call": {}}
    for word, value in given.items():
        parts[known[word]][word] = value
    return parts["own"], parts["session"], parts["call"]
