"""Options of a run. They change its speed, never its answer."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from isthmus.checks import flag, function, path_of
from isthmus.errors import OptionError
from isthmus.graph.store.files import refuse_address
from isthmus.memory import parse_size
from isthmus.runtime.trace.iteration import Iteration

Watch = Callable[[Iteration], None]
Say = Callable[[str], None]


class SessionOptions(TypedDict, total=False):
    """What a session is opened with."""

    device: str  # auto, cpu, cuda:NUMBER, or model:NAME for a modelled GPU
    memory: str | int | None  # near memory: bytes, "2GB", or "10%" for vertex state plus that share of the edges
    policy: str  # the recipe that decides how edges are brought near
    without: tuple[str, ...]  # parts of the recipe to switch off
    threads: int | None  # None: one for each core
    verify: bool  # compare every block that is read with its checksum (the default); False trusts the disk
    # Where edges come from: auto, ram to treat main memory as far memory (for tests), or disk: on a GPU, even if they
    # fit in RAM.
    far: str


class CallOptions(TypedDict, total=False):
    """Further options of a single call."""

    watch: Watch  # called after every iteration
    # Called with messages for the user, by any thread; None: those about compiling go to standard error, others
    # nowhere.
    say: Say | None
    checkpoint: str | Path | None  # a folder for checkpoints
    checkpoint_every: float  # minutes
    restart: bool  # remove existing checkpoints and start over
    keep_checkpoint: bool  # keep the checkpoints when the run is over
    rehearse: Any  # called with every pass that would run; Rehearsed is raised before the first


class RunOptions(SessionOptions, CallOptions, total=False):
    """The options of `isthmus.bfs(graph, ...)` besides the algorithm's own arguments."""


SESSION = tuple(SessionOptions.__annotations__)
CALL = tuple(CallOptions.__annotations__)  # the last, `rehearse`, is for plans; users do not see it
ELSEWHERE = {  # what other libraries call an option
    "damping": "alpha",
    "damping_factor": "alpha",
    "max_iterations": "max_iter",
    "iterations": "max_iter",
    "tolerance": "tol",
    "epsilon": "tol",
    "eps": "tol",
    "start": "source",
    "root": "source",
    "n_jobs": "threads",
    "num_threads": "threads",
    "workers": "threads",
    "recipe": "policy",
    "budget": "memory",
    "memory_limit": "memory",
}


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
        if not isinstance(self.policy, str):
            raise OptionError(f"policy: expected the name of a recipe, got {self.policy!r}")
        if isinstance(self.without, str):
            raise OptionError(f"without: expected several names, such as ({self.without!r},), got {self.without!r}")
        if not isinstance(self.without, Iterable) or not all(isinstance(name, str) for name in self.without):
            raise OptionError(f"without: expected names of parts, such as ('cache',), got {self.without!r}")
        if self.far not in ("auto", "ram", "disk"):
            raise OptionError(f"far: expected auto, ram or disk, got {self.far!r}")
        flag("verify", self.verify)
        if self.memory is not None and not str(self.memory).strip().endswith("%"):  # shares are checked with the graph
            parse_size(self.memory)


def check_call(options: dict[str, Any]) -> None:
    """Raise OptionError for options of a call that are of the wrong kind."""
    for name in ("watch", "say", "rehearse"):
        if options.get(name) is not None:
            function(name, options[name])
    for name in ("restart", "keep_checkpoint"):
        flag(name, options.get(name, False))
    if options.get("checkpoint") is not None:
        refuse_address(path_of("checkpoint", options["checkpoint"]), "checkpoints")


def split(
    name: str, given: dict[str, Any], own: tuple[str, ...] = ()
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Split keyword arguments into the algorithm's own, the session's and the call's. Raises OptionError for an unknown
    one.
    """
    known = {**dict.fromkeys(own, "own"), **dict.fromkeys(SESSION, "session"), **dict.fromkeys(CALL, "call")}
    refuse_unknown(name, given, [*own, *SESSION, *CALL[:-1]], known)
    parts: dict[str, dict[str, Any]] = {"own": {}, "session": {}, "call": {}}
    for word, value in given.items():
        parts[known[word]][word] = value
    return parts["own"], parts["session"], parts["call"]


def refuse_unknown(name: str, given: Iterable[str], told: Iterable[str], known: Iterable[str] | None = None) -> None:
    """Raise OptionError for an option that is not known; `told` are those that the message lists."""
    told = list(told)
    for word in given:
        if word in (told if known is None else known):
            continue
        longer = [each for each in told if len(word) > 2 and each.startswith(word)]
        near = [ELSEWHERE[word]] if ELSEWHERE.get(word) in told else difflib.get_close_matches(word, told, 1) or longer
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise OptionError(f"{name}: unknown option {word}{hint}; it has {', '.join(told)}")
