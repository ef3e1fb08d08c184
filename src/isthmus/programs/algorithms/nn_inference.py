"""Inference of a layered neural network (Scaph's digit recognition), for many inputs that share every read.

Vertices are neurons; an edge adds its weight times its tail's value to its head. One iteration per layer: the neurons
of a layer send value times weight to the next one, which sums up, adds its biases and applies its activation. So every
edge moves once altogether, however many inputs there are. Values are kept for two layers only, the one that sends and
the one that receives: a row per neuron, with a value per input.

Every edge must lead from its layer to the next; the first that does not stops the run. A neuron of value 0 (relu makes
many) sends nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from isthmus import sizes
from isthmus.errors import BudgetError, OptionError
from isthmus.kernels.compile.atomics import atomic_add, atomic_min
from isthmus.kernels.programs import neurons
from isthmus.programs.algorithm import Answer, Kind, Option, Rows, Runner, algorithm
from isthmus.programs.checkpoint_checks import integer, within
from isthmus.programs.declaration import monotone
from isthmus.programs.functions import Functions
from isthmus.programs.message import INT_MAX
from isthmus.programs.program import Array, Facts, Program, State
from isthmus.programs.weights import note_unweighted

ACTIVATIONS = ("identity", "relu", "tanh", "sigmoid")  # in the order of their codes in kernels
OUTPUT_ACTIVATIONS = ("softmax", *ACTIVATIONS)
NONE_WRONG = np.iinfo(np.uint64).max


@monotone(initial=np.inf, combine="min", start=0, column="layer")
def layer_depths(layer: int) -> int:
    """The layers of a network, from its inputs."""
    return layer + 1


@dataclass
class Layers:
    """The layers of a network. `ranks` numbers the vertices (in natural order) layer by layer; `starts`: each first
    rank, and the end.
    """

    ranks: Array
    starts: list[int]

    @classmethod
    def of(cls, given: Any, vertices: int) -> Layers:
        """From the sizes of layers that vertices fill in natural order, or from every vertex's layer number.

        A 0 tells them apart: layer numbers begin with 0, and no layer has a size of 0.
        """
        numbers = np.asarray(given)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or numbers.size < 2 or (numbers < 0).any():
            raise OptionError(f"layers: expected the sizes of two or more layers, or a layer per vertex, got {given!r}")
        numbers = numbers.astype(np.int64)
        if (numbers == 0).any():
            return cls.of_numbers(numbers, vertices)
        if sum(numbers.tolist()) != vertices:  # a sum that cannot overflow, unlike NumPy's
            raise OptionError(
                f"layers: expected sizes that add up to {vertices} vertices, got {numbers.tolist()}: "
                f"{sum(numbers.tolist())}"
            )
        return cls(np.arange(vertices, dtype=np.uint32), [0, *np.cumsum(numbers).tolist()])

    @classmethod
    def of_numbers(cls, numbers: Array, vertices: int) -> Layers:
        if numbers.size != vertices:
            raise OptionError(f"layers: expected a layer for each of {vertices} vertices, got {numbers.size}")
        if numbers.max() >= vertices or (sizes := np.bincount(numbers)).size < 2 or not sizes.all():
            raise OptionError(
                f"layers: expected numbers from 0 to {numbers.max()}, each at least once, and at least two of them"
            )
        ranks = np.empty(vertices, np.uint32)
        ranks[np.argsort(numbers, kind="stable")] = np.arange(vertices, dtype=np.uint32)
        return cls(ranks, [0, *np.cumsum(sizes).tolist()])

    def __len__(self) -> int:
        return len(self.starts) - 1

    def layer(self, rank: int) -> int:
        return bisect_right(self.starts, rank) - 1

    def size(self, layer: int) -> int:
        return self.starts[layer + 1] - self.starts[layer]

    @property
    def widest(self) -> int:
        return max(self.size(layer) for layer in range(len(self)))

    def places(self, layer: int) -> Array:
        """The vertices of a layer, as places in natural order."""
        return np.flatnonzero((self.ranks >= self.starts[layer]) & (self.ranks < self.starts[layer + 1]))


def values_at(u: Any, degree: Any, state: Any, params: Any) -> Any:
    """Where u's values begin; -1: they are 0 for all inputs."""
    ranks, values = state[0], state[1]
    inputs, begin = params[0], params[1]
    at = (np.int64(ranks[u]) - begin) * inputs
    for i in range(at, at + inputs):
        if values[i] != 0.0:
            return at
    return -1


def fire_along(x: Any, u: Any, v: Any, w: Any, state: Any, params: Any) -> Any:
    """Add value times weight to v's sums, if v is in the next layer."""
    ranks, values, sums, wrong = state
    inputs, _, next_begin, next_end = params
    rank = np.int64(ranks[v])
    if rank < next_begin or rank >= next_end:
        atomic_min(wrong, 0, np.uint64(u) << np.uint64(32) | np.uint64(v))
        return False
    if x >= 0:
        at = (rank - next_begin) * inputs
        for i in range(inputs):
            if values[x + i] != 0.0:
                atomic_add(sums, at + i, values[x + i] * w)
    return False


