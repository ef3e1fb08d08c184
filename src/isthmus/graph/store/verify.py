"""Checking a store: every block against its checksum, then the arrays against each other.

Checksums find damage; the structure checks find a store that was written incorrectly. The two directions of the edges
are compared by sums of a hash of each arc, which agree only if both hold the same arcs.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.checks import path_of
from isthmus.graph.store.blocks import damaged, table_digest
from isthmus.graph.store.files import BLOCK, Array
from isthmus.graph.store.store import CHECKSUMS, Store
from isthmus.kernels.store import list_checks as kernels
from isthmus.progress import SILENT, Progress
from isthmus.threads import Pool

BLOCKS_AT_ONCE = 1024
MOST_NAMED = 20  # damaged blocks listed one by one
VERTICES_AT_ONCE = 1 << 16


@dataclass
class Verdict:
    """The findings of `verify`; empty `problems` means the store is sound."""

    blocks: int = 0  # that were compared with their checksums
    bytes: int = 0  # of these blocks
    problems: list[str] = field(default_factory=list)  # one line for each

    @property
    def ok(self) -> bool:
        """Whether the store is sound."""
        return not self.problems


def verify(path: str | Path, *, threads: int | None = None, progress: Progress = SILENT) -> Verdict:
    """Check the store at `path` (or of an open graph): all checksums, and that its contents agree.

    Damage is reported by section and block. Raises StoreError if the store cannot be opened.
    """
    store = Store(path_of("verify", getattr(path, "path", path)), verify=False)  # checksums are compared here, once
    verdict = Verdict()
    with closing(store), Pool(threads) as pool:
        sections = store.manifest.sections
        progress.stage("checksums", sum(section.blocks for section in sections.values()) * BLOCK, "B")
        for name in sections:
            check_blocks(store, name, verdict, pool, progress)
        if verdict.ok:
            check_structure(store, verdict, pool, progress)
    if len(verdict.problems) > MOST_NAMED:
        more = len(verdict.problems) - MOST_NAMED
        verdict.problems[MOST_NAMED:] = [f"and {more} more"]
    return verdict


def check_blocks(store: Store, name: str, verdict: Verdict, pool: Pool, progress: Progress) -> None:
    section = store.manifest.sections[name]
    if table_digest(store.file(name + CHECKSUMS), section.blocks) != section.checksums:
        verdict.problems.append(f"section {name}{CHECKSUMS}: the table of block checksums is damaged")

    def check(first: int) -> tuple[int, list[int]]:
        count = min(BLOCKS_AT_ONCE, section.blocks - first)
        found = damaged(store.read_blocks(name, first, count), store.read_checksums(name, first, count))
        return count, [first + block for block in found]

    for count, bad in pool.map(check, range(0, section.blocks, BLOCKS_AT_ONCE)):
        verdict.blocks += count
        verdict.bytes += count * BLOCK
        progress.advance(count * BLOCK)
        for block in bad:
            where = f"bytes {block * BLOCK} to {block * BLOCK + BLOCK - 1}"
            verdict.problems.append(f"section {name}, block {block} ({where}): the checksum does not match")


def check_structure(store: Store, verdict: Verdict, pool: Pool, progress: Progress) -> None:
    """Offsets ascend, lists are sorted and in range, ids ascend, both directions hold the same arcs."""
    manifest = store.manifest
    sides = ["out", *(["in"] if "in.offsets" in store else [])]
    progress.stage("structure", manifest.arcs * len(sides), "arcs")
    sums = {side: check_lists(store, side, verdict, pool, progress) for side in sides}
    if not verdict.ok:
        return
    forward, backward, loops = sums["out"]
    if not manifest.directed and forward != backward:
        verdict.problems.append("section out.targets: undirected, but some edges are stored in one direction only")
    if "in" in sums and sums["in"][:2] != (backward, forward):
        verdict.problems.append("section in.targets: does not hold the same edges as out.targets")
    if loops != manifest.self_loops:  # the edge and arc counts were checked against this count on opening
        verdict.problems.append(f"manifest: claims {manifest.self_loops} self loops, the lists hold {loops}")
    check_ids(store, verdict)
    if manifest.order == "hub":
        check_order(store, verdict)


def check_order(store: Store, verdict: Verdict) -> None:
    natural, inverse = store.read("order.to_natural"), store.read("order.from_natural")
    numbers = np.arange(natural.size, dtype=natural.dtype)
    # On a finite range, a one-sided inverse is the inverse of a permutation.
    if (natural >= natural.size).any() or not np.array_equal(inverse[natural], numbers):
        verdict.problems.append("section order.to_natural: not a permutation with order.from_natural as its inverse")


def check_lists(store: Store, side: str, verdict: Verdict, pool: Pool, progress: Progress) -> tuple[int, int, int]:
    """Hash sums of the arcs, forward and backward, and the self loops."""
    manifest = store.manifest
    n = manifest.vertices

    def check(first: int) -> tuple[Any, ...]:
        offsets = store.read(f"{side}.offsets", first, min(first + VERTICES_AT_ONCE, n) + 1)
        if offsets[0] < 0 or offsets[-1] > manifest.arcs or (offsets[1:] < offsets[:-1]).any():
            return first, int(offsets[0]), int(offsets[-1]), 0, 0, 0, "offsets do not ascend"
        forward = backward = loops = 0
        for begin in range(int(offsets[0]), int(offsets[-1]), sizes.now.verified_arcs):
            end = min(begin + sizes.now.verified_arcs, int(offsets[-1]))
            # Overlap by one arc, so that the order is also checked across the cut.
            overlap = 1 if begin > offsets[0] else 0
            targets = store.read(f"{side}.targets", begin - overlap, end)
            weights, problem = weight_bits(store, side, begin - overlap, end)
            if problem:
                return first, int(offsets[0]), int(offsets[-1]), 0, 0, 0, problem
            status, more_forward, more_backward, more_loops = kernels.check_lists(
                offsets, begin - overlap, overlap, targets, weights, first, n, not manifest.parallel
            )
            if status:
                return first, int(offsets[0]), int(offsets[-1]), 0, 0, 0, kernels.PROBLEMS[status]
            forward, backward, loops = (
                forward + int(more_forward),
                backward + int(more_backward),
                loops + int(more_loops),
            )
        return first, int(offsets[0]), int(offsets[-1]), forward, backward, loops, ""

    totals = [0, 0, 0]
    expected = int(store.read(f"{side}.offsets", 0, 1)[0])
    if expected:
        verdict.problems.append(f"section {side}.offsets: starts at {expected}, expected 0")
        return 0, 0, 0
    for first, begin, end, forward, backward, loops, problem in pool.map(check, range(0, n, VERTICES_AT_ONCE)):
        if problem or begin != expected:
            verdict.problems.append(
                f"section {side}.targets, vertices from {first} on: {problem or 'offsets do not meet'}"
            )
            return 0, 0, 0
        expected = end
        totals = [totals[0] + forward, totals[1] + backward, totals[2] + loops]
        progress.advance(end - begin)
    if expected != manifest.arcs:
        verdict.problems.append(f"section {side}.offsets: ends at {expected}, expected {manifest.arcs}")
    return totals[0] % 2**64, totals[1] % 2**64, totals[2]


def weight_bits(store: Store, side: str, begin: int, end: int) -> tuple[Array | None, str]:
    """The bits of some weights, and the problem with them, if there is one."""
    if not store.manifest.weighted:
        return None, ""
    weights = store.read(f"{side}.weights", begin, end)
    problem = "" if np.isfinite(weights).all() else "a weight is not a finite number"
    if not store.manifest.negative_weights and (weights < 0).any():
        problem = "a weight is negative, and the manifest claims that none is"
    return weights.view(np.uint32 if weights.itemsize == 4 else np.uint64), problem


def check_ids(store: Store, verdict: Verdict) -> None:
    manifest = store.manifest
    if manifest.ids in ("int64", "uint64"):
        last = None
        for at in range(0, manifest.vertices, sizes.now.verified_arcs):
            values = store.read("ids.values", at, min(at + sizes.now.verified_arcs, manifest.vertices))
            if (values[1:] <= values[:-1]).any() or (last is not None and values[0] <= last):
                verdict.problems.append("section ids.values: ids do not ascend")
                return
            last = values[-1]
    elif manifest.ids == "string":
        check_strings(store, verdict)


def check_strings(store: Store, verdict: Verdict) -> None:
    manifest = store.manifest
    last: bytes | None = None
    ends = store.read("ids.offsets", 0, 1)[0], store.read("ids.offsets", manifest.vertices, manifest.vertices + 1)[0]
    if ends != (0, manifest.sections["ids.bytes"].count):
        verdict.problems.append("section ids.offsets: does not start at 0 and end where ids.bytes does")
        return
    for at in range(0, manifest.vertices, VERTICES_AT_ONCE):
        offsets = store.read("ids.offsets", at, min(at + VERTICES_AT_ONCE, manifest.vertices) + 1)
        if offsets[0] < 0 or (offsets[1:] < offsets[:-1]).any() or offsets[-1] > manifest.sections["ids.bytes"].count:
            verdict.problems.append("section ids.offsets: offsets do not ascend within ids.bytes")
            return
        data = store.read("ids.bytes", int(offsets[0]), int(offsets[-1])).tobytes()
        bounds = (offsets - offsets[0]).tolist()
        names = [data[begin:end] for begin, end in pairwise(bounds)]
        if not all(is_text(name) for name in names):
            verdict.problems.append("section ids.bytes: an id is not UTF-8")
            return
        if last is not None:
            names.insert(0, last)
        if any(a >= b for a, b in pairwise(names)):
            verdict.problems.append("section ids.bytes: ids do not ascend")
            return
        last = names[-1]


def is_text(name: bytes) -> bool:
    """Whether `name` is UTF-8."""
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True
