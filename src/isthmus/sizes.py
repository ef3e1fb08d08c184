"""Sizes of blocks, pieces and buffers: one object, so that small graphs can be cut as finely as large ones.

Code reads `sizes.now.piece` when it starts something, never per edge. Tests, and experiments that let small graphs
stand for large ones, set other sizes for a while by `with sizes.using(piece=300):`. They hold for all threads.

Constants that describe a format, an algorithm or a machine stay in their own files: tests have no reason to vary them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Sizes:
    """How much is processed or held at once. Each size has its unit in its comment."""

    # Into a store
    # Edges per block: large enough to make GIL overhead negligible, small enough for the L3 cache.
    block_edges: int = 1 << 20
    text_chunk: int = 8 << 20  # bytes of text read at once
    # Bytes of adjacency lists read at once: an edge has two of them or more, in a list of edges four.
    adjacency_chunk: int = 2 << 20
    free_expansion: int = 1 << 30  # decompressed bytes that are always allowed
    least_block_memory: int = 32 << 20  # bytes of decoded input that may always be in memory at once
    list_vertices: int = 1 << 16  # vertices whose lists are read at once from adjacency lists
    copied_entries: int = 1 << 20  # entries of a section copied at once from store to store
    cached_keys: int = 1 << 16  # keys that a radix sort keeps, with its spare, in a 1 MB L2 cache
    # Keys that NumPy sorts; the radix sort is faster, but takes seconds to compile on first use.
    few_keys: int = 1 << 12
    written_offsets: int = 1 << 18  # offsets of a section made at once
    least_name_bytes: int = 16 << 20  # bytes for sorting strings
    name_block: int = 64 << 10  # bytes of sorted strings read at once in a merge, at least

    # Out of a store
    degree_vertices: int = 1 << 18  # vertices whose degrees are counted at once
    verified_arcs: int = 1 << 20  # arcs or ids verified at once
    id_stretch: int = 1 << 16  # entries of the id map read at once, at most
    held_id_bytes: int = 32 << 20  # the largest id map that many look-ups bring into memory
    id_text: int = 1 << 20  # bytes of string ids read at once, beyond the first of them

    # Partitions
    partitions: int = 512  # partitions of a graph, as long as their size stays between the two bounds
    smallest_partition: int = 16 << 10  # bytes

    # The disk and its calibration
    # Bytes of edges that are read by plain reads: asynchronous ones take seconds to compile on first use.
    few_bytes: int = 128 << 10
    largest_read: int = 1 << 20  # bytes of a single read: as fast as larger ones, and checked while it is in the cache
    least_trial: int = 64 << 20  # bytes of a test file; a smaller one says little about the disk
    most_trial: int = 1 << 30  # bytes of a test file
    trial_buffer: int = 64 << 20  # bytes read at once in bulk; lists are packed out of it
    trial_seconds: float = 0.05  # seconds of a portion that is timed

    # A changing graph
    # Edges that one thread follows to bring an answer up to date; all threads go on from there.
    settled_alone: int = 1 << 21
    # Edges that a pass reads in the time of one single list: a 4 KB block by itself takes as long as six in a row.
    lone_list: int = 1 << 12
    few_changes: int = 1 << 9  # changed arcs; one thread applies this few sooner than a team
    pinned: int = 4 << 20  # bytes of a page-locked buffer between disk and GPU; a reader has four of them
    # Bytes of stored lists that are read before they are patched; larger buffers are no faster with two readers.
    staging: int = 4 << 20
    gathered: int = 32 << 20  # bytes of lists that a maintained program gets from disk at once, beyond the first list
    merged: int = 8 << 20  # bytes of lists that are patched and written at once into a new store

    # A run
    smallest_queue: int = 1 << 12  # vertices in a frontier's queue, however small the graph
    least_buffer: int = 256 << 10  # bytes; smaller buffers make too many requests
    # Bytes; on a modelled link small buffers cost no real time, and small graphs stand for large ones.
    modelled_buffer: int = 80 << 10
    # Edges; the calling thread reads a task this small itself: handing it to a reader thread would cost more.
    few_edges: int = 1 << 16
    few_rows: int = 5000  # active vertices; HyTGraph packs fewer than this with one thread
    alone: int = 1 << 14  # edges below which one thread is faster than a team
    piece: int = 1 << 18  # edges per call: a few milliseconds, so that Ctrl-C is noticed and members finish together
    cache_vertices: int = 1 << 18  # cached vertices per delivery from a vertex cache
    settled_edges: int = 1 << 22  # edges followed in one call: some tens of milliseconds, so that Ctrl-C is noticed
    settled_outer: int = 1 << 16  # newly marked vertices of other partitions that one call can return
    # Partitions worked on between two records of the trace: about a quarter of a second; members pause for each.
    settled_record: int = 256
    live_iterations: int = 1 << 10  # latest iterations of a trace that are objects; each takes a kilobyte
    # Rows of a result written at once, at most; a Parquet writer needs some 100 bytes for each.
    result_rows: int = 1 << 16
    result_bytes: int = 1 << 20  # bytes of a result written at once, beyond the first row

    # Programs
    # Vertices and arcs of a graph that NumPy searches: kernels are faster, but take a second to compile.
    few_arcs: int = 1 << 12
    search_alone: int = 1 << 9  # edges; a smaller BFS level is followed by one thread
    search_levels: int = 1 << 12  # BFS levels per call
    bucket_entries: int = 2  # bucket entries per vertex: a vertex may be in several buckets
    ranked_piece: int = 1 << 18  # vertices and edges per call: under a millisecond, so that members finish together
    sorted_piece: int = 1 << 20  # labels sorted by one call: some tens of milliseconds
    triangle_piece: int = 1 << 16  # table entries per call
    least_table: int = 1 << 12  # entries of a table of lists: kilobytes
    betweenness_batches: tuple[int, ...] = (8, 4, 2, 1)  # sources that share reads when memory is scarce
    # a piece of 2^18 edges then takes below 0.2 s; reading is a small part of the time long before.
    inputs_at_once: int = 256


now = Sizes()


@contextlib.contextmanager
def using(**changes: Any) -> Iterator[Sizes]:
    """Use other sizes inside `with`. An unknown name is a TypeError."""
    global now
    before = now
    now = replace(before, **changes)
    try:
        yield now
    finally:
        now = before
