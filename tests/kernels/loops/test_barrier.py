"""Threads that meet inside a kernel: nobody runs ahead, and nobody waits for one that will not come."""

from __future__ import annotations

import time

import numpy as np
import pytest

from isthmus.kernels.compile.kernel import kernel
from isthmus.kernels.loops import barrier
from isthmus.threads import Team

ROUNDS = 20_000


@kernel
def write_and_read(member, members, gate, written, rounds):
    """Each round all write its number, and then must read it from all the others; returns how often they did not."""
    wrong = 0
    for k in range(1, rounds + 1):
        written[member * 8] = k
        if not barrier.meet(gate, members, 2 * k - 1):
            return -1
        for other in range(members):
            wrong += written[other * 8] != k
        if not barrier.meet(gate, members, 2 * k):
            return -1
    return wrong


@pytest.mark.parametrize("members", [1, 2, 3])
def test_what_was_written_before_is_there_after(members):
    team, gate, written, wrong = Team(members), barrier.gate(), np.zeros(members * 8, np.int64), [None] * members

    def work(member):
        wrong[member] = write_and_read(member, members, gate, written, ROUNDS)

    team.gang(work, lambda: barrier.abandon(gate))
    team.close()
    assert wrong == [0] * members
    assert gate[barrier.ARRIVED] == 2 * ROUNDS * members


@pytest.mark.parametrize("late", [0, 1, 2])
def test_nobody_waits_for_a_member_that_failed(late):
    team, gate, written, found = Team(3), barrier.gate(), np.zeros(24, np.int64), {}
    write_and_read(0, 1, barrier.gate(), written, 1)  # compiled

    def work(member):
        if member == late:
            time.sleep(0.05)  # others wait by now
            raise ValueError("will not come")
        found[member] = write_and_read(member, 3, gate, written, ROUNDS)

    with pytest.raises(ValueError, match="will not come"):
        team.gang(work, lambda: barrier.abandon(gate))
    assert sorted(found.values()) == [-1, -1]
    team.run(lambda member: found.update({member: "again"}))  # and the team still works
    assert set(found.values()) == {"again"}
    team.close()
