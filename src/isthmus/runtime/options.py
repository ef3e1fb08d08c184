"""Options of a run: they change how fast an answer is found, never the answer."""

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
    policy: str  # the recipe by which edges are brought near
    without: tuple[str, ...]  # parts of the recipe to switch off
    threads: int | None
    verify: bool  # compare every block that is read with its checksum
    far: str  # where edges wait: auto, or ram to copy them out of memory as if it were far (for tests)


class CallOptions(TypedDict, total=False):
    """What a single call takes besides."""

    watch: Watch  # told of every iteration
    say: Say | None  # told what is worth a line, such as compiling
    checkpoint: str | Path | None  # a folder for checkpoints
    checkpoint_every: float  # minutes
    restart: bool  # remove the checkpoints that are there, and begin anew
    keep_checkpoint: bool  # leave them when the run is over
    rehearse: Any  # told of every pass that would be made; Rehearsed is raised instead of making one


class RunOptions(SessionOptions, CallOptions, total=False):
    """Everything that `isthmus.bfs(graph, ...)` takes behind the arguments of the algorithm."""


SESSION = tuple(SessionOptions.__annotations__)
CALL = tuple(CallOptions.__annotations__)


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
    verify: bool = False
    far: str = "auto"

    def __post_init__(self) -> None:
        if self.far not in ("auto", "ram"):
            raise OptionError(f"far: expected auto or ram, got {self.far!r}")


def split(name: str, given: dict[str, Any], own: tuple[str, ...] = ()) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Keyword arguments of a call parted into an algorithm's own, a session's and the call's; a misspelt one is refused by name."""
    known = {**dict.fromkeys(own, "own"), **dict.fromkeys(SESSION, "session"), **dict.fromkeys(CALL, "call")}
    unknown = [word for word in given if word not in known]
    if unknown:
        raise OptionError(f"{name}: unknown option {', '.join(unknown)}; it has {', '.join([*own, *SESSION, *CALL])}")
    parts: dict[str, dict[str, Any]] = {"own": {}, "session": {}, "call": {}}
    for word, value in given.items():
        parts[known[word]][word] = value
    return parts["own"], parts["session"], parts["call"]
