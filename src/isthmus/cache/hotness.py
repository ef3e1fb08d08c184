"""Which vertices' edges to cache: those used most often since the last check. Checks are rare.

HyTGraph, journal version, section VII and Algorithm 2. A byte per vertex counts how often its edges were used. After
more than `interval` x |V| vertices were processed, the hottest vertices whose edges fit the cache are the candidates.
If more than 30 % of their edges are not in the cache, it is refreshed: other lists are dropped, the lists that stay are
moved together, and space after them is reserved for new lists, which are copied when they next cross the link for the
work itself. Counting then restarts.

Algorithm 2, corrected:
- Line 7 compares the active vertices with the cache; it should compare the candidates.
- c_tag is never reset, so after one refresh the cache also takes candidates that line 7 refused. Here `wanted` changes
  only in a refresh.
- Line 22 counts every candidate as cached, used or not. Here `wanted` and `filled` are separate.
- Lines 19-20 count the vertices of the next iteration instead of those processed.
- The interval's gamma (not that of RTTzc) has no published value; ours is measured. Its beta is 0.3, not the 0.4 of the
  selection.

Beyond the paper (docs/decisions.md has the gains):
- The vertices of an iteration are counted before the check, after the cache has served its hits. So candidates that are
  active now are cached in this iteration, not when they are next active, which in a search is often never.
- Among equally hot vertices those with longer lists come first, then those with smaller numbers. In PageRank all
  vertices are equally hot at first.
- Before anything was used, all vertices count as equally hot, so the cache starts with the longest lists.

HyTGraph's released code has no cache. A count that reaches 255 stays there. Vertices are ordered by a counting sort: a
vertex's level is its count, then the number of bits of its list's length. The prefix sum that finds how many lists fit
adds up the edges of whole levels. Lists larger than the cache are left out: one of them at the top would leave it
empty. All sums have 64 bits. The cache is of no use where every vertex is active once (BFS).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isthmus.frontier import Array, Frontier
from isthmus.graph.lists import Lists
from isthmus.kernels.cache import use_counts as kernels

INTERVAL = 0.1  # vertices processed between two checks, as a share of all; measured: docs/decisions.md
CHANGED = 0.3  # HyTGraph: smaller changes of the candidates are not worth a refresh


def heat(hotness: Array, frontier: Frontier, team: Any) -> None:
    """Count one use of every active vertex."""
    if frontier.list is not None:
        kernels.heat_rows(frontier.list, hotness)
    else:
        team.split(lambda a, b: kernels.heat_range(a, b, frontier.marks, frontier.all_active, hotness), hotness.size)


def candidates(hotness: Array, lists: Lists, capacity: int, team: Any) -> Array:
    """Marks of the hottest vertices whose lists together hold at most `capacity` edges; unused vertices are left
    out.
    """
    marks = np.zeros(hotness.size, np.uint8)
    parts = team.split(lambda a, b: (a, kernels.edges_by_level(a, b, hotness, *lists.arrays, capacity)), hotness.size)
    if not parts:
        return marks
    edges = np.array([part for _, part in parts])
    level, left = last_level(edges.sum(axis=0), capacity)
    room = left - np.cumsum(edges[:, level]) + edges[:, level]
    rooms = {first: int(left) for (first, _), left in zip(parts, room, strict=True)}
    team.split(
        lambda a, b: kernels.mark_hot(a, b, hotness, *lists.arrays, capacity, level, rooms[a], marks), hotness.size
    )
    return marks


def last_level(edges: Array, capacity: int) -> tuple[int, int]:
    """The level that no longer fits as a whole, given the edges at each level, and the room that those above it
    leave.
    """
    down_to = np.append(np.cumsum(edges[::-1])[::-1], 0)  # edges at this level and above
    level = int(np.argmax(down_to[1:] <= capacity))  # all above it fit
    return level, int(capacity - down_to[level + 1])


def initial_candidates(lists: Lists, capacity: int, team: Any) -> Array:
    """Candidates before anything was used."""
    return candidates(np.ones(len(lists), np.uint8), lists, capacity, team)


def hubs(lists: Lists, capacity: int) -> Array:
    """Marks of the vertices of greatest degree that fit: hub caching, which HyTGraph compares itself with."""
    degrees = lists.degrees()
    order = np.argsort(-degrees, kind="stable")
    order = order[(degrees[order] > 0) & (degrees[order] <= capacity)]
    marks = np.zeros(degrees.size, np.uint8)
    marks[order[np.cumsum(degrees[order], dtype=np.int64) <= capacity]] = 1
    return marks


@dataclass(frozen=True)
class Checked:
    """The result of a check of the candidates. If the check was due, the caller sets counts and `processed` back to
    0.
    """

    wanted: Array  # marks of the vertices whose edges the cache holds, or will hold once they have crossed the link
    due: bool  # enough vertices were processed since the last check
    changed: bool  # `wanted` has changed: refresh


def check(
    hotness: Array,
    wanted: Array,
    processed: int,
    lists: Lists,
    capacity: int,
    team: Any,
    interval: float = INTERVAL,
    changed: float = CHANGED,
) -> Checked:
    """Algorithm 2, lines 5-14. `processed`: vertices since the last check that was due, those active now included."""
    if processed <= interval * hotness.size:
        return Checked(wanted, False, False)
    found = candidates(hotness, lists, capacity, team)
    parts = team.split(lambda a, b: kernels.fresh_edges(a, b, found, wanted, *lists.arrays), hotness.size)
    fresh, total = (sum(column) for column in zip(*parts, strict=True)) if parts else (0, 0)
    refresh = bool(fresh > changed * total)
    return Checked(found if refresh else wanted, True, refresh)
