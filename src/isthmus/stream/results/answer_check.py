"""Whether the answers of a stream are those of a run from scratch on the same graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isthmus.graph.changing.advancing import AdvancingGraph
from isthmus.programs.catalogue import ALGORITHMS
from isthmus.runtime.public import function_of, run
from isthmus.runtime.results.agreement import difference
from isthmus.runtime.results.result import Result
from isthmus.stream.maintain.maintained import Maintained
from isthmus.stream.maintain.program_request import ProgramRequest


def differences(
    graph: AdvancingGraph, answers: Mapping[str, tuple[Maintained, Result, Any]], how: dict[str, Any] | None = None
) -> dict[str, str]:
    """What is wrong, by wrong answer. `answers`: maintained programs, results, and the user's requests; `how`:
    options of runs.
    """
    found = {}
    for name, (program, result, requested) in answers.items():
        if not program.has_one_answer:
            fault = program.fault()
        elif (where := difference(from_scratch(requested, graph, how or {}), result)) is not None:
            fault = f"from scratch, {where} of the stream"
        else:
            fault = None
        if fault is not None:
            found[name] = fault
    return found


def from_scratch(requested: Any, graph: AdvancingGraph, how: dict[str, Any]) -> Result:
    """The answer of a run that knows nothing of earlier batches."""
    if isinstance(requested, str):
        requested = ProgramRequest(ALGORITHMS[requested])
    if isinstance(requested, ProgramRequest):
        return function_of(requested.algorithm)(graph, **requested.options, **how)
    return run(requested, graph, **how)
