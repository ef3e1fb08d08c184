"""Carries out a schedule: readers fetch units and members of a team run them, until the schedule is done.

A unit that has been fetched is a *delivery*. It is cut into pieces of about equally many edges, and members take pieces
as they become free. They go on to the next delivery without waiting for each other, and meet only at the end. The
member that finishes a delivery may run it again at once, if the schedule says so. After every step the schedule is
asked what to fetch and what to run next (`schedule/schedule.py`).

All schedules are carried out here. The three kinds of executor differ in how units arrive: fetched by reader threads,
by the members themselves, or when a modelled clock says so. An error in a reader is raised in the member that takes the
next delivery.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Iterator
from functools import partial

from isthmus.devices.worker import Piece
from isthmus.engines.engine import Delivery
from isthmus.kernels.compile.compile_clock import clock
from isthmus.runtime.executor.buffers import Stopped
from isthmus.runtime.executor.readers import Readers
from isthmus.runtime.executor.work import Runner, StayingWork, Work
from isthmus.schedule.schedule import NONE, Schedule, UnitStates
from isthmus.threads import Team

Arrival = tuple[int, Delivery] | BaseException | None  # None: look again, the units have changed


class Executor:
    """Carries out one schedule, with the state that readers and members share meanwhile."""

    def __init__(self, schedule: Schedule, work: Work, runner: Runner, units: UnitStates, readers: Readers) -> None:
        self.schedule, self.work, self.units = schedule, work, units
        self._runner, self._readers = runner, readers
        self._stays = work if isinstance(work, StayingWork) else None
        self._most_coming = schedule.under_way or readers.link.readers
        self._arrivals: queue.SimpleQueue[Arrival] = queue.SimpleQueue()
        self._deliveries: dict[int, deque[Delivery]] = {}  # that have arrived, by unit
        self._lock = threading.RLock()  # for the units
        self._taking = threading.Lock()  # held while waiting for a delivery, so finishing one must not take it
        self._counting = threading.Lock()
        self._pieces: list[Piece] = []  # of the delivery that was begun last
        self._begun: tuple[int, Delivery]  # its unit, and the delivery
        self._following: Executor | None = None  # its units are fetched when all of these are near
        self._over = self._failed = False
        self._waited = self._worked = 0.0

    def run(self, team: Team | None) -> tuple[float, float]:
        """Fetch and run until the schedule is done; returns (seconds of I/O wait, seconds of compute per member).

        Without a team the calling thread does all the work.
        """
        for arrival in self.work.near:
            self._note(arrival)
        self.order()
        if team is None or team.size == 1:
            self._member(0)
            return self._waited, self._worked
        team.run(self._member)
        return self._waited, self._worked / team.size

    def fetch_ahead(self) -> Executor:
        """The executor of the next iteration, which needs the same units: it fetches them as soon as these are near."""
        again = UnitStates(self.units.places.size)
        self._following = Executor(self.schedule, self.work, self._runner, again, self._readers)
        return self._following

    def continue_with(self, schedule: Schedule, work: Work) -> bool:
        """Use the units that were fetched ahead for this work; False, and they are dropped, if it needs others."""
        if not work.same_as(self.work):
            self.drop()
            return False
        self.schedule, self.work = schedule, work
        return True

    def drop(self) -> None:
        """Discard all fetched units: wait for those under way, and drop each as it arrives."""
        with self._lock:
            self._over = True
        while True:
            with self._lock:
                nothing_comes = not self.units.coming
            if nothing_comes and self._arrivals.empty():
                return
            arrival = self._arrivals.get()
            if isinstance(arrival, BaseException):
                raise arrival
            if arrival is not None:
                self.work.dropped(arrival[1])

    # Fetching

    def order(self) -> None:
        """Start fetching the units that the schedule asks for."""
        schedule, units = self.schedule, self.units
        with self._lock:
            while units.coming < self._most_coming and not self._over:
                unit = schedule.fetch(units)
                if unit == NONE or (self._stays is not None and not self._find_place(self._stays, unit)):
                    break
                units.fetched(unit)
                self._send(unit)
            if self._following is not None and not units.coming and not self._following.units.sent:
                self._following.order()

    def _find_place(self, work: StayingWork, unit: int) -> bool:
        units = self.units
        if not units.free:
            gone = self.schedule.evict(units)
            if gone == NONE:
                return False
            work.evict(gone)
            units.evicted(gone)
            units.free += 1
        work.reserve(unit)
        units.free -= 1
        return True

    def _send(self, unit: int) -> None:
        self._readers.send(partial(self._fetch, unit))

    def _fetch(self, unit: int) -> None:
        """Fetch a unit. Called by a reader."""
        try:
            link = self._readers.link
            link.begin_thread()
            with link.lend() as channel:
                for delivery in self.work.fetch(unit, channel):
                    self._arrivals.put((unit, delivery))
            self._arrived(unit)
        except Stopped:
            raise
        except BaseException as error:
            self._arrivals.put(error)

    def _arrived(self, unit: int) -> None:
        """Note that all deliveries of a unit are near."""
        with self._lock:
            self.units.arrived(unit)
            self.order()
        self._arrivals.put(None)

    # Running

    def _member(self, number: int) -> None:
        """Run pieces until there are none; an error in one member ends the run for all."""
        try:
            self._readers.link.begin_thread()
            while (taken := self._take()) is not None:
                unit, delivery, piece = taken
                if self._run_piece(delivery, piece, number):
                    self._finish(unit, delivery, number)
        except BaseException:
            self._over = self._failed = True
            self._arrivals.put(None)
            raise

    def _take(self) -> tuple[int, Delivery, Piece] | None:
        """The next piece; waits for a delivery if there is none. None: the run is over."""
        with self._taking:
            while not self._pieces and not self._over:
                unit = self._choose()
                if unit != NONE:
                    self._begin(unit)
                elif not self._over:
                    start = clock()
                    self._wait()
                    self._waited += clock() - start
            return (*self._begun, self._pieces.pop()) if self._pieces and not self._failed else None

    def _choose(self) -> int:
        """The unit to run now, marked as started; NONE: wait for an arrival, or the run is over."""
        schedule, units = self.schedule, self.units
        while not self._arrivals.empty():
            if (arrival := self._arrivals.get()) is not None:
                self._note(arrival)
        with self._lock:
            if schedule.alone and units.running:
                return NONE
            if self._stays is not None:
                self._stays.update_pending(schedule, units)
            unit = schedule.run(units)
            if unit != NONE:
                units.started(unit)
            elif schedule.done(units) and self._arrivals.empty():  # a delivery that has just arrived must still run
                self._over = True
            elif self._stays is not None:
                self.order()  # the most urgent unit may have changed
            return unit

    def _wait(self) -> None:
        """Wait until a delivery arrives or the units change."""
        self._note(self._arrivals.get())

    def _note(self, arrival: Arrival) -> None:
        if isinstance(arrival, BaseException):
            raise arrival
        if arrival is not None:
            unit, delivery = arrival
            self._deliveries.setdefault(unit, deque()).append(delivery)
            self.units.ready.append(unit)

    def _begin(self, unit: int) -> None:
        if self._stays is not None:
            delivery = self._stays.near_delivery(unit)
        else:
            delivery = self._deliveries[unit].popleft()
            self.units.ready.remove(unit)
        pieces = self._runner.pieces(delivery, self.work.frontier)
        self._hand_out(unit, delivery, pieces)
        if not pieces:
            self._end(unit, delivery)

    def _hand_out(self, unit: int, delivery: Delivery, pieces: list[Piece]) -> None:
        delivery.pieces_left, self._begun = len(pieces), (unit, delivery)
        self._pieces = pieces[::-1]  # last: from now on members take them

    def _run_piece(self, delivery: Delivery, piece: Piece, number: int) -> bool:
        """Run a piece; returns whether it was the delivery's last."""
        start, done = clock(), False
        try:
            piece(number)
            done = True
        finally:
            if not done:
                self._over = self._failed = True
            with self._counting:
                self._worked += clock() - start
                delivery.pieces_left -= 1
                last = delivery.pieces_left == 0
            if last and not done:
                self._fail(delivery)
        return last

    def _finish(self, unit: int, delivery: Delivery, number: int) -> None:
        """End a delivery, or run it again: by all members if they wait for it, else by this one, as the others work on
        the next.
        """
        try:
            while not self._failed and self.schedule.again(unit, 1 + delivery.further_runs):
                start = clock()
                pieces = self._runner.again(delivery, self.work.frontier)
                delivery.further_runs += bool(pieces)
                if self.schedule.alone and pieces:
                    self._hand_out(unit, delivery, pieces)
                    self._arrivals.put(None)
                    return
                for piece in pieces:
                    piece(number)
                with self._counting:
                    self._worked += clock() - start
                if not pieces:
                    break
            self._end(unit, delivery)
        except BaseException:
            self._fail(delivery)
            raise

    def _end(self, unit: int, delivery: Delivery) -> None:
        self.work.finished(unit, delivery)
        with self._lock:
            self.units.finished(unit)
            if self._stays is not None:
                self.order()
        self._arrivals.put(None)

    def _fail(self, delivery: Delivery) -> None:
        """End the run, and free the buffer of a delivery, so that a member waiting for one can see that the run is
        over.
        """
        self._over = self._failed = True
        self.work.dropped(delivery)


class InlineExecutor(Executor):
    """The members fetch the units themselves, one after the other: for work so small that handing it over would cost
    more.
    """

    _fetching = NONE  # the unit that is fetched
    _source: Iterator[Delivery] | None = None  # its deliveries

    def run(self, team: Team | None) -> tuple[float, float]:
        self._most_coming = 1
        with self._readers.link.lend() as self._channel:
            return super().run(team)

    def _send(self, unit: int) -> None:
        self._fetching = unit

    def _choose(self) -> int:
        while self._fetching != NONE and not self.units.ready and not self._over:
            if self.schedule.alone and self.units.running:  # fetching may wait for a buffer that runs again
                break
            start = clock()
            self._fetch_delivery(self._fetching)
            self._waited += clock() - start
        return super()._choose()

    def _fetch_delivery(self, unit: int) -> None:
        if self._source is None:
            self._source = self.work.fetch(unit, self._channel)
        delivery = next(self._source, None)
        if delivery is not None:
            self._note((unit, delivery))
        else:
            self._fetching, self._source = NONE, None
            self._arrived(unit)
