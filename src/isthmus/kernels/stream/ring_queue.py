"""A queue in a ring: `used` entries of an array from `head` on, which go on at its beginning. Each
vertex fits in once.

`marks` has a 1 for each vertex in the queue, so that none is put there twice.
"""

from __future__ import annotations

from typing import Any

from numba import int64

from isthmus.kernels.compile.kernel import inline


@inline
def fill(starts: Any, queue: Any, marks: Any) -> None:
    """Put these vertices into an empty queue, from its beginning."""
    for i in range(starts.size):
        queue[i] = starts[i]
        marks[int64(starts[i])] = 1


@inline
def following(head: Any, queue: Any) -> Any:
    """The place behind `head`."""
    return head + 1 if head + 1 < queue.size else 0


@inline
def put(v: Any, queue: Any, head: Any, used: Any, marks: Any) -> None:
    """Append a vertex; there is one more entry then."""
    at = head + used
    queue[at if at < queue.size else at - queue.size] = v
    marks[v] = 1


@inline
def clear(queue: Any, head: Any, used: Any, marks: Any) -> None:
    """Unmark the vertices that are left."""
    for _ in range(used):
        marks[int64(queue[head])] = 0
        head = head + 1 if head + 1 < queue.size else 0
