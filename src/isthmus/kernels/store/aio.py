"""Many reads in flight from one thread: the kernel's native asynchronous I/O, without a library.

`io_submit` and `io_getevents` are called through libc's `syscall`, so the whole loop runs without the GIL. On a
small cloud machine a 4 KB read costs 2.5-4 µs of processor time this way, against 8 µs with one thread per read
in flight; with two cores that difference is what leaves room for the algorithm.

The structures are plain arrays of 64-bit words: an iocb is 8 of them, an io_event 4.

Blocks are checked (`kernels/store/block_checksums.py`) as they arrive, while others are on their way.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
from typing import Any

import numpy as np
from numba import int64, intp, uint64

from isthmus.kernels.compile.kernel import c_function, kernel
from isthmus.kernels.store.block_checksums import BLOCK, FINE, SCRATCH, check_blocks

# io_setup, io_destroy, io_submit, io_getevents
NUMBERS = (
    {"x86_64": (206, 207, 209, 208), "aarch64": (0, 1, 2, 4)}.get(platform.machine())
    if platform.system() == "Linux"
    else None
)
DONE, FAILED, REFUSED, LOST = range(4)  # LOST: reads are in flight and cannot be collected
# Bytes: with fewer, the disk waits at times; more only wait in the kernel, where submitting them blocks.
FLYING = 128 << 20
MOST_FAILURES = 1000  # of io_getevents in a row; a signal makes one of them fail

SPARE: dict[int, list[int]] = {}  # unused contexts by depth: creating and destroying one takes the kernel some 30 ms
os.register_at_fork(after_in_child=SPARE.clear)  # a child does not inherit them

syscall = c_function("syscall", intp, intp, intp, intp, intp, intp, intp)


class Ring:
    """A kernel context that can hold `depth` reads. Not for two threads at once."""

    def __init__(self, depth: int) -> None:
        if NUMBERS is None:
            raise OSError(f"no native asynchronous I/O on {platform.system()} {platform.machine()}")
        self.depth = depth
        self._libc = ctypes.CDLL(None, use_errno=True)
        try:
            self._context = SPARE[depth].pop()
        except (KeyError, IndexError):
            self._context = self._set_up()
        self._control = np.zeros((depth, 8), np.uint64)
        self._pointers = np.zeros(depth, np.uint64)
        self._events = np.zeros((depth, 4), np.uint64)

    def _set_up(self) -> int:
        assert NUMBERS is not None
        context = ctypes.c_ulong(0)
        if self._libc.syscall(NUMBERS[0], self.depth, ctypes.byref(context)) != 0:
            raise OSError(ctypes.get_errno(), "io_setup")
        return context.value

    def read(
        self,
        files: Any,
        sections: Any,
        offsets: Any,
        lengths: Any,
        places: Any,
        buffer: Any,
        piece: int,
        rules: Any,
        sums: Any,
    ) -> tuple[int, int, int, int, int]:
        """Read extent i (lengths[i] bytes at offsets[i] of files[sections[i]]) to buffer[places[i]], in pieces of at
        most `piece`.

        Blocks are checked by the rule of their section. Returns (status, requests, section, block, what a check found).
        FAILED: some read failed or came back short. REFUSED: this block of this section is not as it should be. Nothing
        is in flight any more.
        """
        assert NUMBERS is not None
        result: tuple[int, int, int, int, int] = read_extents(
            self._context,
            NUMBERS[2],
            NUMBERS[3],
            files,
            sections,
            offsets,
            lengths,
            places,
            buffer,
            piece,
            rules,
            sums,
            self._control,
            self._pointers,
            self._events,
        )
        if result[0] == LOST:
            self._replace_context()
            return (FAILED, *result[1:])
        return result

    def _replace_context(self) -> None:
        """Destroy the context, which waits for its reads, and make a new one. Without one all further reads fail."""
        assert NUMBERS is not None
        self._libc.syscall(NUMBERS[1], ctypes.c_ulong(self._context))
        self._context = 0
        with contextlib.suppress(OSError):
            self._context = self._set_up()

    def close(self) -> None:
        """Leave the context to the next ring of this depth; the kernel takes it back when the process ends."""
        if self._context:
            SPARE.setdefault(self.depth, []).append(self._context)
            self._context = 0


@kernel
def read_extents(
    context: Any,
    submit: Any,
    collect: Any,
    files: Any,
    sections: Any,
    offsets: Any,
    lengths: Any,
    places: Any,
    buffer: Any,
    piece: Any,
    rules: Any,
    sums: Any,
    control: Any,
    pointers: Any,
    events: Any,
) -> Any:
    depth = pointers.size
    base, memory = uint64(control.ctypes.data), uint64(buffer.ctypes.data)
    lanes = np.empty(SCRATCH, np.uint64)
    free = np.arange(depth)
    idle = depth
    flying_bytes = int64(0)
    extent = 0
    at = int64(0)
    requests = 0
    failures = 0
    status = DONE
    wrong_section, wrong_block, found = int64(-1), int64(-1), FINE
    while True:
        fresh = 0
        while idle > 0 and flying_bytes < FLYING and extent < lengths.size and status == DONE:
            if at >= lengths[extent]:
                extent += 1
                at = 0
                continue
            idle -= 1
            slot = free[idle]
            size = min(piece, lengths[extent] - at)
            control[slot, 0] = extent * depth + slot
            control[slot, 2] = uint64(files[sections[extent]]) << uint64(32)
            control[slot, 3] = memory + uint64(places[extent] + at)
            control[slot, 4] = size
            control[slot, 5] = offsets[extent] + at
            pointers[fresh] = base + uint64(slot) * uint64(64)
            fresh += 1
            at += size
            flying_bytes += size
        sent = 0
        while sent < fresh:
            taken = syscall(submit, context, fresh - sent, pointers.ctypes.data + sent * 8, 0, 0)
            if taken <= 0:
                break
            sent += taken
        requests += sent
        for k in range(sent, fresh):  # refused: the caller repeats the whole read with plain reads
            free[idle] = int64((pointers[k] - base) // uint64(64))
            idle += 1
            status = FAILED  # nothing more is submitted, so the bytes in flight no longer matter
        flying = depth - idle
        if flying == 0:
            return status, requests, wrong_section, wrong_block, found
        # Collect in batches: fewer system calls, and the queue stays at least three quarters full.
        least = max(1, flying // 4) if status == DONE else flying
        got = syscall(collect, context, least, depth, events.ctypes.data, 0)
        if got < 0:  # mostly interrupted by a signal: ask again
            failures += 1
            if failures == MOST_FAILURES:
                return LOST, requests, wrong_section, wrong_block, found
            continue
        failures = 0
        for k in range(got):
            slot = int64(events[k, 0]) % depth
            free[idle] = slot
            idle += 1
            size = int64(control[slot, 4])
            flying_bytes -= size
            if int64(events[k, 2]) != size:
                status = FAILED
            if status != DONE:
                continue
            section = sections[int64(events[k, 0]) // depth]
            first = int64(control[slot, 5]) // BLOCK
            found, wrong_block = check_blocks(
                buffer, int64(control[slot, 3] - memory), size, first, rules[section], sums, lanes
            )
            if found != FINE:
                status, wrong_section = REFUSED, section
