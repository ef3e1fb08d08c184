"""Whether the answers of a stream are those of a run from scratch on the same graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isthmus.graph.changing import ChangingGraph
from isthmus.programs.catalogue import ALGORITHMS
from isthmus.runtime.agree import difference
from isthmus.runtime.public import function_of, run
from isthmus.runtime.result import Result
from isthmus.stream.wanted import Wanted


def differences(graph: ChangingGraph, answers: Mapping[str, tuple[Result, Any]]) -> dict[str, str]:
    """The first difference of every answer that is not what a run from scratch gives. `answers`: results, and what was asked for."""
    found = {}
    for name, (result, asked) in answers.items():
        where = difference(from_scratch(asked, graph), result)
        if where is not None:
            found[name] = f"from scratch, {where} of the stream"
    return found


def from_scratch(asked: Any, graph: ChangingGraph) -> Result:
    """The answer of a run that knows nothing of earlier batches."""
    if isinstance(asked, str):
        asked = Wanted(ALGORITHMS[asked])
    if isinstance(asked, Wanted):
        return function_of(asked.algorithm)(graph, **asked.options)
    return run(asked, graph)
