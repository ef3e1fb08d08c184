"""Turns answers into results: by vertex, by edge or by input."""

from __future__ import annotations

from typing import Any

from isthmus.graph.snapshot import Snapshot
from isthmus.programs.algorithm import Answer, Rows
from isthmus.runtime.results.edge_result import EdgeResult
from isthmus.runtime.results.inference_result import InferenceResult
from isthmus.runtime.results.result import Result
from isthmus.runtime.trace.trace import Trace

KINDS: dict[Rows, type[Result]] = {Rows.VERTICES: Result, Rows.EDGES: EdgeResult, Rows.INPUTS: InferenceResult}


def result_of(algorithm: str, graph: Snapshot, answer: Answer, trace: Trace, facts: dict[str, Any]) -> Result:
    """The result of an answer."""
    return KINDS[answer.rows](algorithm, graph, answer, trace, facts)
