"""Scores brought up to date by sweeps over all in-edges, from where they are: for batches after which residuals are everywhere.

A sweep sets one value after the other to what it should be by its in-neighbours, in a tenth of the time that pushing takes along as many
edges. After a batch few sweeps suffice, since what it changed sums up to little, and what one vertex gains another loses. The last
pass leaves the values and measures what they lack: these are the residuals from then on, exact but for rounding.
"""

from __future__ import annotations

import numpy as np

from isthmus import sizes
from isthmus.graph.packed_lists import PackedLists
from isthmus.kernels import deltas, sweeps
from isthmus.programs.program import Array
from isthmus.programs.ranking import LEFT
from isthmus.programs.spreading import Spreading
from isthmus.stream.residuals import NO_WEIGHTS
from isthmus.threads import Team

ROOM = 0.9  # of the allowed error, at most, is used: the next batch needs some
STUCK = 0.999  # of the change of the sweep before: rounding lets no sweep come nearer


def sweep(
    program: Spreading, own: Array, state: tuple[Array, ...], params: tuple[float, float, int], side: PackedLists, team: Team
) -> int:
    """Sweep until the bound holds, or rounding lets nothing improve; returns the edges read. `side` has the in-edges."""
    n, (values, residual, _, divisors), (factor, _, absorber) = side.vertices, state, params
    begins, ends, sources, weights = side.arrays()
    lists = (begins[:n], ends[:n], sources, weights if program.reads_weights() else NO_WEIGHTS)
    cuts = np.empty(2 + (side.slots + n) // sizes.now.ranked_piece, np.int64)
    sweeps.even_cuts(lists[0], side.slots, cuts)
    shares = np.empty(n)
    team.split(lambda a, b: deltas.share_values(a, b, values, divisors, shares), n)
    found = np.zeros(cuts.size - 1)

    def swept(k: int) -> None:
        found[k] = deltas.sweep_values(cuts[k], cuts[k + 1], *lists, own, values, divisors, shares, factor, absorber)

    def measured(k: int) -> None:
        found[k] = deltas.measure_residuals(cuts[k], cuts[k + 1], *lists, own, values, shares, residual, factor, absorber)

    passes, fraction, change = 0, LEFT, np.inf
    while True:
        before = change
        team.each(swept, found.size)
        change, passes = float(found.sum()), passes + 1
        allowed = ROOM * program.allowed(float(np.abs(values[:n]).sum()))
        if fraction * change > allowed and change < STUCK * before:
            continue
        team.each(measured, found.size)
        left, passes = float(found.sum()), passes + 1
        if left <= allowed or change >= STUCK * before:
            return passes * side.arcs
        fraction = max(fraction, left / max(change, 1e-300))
