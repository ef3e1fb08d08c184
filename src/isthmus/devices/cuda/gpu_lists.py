"""Positions of lists in a card's memory, which stay there from run to run."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack

import numpy as np

from isthmus.devices.cuda.card import Card
from isthmus.devices.cuda.gpu_space import CardSpace
from isthmus.graph.lists import Lists
from isthmus.link.link import Array


class CardLists:
    """Lists that were uploaded once, each as (begins, ends); those without gaps are two views of one array there
    too.
    """

    def __init__(self, card: Card) -> None:
        self._space = CardSpace(card)
        # by id: lists, what is to be freed, views.
        self._held: dict[int, tuple[Lists, tuple[Array, ...], tuple[Array, Array]]] = {}

    def there(self, lists: Lists) -> tuple[Array, Array]:
        """Begins and ends in near memory."""
        if id(lists) not in self._held:
            self._held[id(lists)] = (lists, *self._uploaded(lists))
        return self._held[id(lists)][2]

    def _uploaded(self, lists: Lists) -> tuple[tuple[Array, ...], tuple[Array, Array]]:
        if lists.has_gaps or not len(lists):
            host: tuple[Array, ...] = np.ascontiguousarray(lists.begins), np.ascontiguousarray(lists.ends)
        else:
            host = (np.append(lists.begins, lists.ends[-1]),)
        near = self._all_uploaded(host)
        return near, (near[0], near[1]) if len(near) == 2 else (near[0][:-1], near[0][1:])

    def _all_uploaded(self, host: tuple[Array, ...]) -> tuple[Array, ...]:
        """Arrays in near memory; if one does not fit, none stays there."""
        near: list[Array] = []
        try:
            for each in host:
                near.append(self._space.upload(each))
        except BaseException:
            with ExitStack() as last:
                for each in near:
                    last.callback(self._space.free, each)
                self._space.finish()
            raise
        self._space.finish()  # before what the host has uploaded is freed
        return tuple(near)

    def keep_only(self, some: Iterable[Lists]) -> None:
        """Free all other lists; no run uses them any more."""
        wanted = {id(lists) for lists in some}
        for key in [key for key in self._held if key not in wanted]:
            for near in self._held.pop(key)[1]:
                self._space.free(near)

    def close(self) -> None:
        self._held.clear()
        self._space.close()