class Inference(Program):
    """Inference of a network. `inputs` has a row per input, `biases` an entry per vertex in natural order.

    When an edge does not lead to the next layer, `wrong` is its ends as vertex numbers and their layers.
    """

    name = "nn_inference"
    order_free = False  # a layer must be complete before it sends

    def __init__(
        self, layers: Layers, inputs: Array, biases: Array, activation: str = "relu", output_activation: str = "softmax"
    ) -> None:
        for option, given, known in (
            ("activation", activation, ACTIVATIONS),
            ("output_activation", output_activation, OUTPUT_ACTIVATIONS),
        ):
            if given not in known:
                raise OptionError(f"{option}: expected one of {', '.join(known)}, got {given!r}")
        self.layers, self.inputs, self.biases = layers, inputs, biases
        self.activation, self.output_activation = activation, output_activation
        n = layers.ranks.size
        # Ranks, their inverse, biases, marking; two layers' values.
        self.state_bytes = 24 + -(-16 * layers.widest * len(inputs) // n)
        self.wrong: tuple[int, int, int, int] | None = None

    def reads_weights(self) -> bool:
        return True

    def functions(self, facts: Facts) -> Functions:
        return Functions(values_at, fire_along)

    def begin(self, facts: Facts) -> State:
        naturals, layers, count = facts.naturals(), self.layers, len(self.inputs)
        ranks = layers.ranks if naturals is None else layers.ranks[naturals]
        members = np.empty(facts.vertices, np.uint32)  # vertices by rank
        members[ranks] = np.arange(facts.vertices, dtype=np.uint32)
        biases = np.empty(facts.vertices)
        biases[layers.ranks] = self.biases
        values, sums = np.zeros(layers.widest * count), np.zeros(layers.widest * count)
        values[: layers.size(0) * count] = self.inputs.T.ravel()
        arrays = {"ranks": ranks, "values": values, "sums": sums, "wrong": np.full(1, NONE_WRONG, np.uint64)}
        return State(
            arrays, members[: layers.starts[1]], self._params(0), {"layer": 0, "members": members, "biases": biases}
        )

    def _params(self, layer: int) -> tuple[int, ...]:
        """How many inputs, where the layer begins, and where the next begins and ends."""
        starts = [*self.layers.starts, self.layers.starts[-1]]
        return len(self.inputs), *starts[layer : layer + 3]

    def after(self, state: State, frontier: Any, facts: Facts, iteration: int) -> bool:
        ranks, values, sums, wrong = state.arrays
        if wrong[0] != NONE_WRONG:
            u, v = int(wrong[0]) >> 32, int(wrong[0]) & 0xFFFFFFFF
            self.wrong = (u, v, self.layers.layer(int(ranks[u])), self.layers.layer(int(ranks[v])))
            return False
        if state.extra["layer"] == len(self.layers) - 1:
            return False  # the outputs have no edges
        layer = state.extra["layer"] = state.extra["layer"] + 1
        self._fire(state, facts, layer, sums)
        values[:] = 0.0
        state["values"], state["sums"] = sums, values
        state.params = self._params(layer)
        frontier.wake_all(state.extra["members"][self.layers.starts[layer] : self.layers.starts[layer + 1]])
        return True

    def share_done(self, state: State, iteration: int) -> float | None:
        return iteration / len(self.layers)

    def _fire(self, state: State, facts: Facts, layer: int, sums: Array) -> None:
        name = self.output_activation if layer == len(self.layers) - 1 else self.activation
        code = ACTIVATIONS.index(name) if name in ACTIVATIONS else 0
        biases = state.extra["biases"][self.layers.starts[layer] :]
        facts.team.split(lambda a, b: neurons.fire(a, b, len(self.inputs), code, biases, sums), self.layers.size(layer))

    def remember(self, state: State) -> dict[str, Any]:
        return {"arrays": state.arrays[1:], "layer": state.extra["layer"]}

    def recall(self, state: State, kept: dict[str, Any]) -> None:
        layer = state.extra["layer"] = integer(kept["layer"], 0, len(self.layers) - 1)
        state.arrays = (state["ranks"], *kept["arrays"])
        state.params = self._params(layer)

    def check_recalled(self, state: State, frontier: Any, facts: Facts) -> None:
        """Only vertices of the layer have values, and an edge that is wrong joins two vertices."""
        layer, wrong = state.extra["layer"], state["wrong"]
        members = state.extra["members"][self.layers.starts[layer] : self.layers.starts[layer + 1]]
        if frontier.all_active or frontier.count != members.size or not frontier.marks[members].all():
            raise ValueError(f"expected layer {layer} to be active, and no other vertices")
        if wrong[0] != NONE_WRONG:
            within(np.array([wrong[0] >> np.uint64(32), wrong[0] & np.uint64(0xFFFFFFFF)]), facts.vertices - 1)

    def result(self, state: State, facts: Facts) -> dict[str, Array]:
        """One array, a row per input and a column per output neuron."""
        size, count = self.layers.size(len(self.layers) - 1), len(self.inputs)
        outputs = state["values"][: size * count].reshape(size, count).T
        return {"outputs": softmax(outputs) if self.output_activation == "softmax" else outputs.copy()}

    def summary(self, columns: dict[str, Array], state: State) -> dict[str, Any]:
        return {"inputs": len(self.inputs), "layers": len(self.layers), "outputs": columns["outputs"].shape[1]}


def softmax(rows: Array) -> Array:
    """Shares that add up to 1 in every row; larger values get larger shares."""
    powers = np.exp(rows - rows.max(axis=1, keepdims=True))
    shares: Array = powers / powers.sum(axis=1, keepdims=True)
    return shares


@algorithm(sample=lambda graph: None, not_live="a changed weight changes what all layers behind it compute")
def nn_inference(
    run: Runner,
    inputs: Annotated[Any, Option("NAME.npy: a row per input, a column per input neuron.", kind=Kind.ARRAY)],
    layers: Annotated[
        Any,
        Option("Sizes of the layers, which vertices fill in ascending order.", metavar="SIZE,SIZE...", kind=Kind.SIZES),
    ] = None,
    biases: Annotated[
        Any,
        Option("NAME.npz with `biases`, one per vertex in ascending order, and perhaps `layers`.", kind=Kind.ARRAYS),
    ] = None,
    activation: Annotated[str, Option("Activation of hidden neurons: identity, relu, tanh or sigmoid.")] = "relu",
    output_activation: Annotated[str, Option("Activation of output neurons: softmax or any of those.")] = "softmax",
) -> Answer:
    """Run a layered neural network on many inputs.

    `inputs` is an array with a row per input and a column per input neuron. Edges carry weights from each layer to the
    next. `layers` are the sizes of the layers, which vertices fill in ascending order, or a layer number per vertex;
    without it the first vertices are the inputs, and a search finds the other layers. `biases` has an entry per vertex
    in ascending order, 0 for input neurons.
    """
    rows, graph = checked_inputs(inputs), run.graph
    if not graph.directed:
        raise OptionError(f"nn_inference needs a directed graph, and {graph} is undirected")
    found = Layers.of(layers if layers is not None else find_layers(run, rows.shape[1]), graph.vertices)
    if rows.shape[1] != found.size(0):
        raise OptionError(f"inputs: expected {found.size(0)} columns, one per input neuron, got {rows.shape[1]}")
    offsets = checked_biases(biases, found)

    def part(first: int, count: int) -> Inference:
        return Inference(
            found, np.asarray(rows[first : first + count], np.float64), offsets, activation, output_activation
        )

    at_once = how_many_fit(run, part, min(sizes.now.inputs_at_once, len(rows)))
    parts = [infer(run, part(first, at_once)) for first in range(0, max(len(rows), 1), at_once or 1)]
    outputs = np.concatenate([each.columns["outputs"] for each in parts])
    note_unweighted(run)
    if not np.isfinite(outputs).all():
        run.note("some outputs are not finite: their sums are larger than float64 holds")
    figures = {**parts[0].figures, "inputs": len(rows)}
    return Answer(
        {"outputs": outputs}, (), figures, Rows.INPUTS, outputs, found.places(len(found) - 1), parts[0].program
    )


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
        raise OptionError(
            f"biases: expected {n} finite numbers, one per vertex, got {given.dtype} of shape {given.shape}"
        )
    if given[layers.places(0)].any():
        raise OptionError("biases: expected 0 for input neurons, whose values are given")
    return given.astype(np.float64)


def find_layers(run: Runner, inputs: int) -> Array:
    """Layers by natural order. A search from the first vertices, taken as the inputs, finds them; it must reach all
    vertices.
    """
    graph = run.graph
    if graph.vertices < 2:
        raise OptionError(f"nn_inference needs at least two layers of one vertex each, and {graph} has fewer vertices")
    if not 1 <= inputs < graph.vertices:
        raise OptionError(f"inputs: expected 1 to {graph.vertices - 1} columns, one per input neuron, got {inputs}")
    depths = run(layer_depths(graph.ids.natural(0, inputs).tolist())).columns["layer"]
    order = graph.from_naturals()
    layers = depths if order is None else depths[order]
    lost = np.flatnonzero(layers == INT_MAX)
    if lost.size:
        vertex = graph.ids.users_of_natural(lost[:1]).tolist()[0]
        raise OptionError(
            f"layers: no path leads from the first {inputs} vertices to {vertex!r}, so its layer is unknown; "
            f"give layers"
        )
    return layers


def how_many_fit(run: Runner, part: Callable[[int, int], Inference], most: int) -> int:
    """How many inputs to run at once: fewer take less near memory but read the edges more often."""
    while most > 1:
        try:
            run.fits(part(0, most))
            break
        except BudgetError:
            most //= 2
    return most


def infer(run: Runner, program: Inference) -> Answer:
    answer = run(program)
    if program.wrong is not None:
        u, v = run.graph.ids.users(np.array(program.wrong[:2])).tolist()
        layers = "from layer {} to layer {}".format(*program.wrong[2:])
        raise OptionError(
            f"nn_inference needs edges that lead to the next layer: the edge from {u!r} to {v!r} goes {layers}"
        )
    return answer
