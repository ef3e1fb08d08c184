"""A session: the threads and the near memory that a graph's programs share.

    with isthmus.session(graph, memory="2GB") as s:
        s.bfs(1)
        s.pagerank()
        s.run(MyProgram())

It owns the team of threads, the budget and all near memory: lists and edges, or link, engines, buffers and cache. They
stay from run to run: a second algorithm that follows the same edges loads nothing again. `isthmus.bfs(graph, ...)` is a
session for one call. One call runs at a time; calls from other threads wait.
"""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self, Unpack

from isthmus.devices.choose import Choice, choose
from isthmus.errors import BudgetError, IsthmusError, NotOnGpu, OptionError
from isthmus.graph.graph import Graph
from isthmus.graph.store.store import SUFFIX, is_store
from isthmus.messages import warn
from isthmus.programs.algorithm import Algorithm, Answer
from isthmus.programs.catalogue import ALGORITHMS
from isthmus.programs.program import Program
from isthmus.runtime.call import Call, Rehearsal
from isthmus.runtime.checkpoint.checkpoint import checkpoints_of
from isthmus.runtime.near.near_memory import NearMemory
from isthmus.runtime.options import SESSION, CallOptions, SessionOptions, Settings, call_settings, refuse_unknown, split
from isthmus.runtime.results.kinds import result_of
from isthmus.runtime.results.result import Result
from isthmus.runtime.trace import provenance
from isthmus.threads import Team, uninterrupted


class Session:
    """Runs algorithms on one graph, and keeps edges in memory from one to the next. Use it as a context manager, or
    close it.

    All algorithms are its methods, without the graph: `s.bfs(1)`, `s.pagerank(tol=1e-8)`. Options of the session
    (`memory`, `policy`, `threads`, ...) hold for all calls. One call runs at a time; calls from other threads wait.
    """

    def __init__(self, graph: Graph, **options: Unpack[SessionOptions]) -> None:
        check_graph("session", graph)
        refuse_unknown("session", options, SESSION)
        self.graph, self.settings = graph, Settings(**options)
        self._take(choose(self.settings.device, graph, self.settings.memory))
        if self.settings.far == "disk" and not (graph.snapshot.on_disk and self.device.reads_disks):
            here = f"device {self.device.name}, whose edges are in host memory"
            got = here if graph.snapshot.on_disk else graph.snapshot
            raise OptionError(f"far: expected a graph in a store, and no modelled device, for far='disk'; got {got}")
        self._lock, self._process = threading.RLock(), os.getpid()
        self._busy = self._closed = False
        try:
            self._open_somewhere()
        except BaseException:
            if "_release" in vars(self):
                self.close()
            raise

    def _open_somewhere(self) -> None:
        try:
            uninterrupted(self._open)
        except BudgetError as error:
            if self._instead is None:
                raise
            self._take(self._instead(str(error)))
            uninterrupted(self._open)

    def _open(self) -> None:
        self.team = Team(self.settings.threads)
        try:
            memory = self.device.memory(self.graph.snapshot, self.team, self.settings.verify, self.settings.far)
            self.near_memory = NearMemory(memory, self.team)
        except BaseException:
            self.team.close()
            raise
        # Also when it is forgotten unclosed.
        self._release = weakref.finalize(self, release, self.near_memory, self.team, self._process)
        self._release.atexit = False

    def _take(self, choice: Choice) -> None:
        """Use the device of a choice. `notes` go into the trace of every run; `instead` is what to use if it fails."""
        self.settings = self.settings.changed(device=choice.given)
        self.device, self.notes, self._instead = choice.device, choice.notes, choice.instead

    def _change_device(self, choice: Choice) -> None:
        """Go on with another device, as a program cannot run on the one that was chosen."""
        with self._lock:
            release(self.near_memory, None, self._process)
            self._release.detach()
            self._take(choice)
            self.team.close()
            uninterrupted(self._open)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Session on {self.graph}{', closed' if self._closed else ''}>"

    def __reduce__(self) -> Any:
        raise TypeError(
            "a session cannot be pickled, as it has threads; pickle its graph, and open a session on it in the "
            "other process"
        )

    def close(self) -> None:
        """Release threads, files and memory, after a run of another thread has ended. Results stay valid."""
        # a fork copies no threads, and a lock that another thread held is held for ever.
        if os.getpid() != self._process:
            return
        with self._lock:
            if self._busy:
                raise IsthmusError(
                    "the session is running: it cannot be closed from inside a run; raise an error to stop the run"
                )
            self._closed = True
            release(self.near_memory, self.team, self._process)
            # Last: after an interrupt, another call or the garbage collector releases what is left.
            self._release.detach()

    def run(self, program: Program, **options: Unpack[CallOptions]) -> Result:
        """Run any vertex program."""
        check_program(program)
        return self.call(Algorithm("run", lambda run, program: run(program)), (program,), dict(options))

    def shortest_path(self, source: Any, target: Any, weight: Any = None, **options: Unpack[CallOptions]) -> list[Any]:
        """The vertices of a shortest path, in order. See `isthmus.shortest_path`."""
        from isthmus.runtime.results.shortest_path import found_path  # late: it imports sessions

        return found_path(self, source, target, weight, **options).vertices

    def __getattr__(self, name: str) -> Any:
        """An algorithm as a method."""
        if name.startswith("_") or name not in ALGORITHMS:
            raise AttributeError(f"a session has no algorithm {name!r}; there are {', '.join(ALGORITHMS.names())}")
        return Method(self, ALGORITHMS[name])

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *ALGORITHMS.names()]

    def call(self, algorithm: Algorithm, args: tuple[Any, ...], given: dict[str, Any]) -> Result:
        """Run an algorithm; `given` has its own arguments and the options of the call."""
        own, elsewhere, options = split(
            algorithm.name, given, tuple(parameter.name for parameter in algorithm.parameters)
        )
        if elsewhere:
            words = ", ".join(elsewhere)
            raise OptionError(
                f"{algorithm.name}: a session sets {words} for all its calls; give it when the session is opened"
            )
        return self.call_with(algorithm, args, own, **options)

    def call_with(self, algorithm: Algorithm, args: tuple[Any, ...], own: dict[str, Any], **options: Any) -> Result:
        """The same, with the algorithm's arguments in `own` and the options of the call as keywords."""
        try:
            return self._called(algorithm, args, own, **options)
        except (NotOnGpu, BudgetError) as error:
            if self._instead is None:
                raise
            self._change_device(self._instead(str(error)))
        return self._called(algorithm, args, own, **options)

    def _called(self, algorithm: Algorithm, args: tuple[Any, ...], own: dict[str, Any], **options: Any) -> Result:
        date = provenance.now()
        algorithm.check(args, own)
        options = call_settings(options)
        watch, say, rehearse = (options.pop(name) for name in ("watch", "say", "rehearse"))
        if os.getpid() != self._process:
            raise IsthmusError(
                "the session was opened before this process was forked, and its threads are not here; open a "
                "session here"
            )
        with self._lock, self.graph.reading():
            if self._closed:
                raise OptionError("the session is closed")
            if self._busy:
                raise IsthmusError("the session is running: a program must not start another run of the same session")
            self._busy = True
            self.near_memory.in_use = False
            try:
                self.near_memory.follow(self.graph.snapshot)
                if rehearse is not None:
                    rehearsal = Rehearsal(self, algorithm.name, rehearse)
                    algorithm(rehearsal, *args, **own)
                with checkpoints_of(algorithm, self.graph.snapshot, args, own, **options) as checkpoints:
                    call = Call(self, algorithm.name, watch, say, checkpoints)
                    answer = algorithm(call, *args, **own)
                    checkpoints.over(call.trace.notes)
                again = provenance.to_repeat(
                    algorithm, args, own, self.graph.snapshot, self.settings, self.team.size, date
                )
                result = self._result(answer, call, again)
            except BaseException:
                # Else the run has failed before: an unknown vertex must not cost the session its cache.
                if self.near_memory.in_use:
                    self.near_memory.drop()
                raise
            finally:
                self._busy = False
        warn(call.notes)
        return result

    def _result(self, answer: Answer, call: Call, again: dict[str, Any]) -> Result:
        facts = {**call.summary(answer), "repeat": again}
        answer.program = None  # a result must not hold the memory of the run
        result = result_of(call.algorithm, self.graph.snapshot, answer, call.trace, facts)
        result.gpu = self.near_memory.device.result_columns(answer.columns)
        return result


