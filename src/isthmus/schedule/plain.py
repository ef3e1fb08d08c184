"""What to run next. A schedule is asked again after every task, since others depend on what is still pending."""

from __future__ import annotations

from abc import ABC, abstractmethod

from isthmus.engines.engine import Task


class Schedule(ABC):
    """Pure: the same tasks give the same answer."""

    @abstractmethod
    def next(self, tasks: list[Task]) -> int:
        """Index of the task to run next among those that are left."""


class Plain(Schedule):
    """In the order of the partitions."""

    def next(self, tasks: list[Task]) -> int:
        return 0
