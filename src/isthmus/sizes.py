"""Sizes of blocks, pieces and buffers: one object, so that small graphs can be cut as finely as large ones.

Code reads `sizes.now.piece` when it starts something, never per edge. Tests, and experiments that let small graphs
stand for large ones, set other sizes for a while by `with sizes.using(piece=300):`. They hold for all threads.

Not here: constants that describe a format, an algorithm or a machine, which nobody has a reason to vary.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Sizes:
    """What is done at once, or kept in one place. Every size has its unit in its comment."""

    # Into a store
    block_edges: int = 1 << 20  # edges per block: large enough for the GIL not to matter, small enough for the L3 cache
    text_chunk: int = 8 << 20  # bytes of text read at once
    free_expansion: int = 1 << 30  # decompressed bytes that are always allowed
    list_vertices: int = 1 << 16  # vertices whose lists a reader of lists takes at once
    copied_entries: int = 1 << 20  # entries of a section copied at once from store to store
    cached_keys: int = 1 << 16  # keys that a radix sort keeps, with its spare, in a 1 MB L2 cache
    written_offsets: int = 1 << 18  # offsets of a section made at once
    least_name_bytes: int = 64 << 20  # bytes for sorting strings; DuckDB does not sort reliably in less
    staged_names: int = 1 << 18  # rows handed to DuckDB at once
    sorted_names: int = 1 << 17  # rows taken from DuckDB at once

    # Out of a store
    degree_vertices: int = 1 << 20  # vertices whose degrees are counted at once
    verified_arcs: int = 1 << 20  # arcs or ids verified at once
    id_stretch: int = 1 << 16  # entries of the id map read at once, at most

    # Partitions
    partitions: int = 512  # partitions of a graph, as long as their size stays between the two bounds
    smallest_partition: int = 16 << 10  # bytes

    # The disk and its calibration
    largest_read: int = 4 << 20  # bytes of a single read: as fast as dd bs=4M, and small enough to stay responsive
    least_trial: int = 64 << 20  # bytes of a test file; a smaller one says little about the disk
    most_trial: int = 1 << 30  # bytes of a test file
    trial_buffer: int = 64 << 20  # bytes read at once in bulk; lists are packed out of it
    trial_seconds: float = 0.05  # seconds of a portion that is timed

    # A run
    smallest_queue: int = 1 << 12  # vertices in a frontier's queue, however small the graph
    least_buffer: int = 256 << 10  # bytes; smaller ones make more requests than sense
    modelled_buffer: int = 80 << 10  # bytes; a modelled link has no time to save, and small graphs stand for large ones
    few_edges: int = 1 << 16  # edges; a task this small is read by the caller: a hand-over would cost more
    few_rows: int = 5000  # HyTGraph packs fewer active vertices than this by one thread
    alone: int = 1 << 14  # edges below which one thread is faster than a team
    piece: int = 1 << 18  # edges per call: a few milliseconds, so that Ctrl-C is heard and members end together
    cache_vertices: int = 1 << 18  # vertices of a vertex cache that one delivery is made of
    settled_edges: int = 1 << 22  # edges followed in one call: some tens of milliseconds, so that Ctrl-C is heard
    settled_outer: int = 1 << 16  # vertices elsewhere that one call may name
    settled_record: int = 64  # partitions worked on between two records of the trace
    result_rows: int = 1 << 19  # rows of a result written at once

    # Programs
    search_alone: int = 1 << 9  # edges; a smaller level of a search is walked by one thread
    search_levels: int = 1 << 12  # levels that a search walks before it comes back
    bucket_entries: int = 2  # room in buckets per vertex, which may stand in several
    ranked_piece: int = 1 << 18  # vertices and edges per call: under a millisecond, so that members end together
    sorted_piece: int = 1 << 20  # labels sorted by one call: some tens of milliseconds
    triangle_piece: int = 1 << 16  # entries of a table worked on by one call
    least_table: int = 1 << 12  # entries of a table of lists: kilobytes
    betweenness_batches: tuple[int, ...] = (8, 4, 2, 1)  # sources that share reads when memory is scarce
    inputs_at_once: int = 256  # a piece of 2^18 edges then takes below 0.2 s; reading is a small part of the time long before


now = Sizes()


@contextlib.contextmanager
def using(**changes: Any) -> Iterator[Sizes]:
    """Other sizes inside `with`. A name that is no size is a TypeError."""
    global now
    before = now
    now = replace(before, **changes)
    try:
        yield now
    finally:
        now = before
