"""Scores of importance: PageRank, Katz centrality, betweenness; and core numbers.

`tol` is a guarantee here. NetworkX's `pagerank` stops when one round changes less than n·tol in sum, which bounds the
error by n·tol·alpha / (1 - alpha); the error bound here is `tol`. If `max_iter` rounds do not reach that but do reach
NetworkX's bound, the answer is returned, as NetworkX would return it. If they reach neither, NetworkX's error is
raised.
"""

from __future__ import annotations

from random import Random
from typing import Any

import networkx as nx
import numpy as np

from isthmus.checks import is_real
from isthmus.errors import OptionError
from isthmus.networkx.backend_graph import BackendGraph
from isthmus.networkx.claims import by_name, claimed, must_be_none, no_multigraph
from isthmus.networkx.stored_graph import Stored

NO_START = "the answer does not depend on the start; leave it out"


def alpha_below_1(arguments: dict[str, Any]) -> str | None:
    alpha = arguments["alpha"]
    return None if is_real(alpha) and 0 < alpha < 1 else f"alpha: expected a number above 0 and below 1, got {alpha!r}"


def above_0(name: str) -> Any:
    def rule(arguments: dict[str, Any]) -> str | None:
        value = arguments[name]
        return None if is_real(value) and value > 0 else f"{name}: expected a number above 0, got {value!r}"

    return rule


def shares(name: str) -> Any:
    """Shares by node must be numbers of at least 0. Those of unknown nodes are ignored, as NetworkX does."""

    def rule(arguments: dict[str, Any]) -> str | None:
        given = arguments[name]
        if given is None or (
            hasattr(given, "items") and all(is_real(share) and 0 <= share < float("inf") for share in given.values())
        ):
            return None
        return f"{name}: expected a dictionary of finite numbers of at least 0"

    return rule


@claimed(
    by_name("weight"),
    alpha_below_1,
    above_0("tol"),
    must_be_none("nstart", NO_START),
    shares("personalization"),
    shares("dangling"),
)
def pagerank(
    G: BackendGraph,
    alpha: float = 0.85,
    personalization: dict[Any, float] | None = None,
    max_iter: int = 100,
    tol: float = 1.0e-6,
    nstart: dict[Any, float] | None = None,
    weight: str | None = "weight",
    dangling: dict[Any, float] | None = None,
) -> dict[Any, float]:
    if not len(G):
        return {}
    if max_iter < 1:
        raise nx.PowerIterationFailedConvergence(max_iter)
    graph, reads = G.weighted(weight)
    result = G.run(
        "pagerank",
        graph,
        alpha=alpha,
        personalization=by_key(G, personalization),
        max_iter=max_iter,
        tol=tol,
        weight=reads,
        dangling=by_key(G, dangling),
    )
    figures = result.summary()["result"]
    if not figures["converged"] and not figures["error_bound"] <= len(G) * tol * alpha / (1 - alpha):
        raise nx.PowerIterationFailedConvergence(max_iter)
    return dict(zip(G, result.values.tolist(), strict=True))


def by_key(G: BackendGraph, given: dict[Any, float] | None) -> dict[Any, float] | None:
    """Shares of the nodes that the graph has."""
    if given is None:
        return None
    mine = {G.key(node): float(share) for node, share in given.items() if node in G}
    if not any(mine.values()):
        raise ZeroDivisionError
    return mine


@claimed(
    by_name("weight"),
    no_multigraph,
    above_0("alpha"),
    above_0("beta"),
    above_0("tol"),
    must_be_none("nstart", NO_START),
)
def katz_centrality(
    G: BackendGraph,
    alpha: float = 0.1,
    beta: float = 1.0,
    max_iter: int = 1000,
    tol: float = 1.0e-6,
    nstart: dict[Any, float] | None = None,
    normalized: bool = True,
    weight: str | None = None,
) -> dict[Any, float]:
    if not len(G):
        return {}
    if max_iter < 1:
        raise nx.PowerIterationFailedConvergence(max_iter)
    graph, reads = G.weighted(weight)
    try:
        result = G.run(
            "katz", graph, alpha=alpha, beta=beta, max_iter=max_iter, tol=tol, normalized=bool(normalized), weight=reads
        )
    except OptionError as error:  # alpha is too large for the graph
        raise nx.PowerIterationFailedConvergence(max_iter) from error
    if not result.summary()["result"]["converged"]:
        raise nx.PowerIterationFailedConvergence(max_iter)
    return dict(zip(G, result.values.tolist(), strict=True))


def sample_of_some(arguments: dict[str, Any]) -> str | None:
    return "k: a sample of no nodes is not supported" if arguments["k"] == 0 else None


def counts_edges_once(arguments: dict[str, Any]) -> str | None:
    graph = arguments["G"]
    return (
        "stored graphs with parallel edges are not supported"
        if isinstance(graph, Stored) and graph.is_multigraph()
        else None
    )


@claimed(must_be_none("weight", "weighted betweenness is not supported"), sample_of_some, counts_edges_once)
def betweenness_centrality(
    G: BackendGraph,
    k: int | None = None,
    normalized: bool = True,
    weight: str | None = None,
    endpoints: bool = False,
    seed: Random | None = None,
) -> dict[Any, float]:
    sources = None
    if k is not None and k != len(G):
        assert seed is not None, "NetworkX has turned the seed into a generator"
        sources = [G.key(node) for node in seed.sample(list(G), k)]
    if not len(G):
        return {}
    result = G.run(
        "betweenness_centrality", G.simple(), normalized=bool(normalized), endpoints=bool(endpoints), sources=sources
    )
    scores = np.ma.filled(result.values, np.nan)  # the only source of a sample lies on none of its own paths: no score
    return dict(zip(G, scores.tolist(), strict=True))


@claimed(no_multigraph)
def core_number(G: BackendGraph) -> dict[Any, int]:
    if G.has_self_loops():
        raise nx.NetworkXNotImplemented("Input graph has self loops which is not permitted; remove them first.")
    return dict(zip(G, G.run("core_number", G.unweighted()).values.tolist(), strict=True))