def release(near_memory: NearMemory, team: Team | None, process: int) -> None:
    """Close what a session has, once or again; not in a fork of its process, where its threads do not exist."""

    def close() -> None:
        with ExitStack() as last:
            if team is not None:
                last.callback(team.close)
            last.callback(near_memory.device.end)
            last.callback(near_memory.close)

    if os.getpid() == process:
        uninterrupted(close)


class Method:
    """An algorithm as a method of a session."""

    def __init__(self, session: Session, algorithm: Algorithm) -> None:
        self._session, self._algorithm = session, algorithm
        self.__name__, self.__doc__ = algorithm.name, algorithm.function.__doc__

    def __call__(self, *args: Any, **given: Any) -> Result:
        return self._session.call(self._algorithm, args, given)

    def __repr__(self) -> str:
        return f"<{self._algorithm.name} of {self._session}>"


def session(graph: Graph, **options: Unpack[SessionOptions]) -> Session:
    """Open a session on a graph: loaded edges stay in memory from one algorithm to the next.

    device, memory, policy, without, threads and verify are as for a single call, and hold for all calls of the session.

    ```python
    import isthmus as ist

    with ist.session(ist.generate("rmat", scale=8, seed=1), memory="1GB") as s:
        print(s.bfs(0).values.max(), s.triangle_count().summary()["result"])
    ```
    """
    return Session(graph, **options)


def check_graph(name: str, graph: Any) -> None:
    """Raise OptionError, in the name of the function that was called, if that is no graph; say how to make one of
    it.
    """
    if isinstance(graph, Graph):
        return
    kind = type(graph)
    if isinstance(graph, str | os.PathLike):
        path = os.fspath(graph)
        stored = str(path).endswith(SUFFIX) or is_store(Path(os.fsdecode(path)))
        got, do = (
            f"the path {path!r}",
            f"open it with isthmus.open({path!r})" if stored else f"read it with isthmus.read({path!r})",
        )
    elif kind.__module__.startswith("networkx"):
        got, do = f"a NetworkX {kind.__name__}", "make one with isthmus.from_networkx(graph)"
    elif isinstance(graph, Session):
        got, do = str(graph), f"call session.{name}(...)"
    elif graph is None:
        got, do = "None", "open a store with isthmus.open, or read edges with isthmus.read"
    else:
        got, do = f"an object of type {kind.__name__}", "if it holds edges, make a graph of them with isthmus.read"
    raise OptionError(f"{name}: expected a graph, got {got}; {do}")


def check_program(program: Any) -> None:
    name = program if isinstance(program, str) else getattr(program, "__name__", "")
    if not isinstance(program, Program) and name in ALGORITHMS:
        raise OptionError(f"run: expected a program, got the algorithm {name}; call isthmus.{name}(graph, ...)")
    if not isinstance(program, Program):
        what = type(program).__name__
        raise OptionError(
            f"run: expected a program, got {what}; decorate a message with @isthmus.monotone or @isthmus.accumulative"
        )
