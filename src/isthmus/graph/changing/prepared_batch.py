"""What a batch does to a changing graph, found out before anything is changed.

Ids are looked up, the changes of each edge are folded in order of arrival, and a lookup finds the edges that exist
(`edge_lookup.py`). `commit` then changes the slots that were found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isthmus import sizes
from isthmus.errors import BatchError
from isthmus.graph.changing.change import Change, Edits, distinct, negatives_gained, sorted_pairs
from isthmus.graph.changing.changing_ids import UNKNOWN
from isthmus.graph.changing.edge_lookup import Search
from isthmus.graph.store.files import Array
from isthmus.kernels.changing import edge_search
from isthmus.kernels.changing.packed_array import DELETE, INSERT
from isthmus.threads import Team

if TYPE_CHECKING:
    from isthmus.graph.changing.advancing import AdvancingGraph

NOBODY = np.empty(0, np.int64)
FEW_WEIGHTS = np.empty(0, np.int32)


def prepared(graph: AdvancingGraph, edits: Edits, strict: bool = False) -> Change:
    """Find out what a batch changes. Raises BatchError; nothing is changed yet.

    `strict`: inserting an edge that exists, or deleting or reweighing one that does not, is an error.
    """
    added, us, vs, removed, counts = numbered(graph, edits, strict)
    wishes, weights = edits.wishes, weights_of(graph, edits)
    if removed.size:
        gone_u, gone_v = graph.edges_of(removed)
        us, vs = np.concatenate([us, gone_u]), np.concatenate([vs, gone_v])
        wishes = np.concatenate([wishes, np.full(gone_u.size, DELETE, np.uint8)])
        weights = np.concatenate([weights, np.zeros(gone_u.size, weights.dtype)]) if weights.size else weights
    n = graph.vertices + added.size
    if not graph.directed:
        us, vs = np.minimum(us, vs), np.maximum(us, vs)
    order = sorted_pairs(us, vs, n)
    kind = graph.target_dtype
    tails, heads, once = np.empty(us.size, kind), np.empty(us.size, kind), np.empty(us.size, np.uint8)
    cuts = np.zeros(us.size + 1, np.int64)
    count = edge_search.group_rows(order, us, vs, wishes, tails, heads, cuts, once) if us.size else 0
    search = graph.search(tails[:count], heads[:count])
    search.find(once[:count])
    actions, final, repeated, missing, odd = folded(graph.team, search, order, cuts[: count + 1], wishes, weights)
    if strict and (repeated or missing):
        raise refused(edits, odd)
    # Inserts of existing edges that turn out to reweigh them: both arcs are needed.
    late = (once[:count] != 0) & (actions > INSERT)
    if late.any():
        search.find((~late).astype(np.uint8))
    counts |= {"repeated": repeated, "missing": missing + counts["missing"]}
    change = change_of(graph, search, actions, final, added, removed, counts)
    change.edits = edits
    return change


def folded(
    team: Team, search: Search, order: Array, cuts: Array, wishes: Array, weights: Array
) -> tuple[Array, Array, int, int, Array]:
    """(action on each edge, its new weight, repeated inserts, missing edges, the first row of either)."""
    size = search.exists.size
    actions, final = np.empty(size, np.uint8), np.empty_like(search.old)

    def part(first: int, last: int) -> tuple[int, int, Array]:
        odd = np.full(2, wishes.size, np.int64)
        return (
            *edge_search.fold(
                first, last, order, cuts, wishes, weights, search.exists, search.old, actions, final, odd
            ),
            odd,
        )

    parts = [part(0, size)] if size <= sizes.now.few_changes else team.split(part, size)
    repeated, missing, odd = zip(*parts, strict=True)
    return actions, final, int(sum(repeated)), int(sum(missing)), np.min(odd, axis=0)


def numbered(graph: AdvancingGraph, edits: Edits, strict: bool) -> tuple[Array, Array, Array, Array, dict[str, int]]:
    """(ids of new vertices, both ends of every row by number, numbers of removed vertices, counts)."""
    ids, n = graph.changing_ids, graph.vertices
    us, vs = ids.numbers(edits.sources), ids.numbers(edits.targets)
    inserts = edits.wishes == INSERT
    unknown_u, unknown_v = us == UNKNOWN, vs == UNKNOWN
    given = [edits.added] if edits.added is not None else []
    fresh = [edits.sources[inserts & unknown_u], edits.targets[inserts & unknown_v], *given]
    counts = {"missing": 0, "vertices_repeated": 0}
    added = distinct(np.concatenate(fresh)) if sum(part.size for part in fresh) else edits.sources[:0]
    if given:
        there = ids.numbers(added) != UNKNOWN
        counts["vertices_repeated"] = int(np.count_nonzero(there))
        if strict and there.any():
            user = added[there].tolist()[0]
            row = edits.where_added(given[0].tolist().index(user))
            raise BatchError(f"{row}: vertex {user!r} cannot be added: it exists (strict; nothing was applied)")
        added = added[~there]
    check_range(graph, added)
    removed = removed_by(graph, edits, strict, counts)
    if unknown_u.any() or unknown_v.any():
        if added.size:
            where = dict(zip(added.tolist(), range(n, n + added.size), strict=True))
            for ends, users, unknown in ((us, edits.sources, unknown_u), (vs, edits.targets, unknown_v)):
                rows = np.flatnonzero(unknown)
                ends[rows] = [where.get(user, UNKNOWN) for user in users[rows].tolist()]
        # An edge at an unknown vertex gets a number beyond all vertices, so it is not found and counts as missing.
        beyond = n + added.size
        us[us == UNKNOWN], vs[vs == UNKNOWN] = beyond, beyond
    return added, us, vs, removed, counts


def check_range(graph: AdvancingGraph, added: Array) -> None:
    kind = graph.target_dtype
    if graph.vertices + added.size > np.iinfo(kind).max:
        raise BatchError(
            f"the graph would have {graph.vertices + added.size} vertices, more than {kind} numbers; ingest it again"
        )


def removed_by(graph: AdvancingGraph, edits: Edits, strict: bool, counts: dict[str, int]) -> Array:
    if edits.removed is None or not edits.removed.size:
        return NOBODY
    users = distinct(edits.removed)
    used = np.concatenate([edits.sources, edits.targets, *([edits.added] if edits.added is not None else [])])
    gone = set(users.tolist())
    for user in used.tolist():
        if user in gone:
            raise BatchError(f"vertex {user!r} is removed and used in the same batch; use two batches")
    numbers = graph.changing_ids.numbers(users)
    counts["missing"] += int(np.count_nonzero(numbers == UNKNOWN))
    if strict and counts["missing"]:
        user = users[numbers == UNKNOWN].tolist()[0]
        raise BatchError(
            f"{edits.removing(user)}: vertex {user!r} cannot be removed: it does not exist (strict; nothing was "
            f"applied)"
        )
    return np.sort(numbers[numbers != UNKNOWN])


def weights_of(graph: AdvancingGraph, edits: Edits) -> Array:
    if not graph.weighted:
        return FEW_WEIGHTS
    kind = graph.weight_dtype
    return np.ones(len(edits), kind) if edits.weights is None else edits.weights.astype(kind)


def refused(edits: Edits, odd: Array) -> BatchError:
    row = int(odd.min())
    u, v = edits.sources[row : row + 1].tolist()[0], edits.targets[row : row + 1].tolist()[0]
    what = (
        f"cannot insert the edge {u!r} -> {v!r}: it exists"
        if row == odd[0]
        else f"the edge {u!r} -> {v!r} does not exist"
    )
    return BatchError(f"{edits.where(row)}: {what} (strict; nothing was applied)")


def change_of(
    graph: AdvancingGraph,
    search: Search,
    actions: Array,
    final: Array,
    added: Array,
    removed: Array,
    counts: dict[str, int],
) -> Change:
    n = graph.vertices + added.size
    _, inserted, deleted, reweighed = np.bincount(actions, minlength=4).tolist()
    loops = actions[search.tails == search.heads]
    self_loops = graph.self_loops + np.count_nonzero(loops == INSERT) - np.count_nonzero(loops == DELETE)
    out, old = search.changes("out", actions, final)
    into = search.changes("in", actions, final)[0] if graph.directed else out
    left = n - removed.size
    holes, movers = removed[removed < left], np.setdiff1d(np.arange(left, n), removed)
    counts |= {"inserted": inserted, "deleted": deleted, "reweighed": reweighed}
    counts |= {"vertices_added": int(added.size), "vertices_removed": int(removed.size)}
    edges, negative = graph.edges + inserted - deleted, graph.negative_arcs + negatives_gained(out, old)
    return Change(
        graph.number + 1, out, into, old, added, removed, movers, holes, left, counts, edges, int(self_loops), negative
    )
