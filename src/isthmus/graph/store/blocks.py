"""Checksums of blocks. Every file of a store is a sequence of blocks, and a table has the XXH3-64 of each.

The manifest has the checksum of every table, so a block belongs to its section and its store: exchanged files do not
match.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xxhash

from isthmus.errors import StoreError
from isthmus.graph.store.files import BLOCK, Array, OpenFile

FEW = 32  # blocks that the xxhash package hashes: a look-up then does not load compiled code
TABLE_PIECE = 1 << 20  # bytes of a table read at once


def checksums(data: Array) -> Array:
    """The checksums of the blocks of `data`, an array of bytes."""
    count = data.size // BLOCK
    if count <= FEW:
        blocks = data.data
        return np.array(
            [xxhash.xxh3_64_intdigest(blocks[at : at + BLOCK]) for at in range(0, data.size, BLOCK)], np.uint64
        )
    from isthmus.kernels.store.block_checksums import hash_blocks

    sums = np.empty(count, np.uint64)
    hash_blocks(data, sums)
    return sums


def damaged(data: Array, sums: Array) -> list[int]:
    """Numbers of the blocks of `data` that do not have these checksums."""
    found: list[int] = np.flatnonzero(checksums(data) != sums).tolist()
    return found


def wrong_sum(path: Any, block: int) -> StoreError:
    return StoreError(
        f"{path}: block {block} at byte {block * BLOCK}: the checksum does not match; the store is damaged"
    )


def table_digest(file: OpenFile, blocks: int, table: Array | None = None) -> str:
    """The checksum of a table of checksums; `table`: an array to fill with it."""
    memory = np.empty(min(blocks * 8, TABLE_PIECE), np.uint8) if table is None else table.view(np.uint8)
    hashed = xxhash.xxh3_64()
    for at in range(0, blocks * 8, TABLE_PIECE):
        size = min(TABLE_PIECE, blocks * 8 - at)
        piece = memory[:size] if table is None else memory[at : at + size]
        file.read(piece.data, at)
        hashed.update(piece.data)
    return hashed.hexdigest()


def check_table(file: OpenFile, blocks: int, digest: str, table: Array | None = None) -> None:
    """Compare a table of checksums with its own checksum in the manifest; `table`: an array to fill with it."""
    if table_digest(file, blocks, table) != digest:
        raise StoreError(f"{file.path}: is not the table of checksums that the manifest names; the store is damaged")
