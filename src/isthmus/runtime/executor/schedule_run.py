"""Shifts: each is one schedule while an executor carries it out, with the state that readers and members share.

A run asks the schedule after every step what to fetch and what to run. Readers add what has arrived; members take
pieces of it. The three kinds differ in how units arrive: fetched by readers, by the members themselves, or when a
modelled clock says so.
"""

from __future__ import annotations

import queue
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from typing import Any, Protocol

from isthmus.devices.worker import Piece
from isthmus.engines.engine import Delivery
from isthmus.kernels.compile.compile_clock import clock
from isthmus.runtime.executor.work import Work
from isthmus.schedule.schedule import COMING, NONE, Schedule, UnitStates

Arrival = tuple[int, Delivery] | BaseException | None  # None: look again, the standing has changed


class Readers(Protocol):
    """Threads that fetch units for runs."""

    @property
    def readers(self) -> int: ...

    def begin_thread(self) -> None:
        """A member calls this before it uses near memory."""

    def send(self, schedule_run: ScheduleRun, unit: int) -> None:
        """Queue a unit for the readers to fetch."""


class ScheduleRun:
    """The state of one schedule while it is carried out, shared by readers and members."""

    def __init__(self, schedule: Schedule, work: Work, unit_states: UnitStates, readers: Readers) -> None:
        self.schedule, self.work, self.unit_states, self._readers = schedule, work, unit_states, readers
        self.arrivals: queue.SimpleQueue[Arrival] = queue.SimpleQueue()
        self._arrived: dict[int, deque[Delivery]] = {}
        self._lock = threading.Lock()  # for the standing
        self._taking = threading.Lock()  # held while waiting for a delivery, so finishing one must not take it
        self._counting = threading.Lock()
        self._pieces: list[tuple[int, Delivery, Piece]] = []
        self._next: ScheduleRun | None = None  # its units are fetched when all of these are near
        self.over = self.failed = False
        self.waited = self.worked = 0.0

    def begin(self, schedule: Schedule) -> None:
        """Start fetching the first units; units that are near already can run meanwhile."""
        self.schedule = schedule
        for unit, delivery in self.work.near():
            self._note((unit, delivery))
        self.order()

    def order(self) -> None:
        """Start fetching the units that the schedule asks for."""
        with self._lock:
            self._order()

    def _order(self) -> None:
        schedule, unit_states = self.schedule, self.unit_states
        most = schedule.under_way or self._readers.readers
        while unit_states.coming < most and not self.over:
            unit = schedule.fetch(unit_states)
            if unit == NONE or (schedule.stays and not self._has_place(unit)):
                break
            unit_states.fetched(unit)
            self._send(unit)
        if not unit_states.coming and self._next is not None and not self._next.unit_states.sent:
            self._next.order()

    def _has_place(self, unit: int) -> bool:
        unit_states = self.unit_states
        if not unit_states.room:
            gone = self.schedule.evict(unit_states)
            if gone == NONE:
                return False
            self.work.evict(gone)
            unit_states.evicted(gone)
            unit_states.room += 1
        self.work.reserve(unit)
        unit_states.room -= 1
        return True

    def _send(self, unit: int) -> None:
        self._readers.send(self, unit)

    def arrived(self, unit: int) -> None:
        """Note that all deliveries of a unit are near."""
        with self._lock:
            self.unit_states.arrived(unit)
            self._order()
        self.arrivals.put(None)

    def fetch_next(self, other: ScheduleRun) -> ScheduleRun:
        """Fetch the other run's units when all of these are near."""
        with self._lock:
            self._next = other
            self._order()
        return other

    def drop(self) -> None:
        """Discard all fetched units: wait for those under way, and drop each as it arrives."""
        with self._lock:
            self.over = True
        while True:
            with self._lock:
                nothing_comes = not self.unit_states.coming
            if nothing_comes and self.arrivals.empty():
                return
            arrival = self.arrivals.get()
            if isinstance(arrival, BaseException):
                raise arrival
            if arrival is not None:
                self.work.dropped(arrival[1])

    def member(self, number: int) -> None:
        """Take pieces until there are none; an error in one member ends the run for all."""
        try:
            self._readers.begin_thread()
            while (taken := self._take()) is not None:
                unit, delivery, piece = taken
                if self._run_piece(delivery, piece, number):
                    self._finish(unit, delivery, number)
        except BaseException:
            self.over = self.failed = True
            self.arrivals.put(None)
            raise

    def _run_piece(self, delivery: Delivery, piece: Piece, number: int) -> bool:
        """Run a piece; returns whether it was the delivery's last."""
        start = clock()
        try:
            piece(number)
        except BaseException:
            self.over = self.failed = True
            if self._count(delivery, 0.0):
                self._fail(delivery)
            raise
        return self._count(delivery, clock() - start)

    def _take(self) -> tuple[int, Delivery, Piece] | None:
        with self._taking:
            while not self._pieces and not self.over:
                unit = self._next_run()
                if unit != NONE:
                    self._begin(unit)
                elif not self.over:
                    start = clock()
                    self._hear()
                    self.waited += clock() - start
            return self._pieces.pop() if self._pieces and not self.failed else None

    def _next_run(self) -> int:
        """The unit to run now, marked as started; NONE: wait for an arrival, or the run is over."""
        while not self.arrivals.empty():
            self._note(self.arrivals.get())
        with self._lock:
            return self._choose()

    def _choose(self) -> int:
        schedule, unit_states = self.schedule, self.unit_states
        if schedule.alone and unit_states.running:
            return NONE
        self.work.update_pending(schedule, unit_states)
        unit = schedule.run(unit_states)
        if unit != NONE:
            unit_states.started(unit)
        elif schedule.done(unit_states) and self.arrivals.empty():  # a delivery that has just arrived must still run
            self.over = True
        elif schedule.stays:
            self._order()  # the most urgent unit may have changed
        return unit

    def _hear(self) -> None:
        """Wait until a delivery arrives or the standing changes."""
        self._note(self.arrivals.get())

    def _note(self, arrival: Arrival) -> None:
        if arrival is None:
            return
        if isinstance(arrival, BaseException):
            raise arrival
        unit, delivery = arrival
        self._arrived.setdefault(unit, deque()).append(delivery)
        self.unit_states.ready.append(unit)

    def _begin(self, unit: int) -> None:
        if self.schedule.stays:
            delivery = self.work.kept(unit)
        else:
            delivery = self._arrived[unit].popleft()
            self.unit_states.ready.remove(unit)
        pieces = self.work.pieces(unit, delivery)
        self._hand_out(unit, delivery, pieces)
        if not pieces:
            self._end(unit, delivery)

    def _hand_out(self, unit: int, delivery: Delivery, pieces: list[Piece]) -> None:
        delivery.pieces_left = len(pieces)
        self._pieces = [(unit, delivery, piece) for piece in reversed(pieces)]

    def _count(self, delivery: Delivery, seconds: float) -> bool:
        """Count a finished piece; returns whether it was the delivery's last."""
        with self._counting:
            self.worked += seconds
            delivery.pieces_left -= 1
            return delivery.pieces_left == 0

    def _finish(self, unit: int, delivery: Delivery, number: int) -> None:
        """End a delivery, or run it again: by all members if they wait for it, else by this one, as the others work on
        the next.
        """
        try:
            if not self.schedule.alone:
                self._run_again(unit, delivery, number)
            elif pieces := self._again(unit, delivery):
                self._hand_out(unit, delivery, pieces)
                self.arrivals.put(None)
                return
            self._end(unit, delivery)
        except BaseException:
            self._fail(delivery)
            raise

    def _run_again(self, unit: int, delivery: Delivery, number: int) -> None:
        start = clock()
        while pieces := self._again(unit, delivery):
            for piece in pieces:
                piece(number)
        with self._counting:
            self.worked += clock() - start

    def _again(self, unit: int, delivery: Delivery) -> list[Piece]:
        """The pieces of a delivery's next run; none if there is nothing more to do."""
        if self.failed or not self.schedule.again(unit, 1 + delivery.further_runs):
            return []
        pieces = self.work.again(unit, delivery)
        delivery.further_runs += bool(pieces)
        return pieces

    def _fail(self, delivery: Delivery) -> None:
        """End the run, and free the buffer of a delivery, so that a member waiting for one can see that the run is
        over.
        """
        self.over = self.failed = True
        self.work.dropped(delivery)

    def _end(self, unit: int, delivery: Delivery) -> None:
        self.work.finished(unit, delivery)
        with self._lock:
            self.unit_states.finished(unit)
            if self.schedule.stays:
                self._order()
        self.arrivals.put(None)


