"""Carries out a schedule: reader threads fetch units and members of a team run them, until the schedule is done.

A unit that has been fetched is a *delivery*. It is cut into pieces of about equally many edges, and members take pieces
as they become free. They go on to the next delivery without waiting for each other, and meet only at the end. The
member that finishes a delivery may run it again at once, if the schedule says so. After every step the schedule is
asked what to fetch and what to run next (`schedule/schedule.py`). All schedules are carried out here; `schedule_run.py`
has the state of one meanwhile.

An error in a reader is raised in the member that takes the next delivery. Closing stops the readers at their next
buffer.
"""

from __future__ import annotations

import queue
import threading

from isthmus.link.link import Link
from isthmus.runtime.executor.buffers import Stopped
from isthmus.runtime.executor.schedule_run import ClockedShift, InlineRun, ScheduleRun, Transfers
from isthmus.runtime.executor.work import Work
from isthmus.schedule.schedule import Schedule, UnitStates
from isthmus.threads import Team, uninterrupted


class Executor:
    """Reader threads in front of a link, and a team. It carries out one schedule at a time."""

    def __init__(self, link: Link, team: Team) -> None:
        self._link, self._team = link, team
        self._orders: queue.SimpleQueue[tuple[ScheduleRun, int] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._ahead: ScheduleRun | None = None  # units that are fetched ahead for the next iteration

    @property
    def readers(self) -> int:
        return self._link.readers

    def begin_thread(self) -> None:
        self._link.begin_thread()

    def carry_out(
        self, schedule: Schedule, work: Work, unit_states: UnitStates, few: bool = False, ahead: bool = False
    ) -> tuple[float, float]:
        """Fetch and run until the schedule is done.

        `few`: there is too little work for more than one thread. `ahead`: the next iteration needs the same units, so
        fetch them as soon as these are near. Returns (seconds of I/O wait, seconds of compute per member).
        """
        schedule_run = self._taken_from_ahead(work) or ScheduleRun(schedule, work, unit_states, self)
        schedule_run.begin(schedule)
        if ahead:
            self._ahead = schedule_run.fetch_next(
                ScheduleRun(schedule, work, UnitStates(unit_states.places.size), self)
            )
        return self._run(schedule_run, few)

    def carry_out_here(self, schedule: Schedule, work: Work, unit_states: UnitStates, few: bool) -> tuple[float, float]:
        """The same without readers: members fetch units themselves. For work so small that handing it over would cost
        more.
        """
        schedule_run = InlineRun(schedule, work, unit_states, self)
        schedule_run.begin(schedule)
        with self._link.lend() as schedule_run.channel:
            return self._run(schedule_run, few)

    def carry_out_clocked(
        self, schedule: Schedule, work: Work, unit_states: UnitStates, transfers: Transfers, few: bool
    ) -> None:
        """The same on a modelled device: its clock decides when units arrive."""
        schedule_run = ClockedShift(schedule, work, unit_states, self, transfers)
        schedule_run.begin(schedule)
        self._run(schedule_run, few)

    def _run(self, schedule_run: ScheduleRun, few: bool) -> tuple[float, float]:
        if few or self._team.size == 1:
            schedule_run.member(0)
            return schedule_run.waited, schedule_run.worked
        self._team.run(schedule_run.member)
        return schedule_run.waited, schedule_run.worked / self._team.size

    def _taken_from_ahead(self, work: Work) -> ScheduleRun | None:
        """The units that were fetched ahead, if they are the ones needed now; others are dropped."""
        schedule_run, self._ahead = self._ahead, None
        if schedule_run is None:
            return None
        if work.same_as(schedule_run.work):
            schedule_run.work = work
            return schedule_run
        self._ahead = schedule_run
        self.drop_ahead()
        return None

    def drop_ahead(self) -> None:
        """Drop the units that were fetched ahead."""
        schedule_run, self._ahead = self._ahead, None
        if schedule_run is not None:
            schedule_run.drop()

    def send(self, schedule_run: ScheduleRun, unit: int) -> None:
        """Queue a unit for the readers to fetch."""
        if not self._threads:
            uninterrupted(self._start_readers)
        self._orders.put((schedule_run, unit))

    def _start_readers(self) -> None:
        for number in range(self._link.readers):
            thread = threading.Thread(target=self._fetch_orders, name=f"isthmus-reader-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def _fetch_orders(self) -> None:
        while (order := self._orders.get()) is not None:
            schedule_run, unit = order
            try:
                self._link.begin_thread()
                with self._link.lend() as channel:
                    for delivery in schedule_run.work.fetch(unit, channel):
                        schedule_run.arrivals.put((unit, delivery))
                schedule_run.arrived(unit)
            except Stopped:
                return
            except BaseException as error:
                schedule_run.arrivals.put(error)
            del schedule_run, order

    def close(self) -> None:
        """Stop the readers and wait for them. Close the pool of buffers first, as readers may be waiting for a buffer.

        Call it `uninterrupted`: until the readers have ended, they use the link and near memory.
        """
        for _ in self._threads:
            self._orders.put(None)
        for thread in self._threads:
            thread.join()
        # Units fetched ahead refer to this executor: a cycle that would hold the state of a run.
        self._threads, self._ahead = [], None
