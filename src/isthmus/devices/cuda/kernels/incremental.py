"""Kernels that bring values up to date after a batch; built with each monotone program, whose functions also write
parents.

`hear` and `send` do what `pull_rows` and `relax_arcs` of `kernels/loops/incremental.py` do: vertices that lost their
value pull from all in-neighbours, and inserted arcs send once. Several threads may send to one vertex; value and parent
are written under the parent's lock (`programs/dependencies.py`). Vertices that improved are listed, each once.
"""

from __future__ import annotations

from types import ModuleType

from isthmus.devices.cuda.kernels.correction import LISTED
from isthmus.devices.cuda.kernels.head import module_of
from isthmus.devices.cuda.kernels.skeleton import TURNS

TEXT = (
    TURNS
    + LISTED
    + '''

@called
def told(u, v, w, list_begins, list_ends, has_silent, silent, state, params):
    """Whether v improves by what u sends."""
    improved = False
    if not has_silent or state[0][u] != silent:
        improved = edge(source(u, list_ends[u] - list_begins[u], state, params), u, v, w, state, params)
    return improved


@called
def hear_share(
    thread, threads, kind, room, vertices, begins, weight_begins, lengths, counts, width, line, targets, weights,
    list_begins, list_ends,
    has_silent, silent, state, params, words, found, count
):
    """Let the vertices of the rows hear from their neighbours there."""
    lane, groups = thread % width, threads // width
    if thread < groups * width:
        for row in range(kind * room + thread // width, kind * room + counts[kind], groups):
            v = np.int64(vertices[row])
            begin, end, improved = begins[row], begins[row] + lengths[row], False
            for e in range(first_turn(begin, lane, width, line), end, width):
                if e >= begin:
                    u = np.int64(targets[e])
                    if told(u, v, {weight}, list_begins, list_ends, has_silent, silent, state, params):
                        improved = True
            if improved:
                add_once(v, words, found, count)


@called
def send_share(
    thread, threads, tails, heads, weights, list_begins, list_ends, has_silent, silent, state, params, words, found,
    count
):
    """Send along single arcs."""
    for i in range(thread, tails.size, threads):
        u, v = np.int64(tails[i]), np.int64(heads[i])
        if told(u, v, {weight_of_arc}, list_begins, list_ends, has_silent, silent, state, params):
            add_once(v, words, found, count)
'''
)


def build(name: str, functions: str, weighted: bool, gpu: bool = True) -> ModuleType:
    """The kernels of a program: `hear` and `send`."""
    weights = ("weights[weight_begins[row] + e - begin]", "weights[i]") if weighted else ("1", "1")
    text = TEXT.replace("{weight}", weights[0]).replace("{weight_of_arc}", weights[1])
    return module_of(f"the program {name}, after a batch", functions + text, gpu)
