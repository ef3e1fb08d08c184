"""A pool of threads for kernels that release the GIL, with results in order and a bounded number in flight."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

from isthmus.errors import OptionError

Item = TypeVar("Item")
Result = TypeVar("Result")


def default_threads() -> int:
    """Cores this process may run on, or ISTHMUS_THREADS."""
    wish = os.environ.get("ISTHMUS_THREADS", "")
    if wish:
        if not wish.isdigit() or int(wish) < 1:
            raise OptionError(f"ISTHMUS_THREADS: expected a number of threads, got {wish!r}")
        return int(wish)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Pool:
    """Worker threads. Leaving the `with` block drops what has not started and waits for what has."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or default_threads()
        self._executor = ThreadPoolExecutor(self.threads, thread_name_prefix="isthmus")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._executor.shutdown(wait=True, cancel_futures=True)

    def map(self, work: Callable[[Item], Result], items: Iterable[Item], ahead: int = 2) -> Iterator[Result]:
        """Results of `work` in the order of `items`, which are drawn no faster than they are consumed.

        At most `ahead` results beyond one per thread are under way or waiting. The first error in order is
        raised; later ones are dropped.
        """
        pending: deque[Future[Result]] = deque()
        try:
            for item in items:
                pending.append(self._executor.submit(work, item))
                if len(pending) >= self.threads + ahead:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
