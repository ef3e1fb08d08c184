"""What programs share that sum over all edges: pushing or pulling one state array into another."""

from __future__ import annotations

PUSH = """
@compiled
def source(u, degree, state, params):
    return state[{sent}][u]


@compiled
def edge(x, u, v, w, state, params):
    atomic_add(state[{received}], v, x{times})
    return False
"""
PULL = """
@compiled
def nothing(params):
    return 0.0


@compiled
def sent(total, u, w, state, params):
    return total + state[{sent}][u]{times}


@compiled
def received(v, total, state, params):
    atomic_add(state[{received}], v, total)
"""


def summing(pulls: bool, sent: int, received: int, times: str = "") -> str:
    """The functions of a program that adds array `sent` of every tail to array `received` of the head; `times`: " * w", say."""
    return (PULL if pulls else PUSH).format(sent=sent, received=received, times=times)
