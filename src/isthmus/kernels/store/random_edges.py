"""Generators of edges: edge number i of a graph depends only on the seed and i.

So any thread may generate any range of edges, and the graph is the same for any number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float64, int64, uint64

from isthmus.kernels.compile.kernel import inline, kernel

LEVELS = 4  # RMAT levels per random draw: 4**4 = 256 outcomes, one alias table that stays in the L1 cache
GOLDEN = 0x9E3779B97F4A7C15


@inline
def mix(x: Any) -> Any:
    """SplitMix64's output function (Steele, Lea, Flood 2014)."""
    x = (x ^ (x >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> uint64(27))) * uint64(0x94D049BB133111EB)
    return x ^ (x >> uint64(31))


@inline
def draw(seed: Any, counter: Any) -> Any:
    return mix(mix(seed + uint64(GOLDEN)) + uint64(counter) * uint64(GOLDEN))


@inline
def pick(half: Any, levels: Any, cuts: Any, aliases: Any) -> Any:
    """An outcome of `levels` levels from 32 random bits, by the alias method; without a branch to mispredict."""
    outcome = int64(half & uint64((1 << (2 * levels)) - 1))
    other = int64(aliases[levels, outcome])
    take = int64((half & uint64(0xFFFFFFFF)) >> uint64(8) >= uint64(cuts[levels, outcome]))
    return uint64(outcome + (other - outcome) * take)


@kernel
def rmat(seed: Any, first: Any, scale: Any, cuts: Any, aliases: Any, sources: Any, targets: Any) -> Any:
    """RMAT edges first, first + 1, ...: each half of a draw decides up to four levels.

    Row k of `cuts` and `aliases` is the table for k levels; an outcome's high half are source bits.
    """
    pairs, rest = scale // (2 * LEVELS), scale % (2 * LEVELS)
    draws = pairs + (1 if rest else 0)
    high, low = max(0, rest - LEVELS), min(rest, LEVELS)
    for i in range(sources.size):
        u = v = uint64(0)
        at = (first + i) * draws
        for k in range(pairs):
            random = draw(seed, at + k)
            a = pick(random, LEVELS, cuts, aliases)
            b = pick(random >> uint64(32), LEVELS, cuts, aliases)
            u = u << uint64(8) | a & uint64(0xF0) | b >> uint64(4)
            v = v << uint64(8) | (a & uint64(0xF)) << uint64(4) | b & uint64(0xF)
        if rest:
            random = draw(seed, at + pairs)
            a = pick(random, low, cuts, aliases)
            u = u << uint64(low) | a >> uint64(low)
            v = v << uint64(low) | a & ((uint64(1) << uint64(low)) - uint64(1))
            b = pick(random >> uint64(32), high, cuts, aliases)
            u = u << uint64(high) | b >> uint64(high)
            v = v << uint64(high) | b & ((uint64(1) << uint64(high)) - uint64(1))
        sources[i] = u
        targets[i] = v


@kernel
def scramble(ids: Any, bits: Any, seed: Any) -> Any:
    """A bijection on `bits`-bit numbers, in place: hides the order in which RMAT makes its hubs."""
    mask = (uint64(1) << uint64(bits)) - uint64(1)
    half = uint64((bits + 1) // 2)
    for i in range(ids.size):
        x = uint64(ids[i])
        for k in range(3):
            x = (x * (draw(seed, k) | uint64(1)) + draw(seed, k + 8)) & mask
            x ^= x >> half
        ids[i] = x & mask


@inline
def below(random: Any, bound: Any) -> Any:
    """A number in 0 .. bound - 1 from 64 random bits, by the high half of the product."""
    a, b = random >> uint64(32), random & uint64(0xFFFFFFFF)
    c, d = uint64(bound) >> uint64(32), uint64(bound) & uint64(0xFFFFFFFF)
    middle = a * d + ((b * d) >> uint64(32))
    middle2 = b * c + (middle & uint64(0xFFFFFFFF))
    return a * c + (middle >> uint64(32)) + (middle2 >> uint64(32))


@kernel
def uniform(seed: Any, first: Any, vertices: Any, sources: Any, targets: Any) -> Any:
    for i in range(sources.size):
        sources[i] = below(draw(seed, 2 * (first + i)), vertices)
        targets[i] = below(draw(seed, 2 * (first + i) + 1), vertices)


@kernel
def grid(first: Any, rows: Any, columns: Any, sources: Any, targets: Any) -> Any:
    """Edges of a grid: all horizontal ones row by row, then all vertical ones."""
    across = rows * (columns - 1)
    for i in range(sources.size):
        e = first + i
        if e < across:
            u = e // (columns - 1) * columns + e % (columns - 1)
            sources[i] = u
            targets[i] = u + 1
        else:
            u = e - across
            sources[i] = u
            targets[i] = u + columns


@kernel
def complete(first: Any, sources: Any, targets: Any) -> Any:
    """Edge number e joins v and u < v, where e = v * (v - 1) / 2 + u."""
    for i in range(sources.size):
        e = first + i
        v = int64((1.0 + np.sqrt(1.0 + 8.0 * float64(e))) / 2.0)
        while v * (v - 1) // 2 > e:
            v -= 1
        while (v + 1) * v // 2 <= e:
            v += 1
        sources[i] = e - v * (v - 1) // 2
        targets[i] = v


@kernel
def weigh(
    rows: Any,
    counts: Any,
    targets: Any,
    seed: Any,
    directed: Any,
    backward: Any,
    low: Any,
    span: Any,
    integer: Any,
    weights: Any,
) -> Any:
    """Weights that depend only on the seed and the two ends, so both directions of an edge agree.

    Integers come from low .. low + span - 1, others from low + span * [0, 1).
    """
    at = 0
    for r in range(rows.size):
        for _ in range(counts[r]):
            u, v = rows[r], uint64(targets[at])
            if backward or (not directed and u > v):
                u, v = v, u
            random = mix(draw(seed, u) + v * uint64(GOLDEN))
            if integer:
                weights[at] = int64(low) + int64(below(random, uint64(span)))
            else:
                weights[at] = low + span * (float64(random >> uint64(11)) * (1.0 / 9007199254740992.0))
            at += 1
