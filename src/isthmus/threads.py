"""A pool of threads for kernels that release the GIL, with results in order and a bounded number in flight."""

from __future__ import annotations

import itertools
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np

from isthmus.checks import whole
from isthmus.errors import OptionError

MOST = 1024  # threads; a larger number is a typing error
# Work of a member, and who has ended.
Inbox = queue.SimpleQueue[tuple[Callable[[int], None], list[BaseException | None]] | None]
Item = TypeVar("Item")
Result = TypeVar("Result")


def default_threads() -> int:
    """Cores this process may run on, or ISTHMUS_THREADS."""
    wish = os.environ.get("ISTHMUS_THREADS", "")
    if wish:
        if not wish.isdecimal() or int(wish) < 1:
            raise OptionError(f"ISTHMUS_THREADS: expected a number of threads, got {wish!r}")
        return whole("ISTHMUS_THREADS", int(wish), 1, MOST)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def checked(threads: int | None) -> int:
    """The requested number of threads, or the default."""
    if threads is None:
        return default_threads()
    return whole("threads", threads, 1, MOST)


class Pool:
    """Worker threads. Leaving the `with` block cancels work that has not started and waits for the rest."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = checked(threads)
        self._executor = ThreadPoolExecutor(self.threads, thread_name_prefix="isthmus")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._executor.shutdown(wait=True, cancel_futures=True)

    def map(
        self, work: Callable[[Item], Result], items: Iterable[Item], ahead: int = 2
    ) -> Generator[Result, None, None]:
        """Results of `work` in the order of `items`. Items are drawn only as results are consumed.

        At most `ahead` results beyond one per thread are under way or waiting. The first error in order is
        raised; later ones are dropped. When the iterator ends, fails or is closed, none of its work still runs,
        so files and buffers that the work uses may be closed.
        """
        pending: deque[Future[Result]] = deque()
        try:
            for item in items:
                pending.append(self._executor.submit(work, item))
                if len(pending) >= self.threads + ahead:
                    yield take_first(pending)
            while pending:
                yield take_first(pending)
        finally:
            wait([future for future in pending if not future.cancel()])
            if isinstance(items, Generator):
                items.close()  # and the file it may be reading


def take_first(pending: deque[Future[Result]]) -> Result:
    """Wait for the first result. It stays in `pending` meanwhile, so that an interrupt does not lose it."""
    result = pending[0].result()
    pending.popleft()
    return result


def uninterrupted(work: Callable[[], None]) -> None:
    """Run `work` to its end, whatever signals arrive; an interrupt is raised afterwards.

    Python raises interrupts in the main thread only. So a call of the main thread runs `work` in another thread, and
    waits.
    """
    if threading.current_thread() is not threading.main_thread():
        work()
        return
    waiting, ended = [work], list[BaseException | None]()
    news: queue.SimpleQueue[None] = queue.SimpleQueue()
    interrupt: BaseException | None = None
    thread: threading.Thread | None = None

    def run() -> None:
        failure: BaseException | None = None
        try:
            task = waiting.pop()
        except IndexError:  # an interrupt came while a thread was started, and so another was started
            return
        try:
            task()
        except BaseException as error:
            failure = error
        ended.append(failure)
        news.put(None)

    while not ended:
        try:
            if waiting:
                thread = threading.Thread(target=run, name="isthmus-uninterrupted", daemon=True)
                thread.start()
            news.get()
        except RuntimeError:  # no thread can be started
            run()
        except BaseException as error:
            interrupt = error
    if thread is not None and thread.is_alive():
        thread.join()
    failure = interrupt or ended[0]
    if failure is not None:
        raise failure


class Team:
    """Threads that run one function together and meet again: a fork-join of some tens of microseconds.

    The calling thread is member 0. Meant for kernels that release the GIL.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.size = checked(threads)
        self._work: list[Inbox] = []
        self._done: queue.SimpleQueue[None] = queue.SimpleQueue()  # look again, a member has ended its work
        self._threads: list[threading.Thread] = []
        try:
            for member in range(1, self.size):
                inbox: Inbox = queue.SimpleQueue()
                thread = threading.Thread(
                    target=self._serve, args=(member, inbox), name=f"isthmus-team-{member}", daemon=True
                )
                thread.start()
                self._work.append(inbox)
                self._threads.append(thread)
        except BaseException:  # the system has no room for more threads
            self.close()
            raise

    def _serve(self, member: int, inbox: Inbox) -> None:
        while (order := inbox.get()) is not None:
            work, ended = order
            failure: BaseException | None = None
            try:
                work(member)
            except BaseException as error:
                failure = error
            del work, order  # release all that it holds before the caller continues
            ended.append(failure)
            del ended, failure
            self._done.put(None)

    def run(self, work: Callable[[int], None], abandon: Callable[[], None] | None = None) -> None:
        """Run work(member) on every member and wait for all; raises the error of the first member that failed.

        `abandon` is called when a member fails, so that others do not wait for it.
        """
        failure: BaseException | None = None
        sent = 0
        ended: list[BaseException | None] = []
        while not self._done.empty():
            self._done.get()
        try:
            for inbox in self._work:
                sent += 1
                inbox.put((work, ended))
            work(0)
        except BaseException as error:
            failure = error
            if abandon is not None:
                abandon()
        while len(ended) < sent:  # counted by the members: an interrupt may lose what `get` has just taken
            try:
                self._done.get()
            except BaseException as error:  # members still use the caller's arrays
                failure = failure or error
                if abandon is not None:
                    abandon()
        failure = failure or next((error for error in ended if error is not None), None)
        if failure is not None:
            raise failure

    def gang(self, work: Callable[[int], None], abandon: Callable[[], None]) -> None:
        """As `run`, for kernels whose members wait for each other: `abandon` tells them that one has failed."""

        def member(number: int) -> None:
            try:
                work(number)
            except BaseException:
                abandon()
                raise

        self.run(member, abandon)

    def share(self, work: Callable[[int, int], None], count: int) -> None:
        """Run work(member, 0) ... work(member, count - 1); each free member takes the next."""
        if count <= 1 or self.size == 1:
            for index in range(count):
                work(0, index)
            return
        turns = itertools.count()
        stop = False

        def member(number: int) -> None:
            nonlocal stop
            try:
                while (index := next(turns)) < count and not stop:
                    work(number, index)
            except BaseException:
                stop = True
                raise

        self.run(member)

    def share_by_size(
        self, work: Callable[[int, int, int], None], sizes_so_far: np.ndarray[Any, Any], few: int
    ) -> None:
        """Run work(member, first, last) on parts of about equal size; member 0 takes all if there are at most `few`
        items.
        """
        count = sizes_so_far.size
        if count <= few or self.size == 1:
            work(0, 0, count)
            return
        parts = 8 * self.size
        cuts = [0, *np.searchsorted(sizes_so_far, np.linspace(0, sizes_so_far[-1], parts + 1)[1:-1]).tolist(), count]
        self.share(lambda member, k: work(member, cuts[k], cuts[k + 1]), parts)

    def each(self, work: Callable[[int], None], count: int) -> None:
        """Run work(0) ... work(count - 1); each free member takes the next."""
        self.share(lambda _, index: work(index), count)

    def split(self, work: Callable[[int, int], Result], size: int) -> list[Result]:
        """Run work(first, last) on even parts of 0:size, one per member; returns the results in order, none if size is
        0.
        """
        step = -(-size // self.size) or 1
        found: dict[int, Result] = {}

        def part(index: int) -> None:
            found[index] = work(index * step, min((index + 1) * step, size))

        count = -(-size // step)
        self.each(part, count)
        return [found[index] for index in range(count)]

    def dismiss(self) -> None:
        """Let the members end, without waiting for them."""
        for inbox in self._work:
            inbox.put(None)

    def close(self) -> None:
        self.dismiss()
        for thread in self._threads:
            thread.join()
        self._work, self._threads = [], []