class InlineRun(ScheduleRun):
    """A run whose members fetch the units themselves, one after the other."""

    channel = 0

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._sources: deque[tuple[int, Iterator[Delivery]]] = deque()

    def _send(self, unit: int) -> None:
        self._sources.append((unit, self._fetched(unit)))

    def _fetched(self, unit: int) -> Iterator[Delivery]:
        yield from self.work.fetch(unit, self.channel)

    def _hear(self) -> None:
        # Fetching may wait for a buffer that runs again.
        if not self._sources or (self.schedule.alone and self.unit_states.running):
            return super()._hear()
        unit, source = self._sources[0]
        delivery = next(source, None)
        if delivery is not None:
            return self._note((unit, delivery))
        self._sources.popleft()
        return self.arrived(unit)


class Transfers(ABC):
    """Units that cross a modelled link. Their bytes are copied at once, but they arrive when the modelled clock says
    so.
    """

    @abstractmethod
    def send(self, unit: int) -> None: ...

    @abstractmethod
    def arrived(self, waiting: bool) -> int | None:
        """A unit that has arrived, or None. `waiting`: advance the clock until one arrives, if any is under way."""


class ClockedShift(ScheduleRun):
    """A run whose units arrive when a modelled clock says so."""

    def __init__(
        self, schedule: Schedule, work: Work, unit_states: UnitStates, readers: Readers, transfers: Transfers
    ) -> None:
        super().__init__(schedule, work, unit_states, readers)
        self._transfers = transfers
        self._running = False  # whether a unit was running when the schedule was last asked

    def _send(self, unit: int) -> None:
        self._transfers.send(unit)

    def _choose(self) -> int:
        self._running = self.unit_states.running > 0
        if not self._running:
            self._come(False)
        return super()._choose()

    def _hear(self) -> None:
        """Let time pass only if nothing ran when the schedule was asked, and nothing has changed since."""
        if self._running or not self.arrivals.empty():
            return super()._hear()
        with self._lock:
            return self._come(True)

    def _come(self, waiting: bool) -> None:
        unit = self._transfers.arrived(waiting)
        if unit is not None and self.unit_states.places[unit] == COMING:
            self.unit_states.arrived(unit)
            self._order()
