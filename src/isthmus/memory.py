"""Sizes in bytes, and the ledger of a memory budget.

A budget limits the bytes that an ingest or a run holds at once. Code that needs much memory asks the ledger first, and
uses the disk when the ledger refuses.
"""

from __future__ import annotations

import contextlib
import ctypes
import re
import sys
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from isthmus.errors import BudgetError, OptionError
from isthmus.messages import option

UNITS = {
    "": 1, "b": 1,
    "k": 10**3, "kb": 10**3, "m": 10**6, "mb": 10**6, "g": 10**9, "gb": 10**9, "t": 10**12, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
DEFAULT_SHARE = 0.6  # of the RAM available to the process
CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUP = Path("/proc/self/cgroup")


def parse_size(size: str | int) -> int:
    """Bytes meant by '512MB', '2GiB' or a plain number. MB is 10**6 bytes, MiB 2**20."""
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([a-zA-Z]*)\s*", str(size))
    count = Decimal(match[1]) * UNITS.get(match[2].lower(), 0) if match else Decimal(0)
    if not match or match[2].lower() not in UNITS or isinstance(size, bool) or 0 < count < 1:
        share = f"; write {float(100 * count):g}% for that share of the edges" if 0 < count < 1 else ""
        raise OptionError(
            f"memory: expected a size such as 512MB, 2GB or 1.5GiB, or for a run a share such as 10%, got "
            f"{size!r}{share}"
        )
    return int(count)


def share_of(memory: str | int | None) -> float | None:
    """The share of the edges that a budget such as "10%" names; None: it is not a share."""
    found = re.fullmatch(r"\s*([0-9.]+)\s*%\s*", memory) if isinstance(memory, str) else None
    if found is None:
        return None
    try:
        return float(found[1]) / 100
    except ValueError:
        raise OptionError(f"memory: expected a share such as 10%, got {found[1]}%") from None


def format_size(count: float) -> str:
    """A count of bytes in readable form, such as '1.5 GB'."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 999.5:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def available() -> int:
    """Bytes of RAM this process may still allocate: free memory, or less if a cgroup limits it."""
    free = 2**62
    with contextlib.suppress(OSError):
        text = Path("/proc/meminfo").read_text()
        free = int(re.search(r"MemAvailable:\s+(\d+)", text)[1]) * 1024  # type: ignore[index]
    for group in own_cgroups():
        for limit, used, cache in (
            ("memory.max", "memory.current", "inactive_file"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ):
            with contextlib.suppress(OSError, ValueError):  # "max" means no limit
                taken = int((group / used).read_text()) - droppable(group / "memory.stat", cache)
                free = min(free, int((group / limit).read_text()) - taken)
    return max(free, 0) if free < 2**62 else 2 * 2**30


def own_cgroups() -> list[Path]:
    """Folders of the control groups this process is in, and of their parents, whose limits apply as well."""
    paths = [CGROUPS, CGROUPS / "memory"]
    with contextlib.suppress(OSError):
        for line in OWN_CGROUP.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers in ("", "memory"):
                inner = CGROUPS / controllers / path.lstrip("/")
                paths += [folder for folder in (inner, *inner.parents) if CGROUPS in folder.parents]
    return paths


def droppable(stat: Path, name: str) -> int:
    """Bytes of page cache that are charged to the group, though the kernel frees them on demand."""
    match = re.search(rf"^{name} (\d+)$", stat.read_text(), re.MULTILINE) if stat.exists() else None
    return int(match[1]) if match else 0


def peak_rss() -> int:
    """Peak resident memory of this process, in bytes.

    getrusage is not used: its maximum includes the memory of the parent at the fork.
    """
    with contextlib.suppress(OSError):
        match = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
        if match:
            return int(match[1]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def give_memory_back() -> None:
    """Ask the C library, and Arrow if it is loaded, to return freed memory to the system: later steps need it."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):  # glibc has it
        libc.malloc_trim(0)


class Budget:
    """A ledger of bytes. Thread-safe."""

    def __init__(self, memory: str | int | None = None) -> None:
        self.limit = int(available() * DEFAULT_SHARE) if memory is None else parse_size(memory)
        self.taken = 0
        self.peak = 0
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Enter `size` bytes if they fit; otherwise return False and change nothing."""
        with self._lock:
            if self.taken + size > self.limit:
                return False
            self.taken += size
            self.peak = max(self.peak, self.taken)
            return True

    def give_back(self, size: int) -> None:
        with self._lock:
            self.taken -= size

    @contextlib.contextmanager
    def holding(self, size: int, what: str) -> Iterator[None]:
        """Hold `size` bytes inside `with`; a BudgetError if they do not fit."""
        if not self.take(size):
            least = self.taken + size
            raise BudgetError(
                f"{what} needs {format_size(size)} beside {format_size(self.taken)} already in use, "
                f"but the budget is {format_size(self.limit)}; give "
                f"{option('memory', f'{least // 10**6 + 1}MB')} or more"
            )
        try:
            yield
        finally:
            self.give_back(size)

    @property
    def left(self) -> int:
        return self.limit - self.taken
