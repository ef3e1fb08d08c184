"""Options of a run. They change its speed, never its answer.

Each is declared once, as a field of `SessionOptions` or `CallOptions`: name, type, help, default, check, and how the
shell reads it. From these declarations come the keywords of `isthmus.bfs(graph, ...)`, sessions, `compare` and `plan`,
the options of their shell commands, and the tables of the reference. This file imports nothing of weight: the shell
reads it before it knows which command runs.
"""

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, Unpack, get_args

from isthmus.checks import flag, function, path_of
from isthmus.errors import OptionError
from isthmus.memory import parse_size
from isthmus.programs.parameter import Kind, Option, Parameter

if TYPE_CHECKING:
    from isthmus.devices.device import Device
    from isthmus.runtime.trace.iteration import Iteration

Watch = Callable[["Iteration"], None]
Say = Callable[[str], None]


@dataclass(frozen=True)
class RunOption(Option):
    """An option of a run: a parameter with a default and a check of its own. Without help, users do not see it."""

    default: Any = None
    check: Callable[[str, Any], Any] | None = None  # called with name and value; raises OptionError
    in_shell: bool = True  # whether shell commands have it
    shell_type: Any = None  # the type that the shell reads, if it is another
    panel: str | None = None  # its heading in help


@dataclass(frozen=True)
class RunParameter(Parameter):
    """An option of a run with its name and type."""

    option: RunOption


def quiet(iteration: "Iteration") -> None:
    pass


