"""Simulations on graphs as functions: electric circuits, neural networks; see `algorithms` for what their arguments have in common."""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus import sizes
from isthmus.errors import BudgetError, OptionError
from isthmus.graph.graph import Graph
from isthmus.programs.circuit import Circuit, path_resistances
from isthmus.programs.message import INT_MAX
from isthmus.programs.nn_inference import Inference, Layers, layer_depths
from isthmus.runtime.algorithms import NOTHING, merged, must_fit
from isthmus.runtime.checkpoint import checkpointed
from isthmus.runtime.execute import execute
from isthmus.runtime.inference_result import InferenceResult
from isthmus.runtime.more_algorithms import say_unweighted
from isthmus.runtime.result import Array, Result


@checkpointed
def circuit(
    graph: Graph, fixed: dict[Any, float], currents: dict[Any, float] | None = None, resistances: bool = False, tol: float = 1e-6,
    max_iter: int = 10_000, **how: Any,
) -> Result:  # fmt: skip
    """Voltages of a resistor network whose vertices in `fixed` are held at theirs; weights are conductances.

    No voltage is off by more than `tol` times the difference of the highest and the lowest. Directions do not count.
    A vertex without a path to a held one floats: its voltage is NaN (null in Arrow).
    """
    if graph.weighted and graph.store.manifest.negative_weights:
        raise OptionError(f"circuit needs weights of at least 0, and {graph} has negative ones")

    def program(ohms: Array) -> Circuit:
        return Circuit(fixed, {} if currents is None else currents, ohms, resistances, tol, max_iter, graph.directed)

    must_fit(program(NOTHING), graph, how)
    paths = execute(path_resistances(list(fixed), resistances, graph.directed), graph, **how)
    solver = program(paths._columns["ohms"])
    result = merged(execute(solver, graph, **how), paths)
    if not solver.converged:
        why = f"stopped after {max_iter} iterations" if solver.steps_left == 0 else "rounding allows no smaller bound"
        result.trace.notes.append(f"{why}; voltages may be off by {solver.error_bound:.3g}, more than tol = {tol:g} of their spread")
    floating = result._facts["result"]["floating"]
    if floating:
        result.trace.notes.append(f"{floating} vertices have no path to a held vertex: their voltages are undefined")
    say_unweighted(result, graph)
    return result


@checkpointed
def nn_inference(
    graph: Graph, inputs: Any, layers: Any = None, biases: Any = None, activation: str = "relu", output_activation: str = "softmax",
    **how: Any,
) -> InferenceResult:  # fmt: skip
    """What a layered neural network says to `inputs`, an array with a row per input and a column per input neuron.

    Edges carry weights from each layer to the next. `layers` are the sizes of the layers, which vertices fill in
    ascending order, or a layer number per vertex; without it the first vertices are the inputs, and a search finds the
    other layers. `biases` has an entry per vertex in ascending order, 0 for input neurons.
    """
    rows = checked_inputs(inputs)
    if not graph.directed:
        raise OptionError(f"nn_inference needs a directed graph, and {graph} is undirected")
    search = None if layers is not None else find_layers(graph, rows.shape[1], how)
    found = Layers.of(layers if search is None else search.values, graph.vertices)
    if rows.shape[1] != found.size(0):
        raise OptionError(f"inputs: expected {found.size(0)} columns, one per input neuron, got {rows.shape[1]}")
    offsets = checked_biases(biases, found)

    def part(first: int, count: int) -> Inference:
        return Inference(found, np.asarray(rows[first : first + count], np.float64), offsets, activation, output_activation)

    at_once = how_many_fit(graph, part, min(sizes.now.inputs_at_once, len(rows)), how)
    parts = [infer(part(first, at_once), graph, how) for first in range(0, max(len(rows), 1), at_once or 1)]
    outputs = np.concatenate([each._columns["outputs"] for each in parts])
    whole = parts[0]
    for other in [*parts[1:], *([search] if search else [])]:
        whole = merged(whole, other)
    whole._facts["result"]["inputs"] = len(rows)
    say_unweighted(whole, graph)
    if not np.isfinite(outputs).all():
        whole.trace.notes.append("some outputs are not finite: their sums are larger than float64 holds")
    return InferenceResult(graph, found.places(len(found) - 1), outputs, whole.trace, whole._facts)


def checked_inputs(inputs: Any) -> Array:
    """A row per input; a single input may come without its row."""
    rows: Array = np.atleast_2d(inputs)
    if rows.ndim != 2 or rows.dtype.kind not in "fiub":
        got = f"{rows.dtype} of shape {rows.shape}"
        raise OptionError(f"inputs: expected numbers, a row per input and a column per input neuron, got {got}")
    at_once = sizes.now.inputs_at_once
    if not all(np.isfinite(rows[first : first + at_once]).all() for first in range(0, len(rows), at_once)):
        raise OptionError("inputs: expected finite numbers")
    return rows


def checked_biases(biases: Any, layers: Layers) -> Array:
    n = layers.ranks.size
    if biases is None:
        return np.zeros(n)
    given = np.asarray(biases)
    if given.shape != (n,) or given.dtype.kind not in "fiu" or not np.isfinite(given).all():
        raise OptionError(f"biases: expected {n} finite numbers, one per vertex, got {given.dtype} of shape {given.shape}")
    if given[layers.places(0)].any():
        raise OptionError("biases: expected 0 for input neurons, whose values are given")
    return given.astype(np.float64)


def find_layers(graph: Graph, inputs: int, how: dict[str, Any]) -> Result:
    """A search from the first vertices, taken for the inputs; it must reach everyone."""
    if not 1 <= inputs < graph.vertices:
        raise OptionError(f"inputs: expected 1 to {graph.vertices - 1} columns, one per input neuron, got {inputs}")
    search = execute(layer_depths(graph.ids.natural(0, inputs).tolist()), graph, **how)
    lost = np.flatnonzero(search.values == INT_MAX)
    if lost.size:
        vertex = graph.ids.users_of_natural(lost[:1]).tolist()[0]
        raise OptionError(f"layers: no path leads from the first {inputs} vertices to {vertex!r}, so its layer is unknown; give layers")
    return search


def how_many_fit(graph: Graph, part: Any, most: int, how: dict[str, Any]) -> int:
    """How many inputs to work on at once, at most: fewer take less near memory, and more readings of the edges."""
    while most > 1:
        try:
            must_fit(part(0, most), graph, {**how, "rehearse": None})
            break
        except BudgetError:
            most //= 2
    return most


def infer(program: Inference, graph: Graph, how: dict[str, Any]) -> Result:
    result = execute(program, graph, **how)
    if program.wrong is not None:
        u, v = graph.ids.users(np.array(program.wrong[:2])).tolist()
        layers = "from layer {} to layer {}".format(*program.wrong[2:])
        raise OptionError(f"nn_inference needs edges that lead to the next layer: the edge from {u!r} to {v!r} goes {layers}")
    return result
