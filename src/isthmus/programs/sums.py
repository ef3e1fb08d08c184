"""Functions of programs that sum over all edges: they push or pull one state array into another."""

from __future__ import annotations

from typing import Any

from isthmus.kernels.compile.atomics import atomic_add
from isthmus.programs.functions import Functions, Scalar


def alone(x: Any, w: Any) -> Any:
    """An edge carries x, whatever its weight."""
    return x


def times(x: Any, w: Any) -> Any:
    return x * w


def over(x: Any, w: Any) -> Any:
    return x / w


def summing(pulls: bool, tails: int, heads: int, carried: Scalar = alone) -> Functions:
    """The functions of a program that adds what an edge has `carried` of array `tails` at its tail to array `heads` at
    its head.
    """
    return pulling(tails, heads, carried) if pulls else pushing(tails, heads, carried)


def pushing(tails: int, heads: int, carried: Scalar) -> Functions:
    def source(u: Any, degree: Any, state: Any, params: Any) -> Any:
        return state[tails][u]

    def edge(x: Any, u: Any, v: Any, w: Any, state: Any, params: Any) -> Any:
        atomic_add(state[heads], v, carried(x, w))
        return False

    return Functions(source, edge)


def pulling(tails: int, heads: int, carried: Scalar) -> Functions:
    def nothing(params: Any) -> Any:
        return 0.0

    def sent(total: Any, u: Any, w: Any, state: Any, params: Any) -> Any:
        return total + carried(state[tails][u], w)

    def received(v: Any, total: Any, state: Any, params: Any) -> Any:
        atomic_add(state[heads], v, total)

    return Functions(nothing=nothing, sent=sent, received=received)
