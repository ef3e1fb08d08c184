"""The algorithms as functions, named and parametrised as in NetworkX and cuGraph.

Arguments before the star change the answer; the keyword arguments after it (device, memory, policy, threads,
verify) change only how fast it is found.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.errors import OptionError
from isthmus.graph.graph import Graph
from isthmus.policies.recipes import recipe
from isthmus.programs.bfs import BFS
from isthmus.programs.components import Components
from isthmus.programs.delta_pagerank import DeltaPageRank
from isthmus.programs.pagerank import FixedPageRank, PageRank, Strengths
from isthmus.programs.predecessors import Predecessors
from isthmus.programs.program import Program, State
from isthmus.programs.sssp import SSSP
from isthmus.runtime.budget import Near
from isthmus.runtime.checkpoint import checkpointed
from isthmus.runtime.execute import execute
from isthmus.runtime.result import Result
from isthmus.runtime.setup import device_of, near_memory
from isthmus.threads import default_threads

NOTHING = np.empty(0)  # stands for an array that a later pass will have


def run(program: Program, graph: Graph, **how: Any) -> Result:
    """Run any vertex program."""
    if not isinstance(program, Program):
        what = type(program).__name__
        raise OptionError(f"expected a program, got {what}; decorate a message with @isthmus.monotone or @isthmus.accumulative")
    return execute(program, graph, **how)


@checkpointed
def bfs(graph: Graph, source: Any, depth_limit: int | None = None, predecessors: bool = False, **how: Any) -> Result:
    """Distances in edges from `source`, and with `predecessors` a shortest-path tree."""
    if predecessors:
        must_fit(Predecessors(source, NOTHING, False), graph, how)
    result = execute(BFS(source, depth_limit), graph, **how)
    return with_predecessors(result, graph, source, False, how) if predecessors else result


@checkpointed
def sssp(graph: Graph, source: Any, cutoff: float | None = None, predecessors: bool = False, **how: Any) -> Result:
    """Shortest distances by weight from `source`; a graph without weights counts every edge as 1, and says so."""
    if graph.weighted and graph.store.manifest.negative_weights:
        raise OptionError(f"sssp needs weights of at least 0, and {graph} has negative ones")
    if predecessors:
        must_fit(Predecessors(source, NOTHING, graph.weighted), graph, how)
    result = execute(SSSP(source, cutoff), graph, **how)
    if not graph.weighted:
        note = "the graph has no weights: every edge counts as 1"
        result.trace.notes.append(note)
    return with_predecessors(result, graph, source, graph.weighted, how) if predecessors else result


def must_fit(program: Program, graph: Graph, how: dict[str, Any]) -> None:
    """Raise BudgetError now if a later pass would."""
    near = would_fit(program, graph, how)
    if how.get("rehearse"):
        how["rehearse"](program, near)


def would_fit(program: Program, graph: Graph, how: dict[str, Any]) -> Near:
    """How the budget of these options would be split, or BudgetError."""
    policy = how.get("policy", "auto")
    threads = how.get("threads") or default_threads()
    model = device_of(how.get("device", "auto"))
    chosen = recipe(policy, how.get("without", ()), 0 if model is None else len(program.sides), program.levels)
    return near_memory(program, graph, chosen, model, how.get("memory"), threads, policy)


def with_predecessors(result: Result, graph: Graph, source: Any, weighted: bool, how: dict[str, Any]) -> Result:
    """Add the column of a second pass, over the edges of shortest paths."""
    second = execute(Predecessors(source, result._columns["distance"], weighted), graph, **how)
    result._columns["predecessor"] = second._columns["predecessor"]
    return merged(result, second)


def merged(first: Result, second: Result) -> Result:
    """The first result, with the second's time, transfer and iterations added to its summary."""
    for iteration in second.trace.iterations:
        iteration.number += len(first.trace)
    first.trace.iterations += second.trace.iterations
    first.trace.notes += [note for note in second.trace.notes if note not in first.trace.notes]
    a, b = first._facts, second._facts
    a["iterations"] += b["iterations"]
    for key in a["seconds"]:
        a["seconds"][key] += b["seconds"][key]
    for key in a["transfer"]:
        a["transfer"][key] += b["transfer"][key]
    for key in a["cache"]:
        a["cache"][key] += b["cache"][key]
    rss_peak = max(a["memory"]["rss_peak"], b["memory"]["rss_peak"])
    a["memory"] = {**max(a["memory"], b["memory"], key=lambda memory: memory["near_peak"]), "rss_peak": rss_peak}
    a["engines"] = first.trace.engines()
    return first


