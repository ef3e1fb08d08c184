"""Properties of answers that are not unique, or too large for an oracle: Graph500's checks for trees and distances."""

from __future__ import annotations

from sys import float_info
from typing import Any

from tests.naive import Cleaned


def check_distances(
    graph: Cleaned, source: Any, distance: dict[Any, Any], weighted: bool, limit: float | None = None
) -> None:
    """`distance` holds the reached vertices. An edge never skips: its end is at most its length further."""
    assert distance[source] == 0, "the source is at 0"
    for u, at in distance.items():
        assert at >= 0, f"{u!r} is at {at}"
        assert limit is None or at <= limit, f"{u!r} is at {at}, beyond {limit}"
        for v, w in graph.out[u]:
            step = w if weighted else 1
            if limit is None or at + step <= limit:
                assert v in distance, f"{u!r} -> {v!r}: only one end was reached"
                assert distance[v] <= at + step, f"{u!r} -> {v!r} skips from {at} to {distance[v]} by an edge of {step}"


def check_tree(
    graph: Cleaned, source: Any, distance: dict[Any, Any], predecessor: dict[Any, Any], weighted: bool
) -> None:
    """`predecessor` is a tree of shortest paths: real edges, exactly as long as their ends are apart, no cycle."""
    assert set(predecessor) == set(graph.ids)
    assert predecessor[source] is None, "the source has no predecessor"
    for v in graph.ids:
        u = predecessor[v]
        if v == source:
            continue
        if v not in distance:
            assert u is None, f"{v!r} was not reached and has the predecessor {u!r}"
            continue
        assert u is not None, f"{v!r} was reached and has no predecessor"
        lengths = {w if weighted else 1 for target, w in graph.out[u] if target == v}
        assert lengths, f"{u!r} -> {v!r} is no edge"
        longest = float_info.max if isinstance(distance[v], float) else 2**63 - 2  # sums stop there
        fits = any(min(distance[u] + w, longest) == distance[v] for w in lengths)
        assert fits, f"{u!r} -> {v!r} does not join {distance[u]} and {distance[v]}"
    for v in distance:
        at, steps = v, 0
        while at != source:
            at, steps = predecessor[at], steps + 1
            assert steps <= len(distance), f"the predecessors of {v!r} run in a circle"
