"""Batches as users give them: arrays, pairs or tables, checked and put into one form."""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.errors import BatchError
from isthmus.graph.change import Edits
from isthmus.kernels.packed import DELETE, INSERT, REWEIGH

Array = np.ndarray[Any, Any]


def edits_of(kind: str, weighted: bool, inserts: Any, deletes: Any, updates: Any, added: Any, removed: Any) -> Edits:
    parts = [(DELETE, deletes), (INSERT, inserts), (REWEIGH, updates)]
    rows = [(wish, *columns_of(what)) for wish, what in parts if what is not None]
    dtype = object if kind == "string" else np.int64
    wishes = np.concatenate([np.full(len(row[1]), row[0], np.uint8) for row in rows]) if rows else np.empty(0, np.uint8)
    sources = np.concatenate([row[1] for row in rows]).astype(dtype) if rows else np.empty(0, dtype)
    targets = np.concatenate([row[2] for row in rows]).astype(dtype) if rows else np.empty(0, dtype)
    weights = None
    if weighted:
        weights = np.concatenate([np.ones(len(row[1])) if row[3] is None else np.asarray(row[3]) for row in rows]) if rows else np.empty(0)
    added, removed = (None if users is None else np.asarray(users, dtype) for users in (added, removed))
    return Edits(wishes, sources, targets, weights, added, removed)


def columns_of(edges: Any) -> tuple[Array, Array, Array | None]:
    if isinstance(edges, tuple) and edges and not isinstance(edges[0], tuple):
        columns = [np.asarray(column) for column in edges]
    else:
        rows = list(edges)
        columns = [np.array([row[k] for row in rows], object) for k in range(len(rows[0]))] if rows else [np.empty(0)] * 2
        columns = [column if isinstance(column[0], str) else np.array(column.tolist()) for column in columns] if rows else columns
    if len(columns) not in (2, 3) or len({column.size for column in columns}) > 1:
        raise BatchError("expected sources, targets and perhaps weights of equal length")
    return columns[0], columns[1], columns[2] if len(columns) == 3 else None