def weakly_connected_components(graph: Graph, **how: Any) -> Result:
    """For every vertex the smallest vertex id it is connected with, whatever the edges' direction."""
    return execute(Components(), graph, **how)


@checkpointed
def pagerank(
    graph: Graph, alpha: float = 0.85, personalization: dict[Any, float] | None = None, max_iter: int = 1000, tol: float = 1e-6,
    weight: bool = False, dangling: dict[Any, float] | None = None, iterations: int | None = None, **how: Any,
) -> Result:  # fmt: skip
    """PageRank with an L1 error of at most `tol`, or after exactly `iterations` rounds (LDBC Graphalytics).

    `personalization` and `dangling` map vertices to shares; `weight=True` follows edges in proportion to their
    weights.
    """
    if iterations is not None:
        if personalization is not None or dangling is not None or weight:
            raise OptionError("a fixed number of iterations is LDBC's PageRank: no personalization, dangling or weight")
        return execute(FixedPageRank(alpha, iterations, graph.has_in_edges), graph, **how)
    if weight and not graph.weighted:
        raise OptionError(f"weight: {graph} has no weights")
    if weight and graph.store.manifest.negative_weights:
        raise OptionError(f"pagerank needs weights of at least 0, and {graph} has negative ones")
    two = dangling is not None and dangling != personalization
    last = dangling if two else personalization
    must_fit(ranker(graph, alpha, tol, max_iter, last, NOTHING if weight else None, 8 if two else 0, how), graph, how)
    if two:
        return two_solves(graph, alpha, personalization, max_iter, tol, weight, dangling, how)
    return solve(graph, alpha, personalization, max_iter, tol, weight, how)[0]


def ranker(
    graph: Graph, alpha: float, tol: float, max_iter: int, teleport: Any, strengths: Any, beside: int, how: dict[str, Any]
) -> PageRank:
    """PageRank by deltas on modelled devices and by recipes whose papers do it so, else by pulling."""
    if device_of(how.get("device", "auto")) is not None or recipe(how.get("policy", "auto")).deltas:
        return DeltaPageRank(alpha, tol, max_iter, teleport, strengths, beside)
    return PageRank(alpha, tol, max_iter, teleport, strengths, graph.has_in_edges, beside)


def solve(
    graph: Graph, alpha: float, teleport: Any, max_iter: int, tol: float, weight: bool, how: dict[str, Any], beside: int = 0
) -> tuple[Result, PageRank]:
    strengths = execute(Strengths(), graph, **how) if weight else None
    weights = None if strengths is None else strengths._columns["strength"]
    program = ranker(graph, alpha, tol, max_iter, teleport, weights, beside, how)
    result = execute(program, graph, **how)
    if not program.converged:
        reached = f"the error is bounded by {program.error_bound:.3g}, not by tol = {tol:g}"
        result.trace.notes.append(f"stopped after {max_iter} iterations; {reached}")
    return (result if strengths is None else merged(result, strengths)), program


def two_solves(
    graph: Graph, alpha: float, teleport: Any, max_iter: int, tol: float, weight: bool, dangling: Any, how: dict[str, Any]
) -> Result:
    """(1 - t) x + t y, x and y the PageRanks for either kind of teleport; see programs.pagerank.

    t follows from the mass of x on dangling vertices, so that errors grow by at most 1 / (1 - alpha).
    """
    within = tol * (1 - alpha) * 0.9
    first, p = solve(graph, alpha, teleport, max_iter, within, weight, how)
    second, q = solve(graph, alpha, dangling, max_iter, within, weight, how, beside=8)
    ends = (graph.store.degrees("out") if p.strengths is None else p.strengths) == 0
    x, y = first._columns["pagerank"], second._columns["pagerank"]
    stuck = float(x[ends].sum())
    share = alpha * stuck / (1 - alpha + alpha * stuck)
    x *= 1 - share
    y *= share
    x += y
    # A vector that is off by e has at most e / 2 too much mass anywhere, and x and y are at most 2 apart.
    slope = alpha * (1 - alpha) / (1 - alpha + alpha * max(stuck - p.error_bound / 2, 0)) ** 2
    p.error_bound = (1 - share) * p.error_bound + share * q.error_bound + slope * p.error_bound
    p.converged = p.error_bound <= tol
    first._facts["result"] = p.summary(first._columns, State((), None))
    return merged(first, second)