def recipe_name(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise OptionError(f"{name}: expected the name of a recipe, got {value!r}")


def part_names(name: str, value: Any) -> None:
    if isinstance(value, str):
        raise OptionError(f"{name}: expected several names, such as ({value!r},), got {value!r}")
    if not isinstance(value, Iterable) or not all(isinstance(each, str) for each in value):
        raise OptionError(f"{name}: expected names of parts, such as ('cache',), got {value!r}")


def far_memory(name: str, value: Any) -> None:
    if value not in ("auto", "ram", "disk"):
        raise OptionError(f"{name}: expected auto, ram or disk, got {value!r}")


def memory_size(name: str, value: Any) -> None:
    """A size in bytes; a share of the edges is checked with the graph."""
    if value is not None and not str(value).strip().endswith("%"):
        parse_size(value)


def function_or_none(name: str, value: Any) -> None:
    if value is not None:
        function(name, value)


def checkpoint_folder(name: str, value: Any) -> None:
    from isthmus.graph.store.files import refuse_address

    if value is not None:
        refuse_address(path_of(name, value), "checkpoints")


class SessionOptions(TypedDict, total=False):
    """Options that a session is opened with. Commands of the shell that run or plan an algorithm have them too."""

    device: Annotated[
        "str | Device",
        RunOption("auto, cpu, cuda:NUMBER, or model:NAME for a modelled GPU.", default="auto", shell_type=str),
    ]
    memory: Annotated[
        str | int | None,
        RunOption(
            "Near memory: 2GB, or 10% for vertex state plus that share of the edges. Default: 60 % of the available "
            "memory.",
            check=memory_size,
            shell_type=str | None,
        ),
    ]
    policy: Annotated[
        str,
        RunOption(
            "How edges are brought into near memory: {recipes}.", metavar="RECIPE", default="auto", check=recipe_name
        ),
    ]
    without: Annotated[
        tuple[str, ...],
        RunOption(
            "Parts of a recipe to switch off, such as cache. Answers stay the same.",
            metavar="PART,PART...",
            kind=Kind.NAMES,
            default=(),
            check=part_names,
        ),
    ]
    threads: Annotated[int | None, RunOption("Threads to use. Default: all cores.", least=1, panel="Running")]
    verify: Annotated[
        bool, RunOption("Compare every block of edges that is read with its checksum.", default=True, check=flag)
    ]
    far: Annotated[
        str,
        RunOption(
            "Where edges come from: auto; ram to treat main memory as far memory, for tests; or disk: on a GPU, even "
            "if they fit in main memory.",
            default="auto",
            check=far_memory,
            in_shell=False,
        ),
    ]


class CallOptions(TypedDict, total=False):
    """Further options of a single call."""

    watch: Annotated[
        Watch, RunOption("Called after every iteration.", default=quiet, check=function_or_none, in_shell=False)
    ]
    say: Annotated[
        Say | None,
        RunOption(
            "Called with messages for the user, by any thread. None: messages about compiling go to standard error, "
            "others nowhere.",
            check=function_or_none,
            in_shell=False,
        ),
    ]
    checkpoint: Annotated[
        str | Path | None,
        RunOption(
            "Folder for checkpoints; the same command, run again, resumes from the last one.",
            metavar="DIR",
            check=checkpoint_folder,
            shell_type=Path | None,
        ),
    ]
    checkpoint_every: Annotated[
        float, RunOption("Minutes between two checkpoints.", metavar="MINUTES", least=0, default=5.0)
    ]
    restart: Annotated[bool, RunOption("Remove existing checkpoints and start over.", default=False, check=flag)]
    keep_checkpoint: Annotated[
        bool, RunOption("Keep the checkpoints when the run is over.", default=False, check=flag, in_shell=False)
    ]
    # Called with every pass that would run; Rehearsed is raised before the first. For plans.
    rehearse: Annotated[Any, RunOption("", check=function_or_none, in_shell=False)]


class RunOptions(SessionOptions, CallOptions, total=False):
    """The options of `isthmus.bfs(graph, ...)` besides the algorithm's own arguments."""


def declared(options: type) -> dict[str, RunParameter]:
    """The options that a class above declares, by name, in order."""
    found = {}
    for name, hint in options.__annotations__.items():
        kind, option = get_args(hint)
        found[name] = RunParameter(name, kind, option.default, option)
    return found


SESSION, CALL = declared(SessionOptions), declared(CallOptions)
VISIBLE = tuple(name for name, each in {**SESSION, **CALL}.items() if each.option.help)
ELSEWHERE = {  # names of options in other libraries
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


class Settings(SimpleNamespace):
    """A session's options, checked. Those that are not given have their defaults."""

    def __init__(self, **options: Unpack[SessionOptions]) -> None:
        super().__init__(**checked(SESSION, dict(options)))

    def changed(self, **options: Unpack[SessionOptions]) -> "Settings":
        return Settings(**{**vars(self), **options})


def call_settings(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a call, checked, with defaults for those that are not given."""
    return checked(CALL, options)


def checked(known: dict[str, RunParameter], given: dict[str, Any]) -> dict[str, Any]:
    """Values of all known options, given ones or defaults. Raises OptionError for one of the wrong kind."""
    values = {name: given.get(name, each.default) for name, each in known.items()}
    for name, each in known.items():
        if each.option.check is not None:
            each.option.check(name, values[name])
    return values


def split(
    name: str, given: dict[str, Any], own: tuple[str, ...] = ()
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Split keyword arguments into the algorithm's own, the session's and the call's; refuse unknown ones."""
    refuse_unknown(name, given, [*own, *VISIBLE], [*own, *SESSION, *CALL])
    mine = {word: value for word, value in given.items() if word in own}
    opened = {word: value for word, value in given.items() if word in SESSION and word not in own}
    called = {word: value for word, value in given.items() if word in CALL and word not in own}
    return mine, opened, called


def refuse_unknown(name: str, given: Iterable[str], listed: Iterable[str], known: Iterable[str] | None = None) -> None:
    """Raise OptionError for an option that is not among `known`; the message lists `listed`. Default: both the same."""
    listed = list(listed)
    known = listed if known is None else list(known)
    for word in given:
        if word in known:
            continue
        longer = [each for each in listed if len(word) > 2 and each.startswith(word)]
        close = difflib.get_close_matches(word, listed, 1) or longer
        near = [ELSEWHERE[word]] if ELSEWHERE.get(word) in listed else close
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise OptionError(f"{name}: unknown option {word}{hint}; it has {', '.join(listed)}")
