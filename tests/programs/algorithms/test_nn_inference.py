"""Neural networks: exact layer semantics against a plain forward pass, batches, and every way to be no network."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax
from tests.programs.ways import SETTINGS, build, hows, orders, small_sizes, tight_ways

import isthmus as ist
from isthmus.errors import BudgetError, OptionError
from isthmus.programs.algorithms.nn_inference import Inference, Layers

PATIENCE = 30  # seconds to wait for two threads to meet; a busy machine may need some
ACTIVATIONS = {
    "identity": lambda x: x,
    "relu": lambda x: np.where(x > 0, x, 0),
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softmax": lambda x: softmax(x, axis=1),
}


def forward(edges, layers, inputs, biases, hidden="relu", output="softmax"):
    """Layer by layer with a dense matrix of all vertices; `layers` is a layer number per vertex."""
    layers = np.array(layers)
    dense = np.zeros((layers.size, layers.size))
    for u, v, w in edges:
        dense[u, v] += 1.0 if w is None else w
    values = np.zeros((len(inputs), layers.size))
    values[:, layers == 0] = inputs
    for layer in range(1, layers.max() + 1):
        here = layers == layer
        sums = values[:, layers == layer - 1] @ dense[np.ix_(layers == layer - 1, here)] + biases[here]
        values[:, here] = ACTIVATIONS[output if layer == layers.max() else hidden](sums)
    return values[:, layers == layers.max()]


@st.composite
def networks(draw):
    """(edges, layer of every vertex, inputs, biases): layers in any order of ids, parallel edges, neurons without
    edges.
    """
    sizes = draw(st.lists(st.integers(1, 5), min_size=2, max_size=5))
    layers = draw(st.permutations([layer for layer, size in enumerate(sizes) for _ in range(size)]))
    members = [[v for v, layer in enumerate(layers) if layer == wanted] for wanted in range(len(sizes))]
    real = st.sampled_from([-1.5, -0.25, 0.0, 0.5, 1.0, 2.0])
    edges = []
    for here, there in pairwise(members):
        edges += draw(st.lists(st.tuples(st.sampled_from(here), st.sampled_from(there), real), max_size=12))
    inputs = draw(st.lists(st.lists(real, min_size=sizes[0], max_size=sizes[0]), max_size=4))
    biases = [0.0 if layer == 0 else draw(real) for layer in layers]
    return edges, layers, np.array(inputs).reshape(-1, sizes[0]), np.array(biases)


@SETTINGS
@given(
    networks(),
    hows,
    orders,
    st.sampled_from(["identity", "relu", "tanh", "sigmoid"]),
    st.sampled_from(list(ACTIVATIONS)),
)
def test_a_plain_forward_pass_says_the_same(network, how, order, hidden, output):
    edges, layers, inputs, biases = network
    graph = build(edges, len(layers), True, order=order, allow_negative=True)
    found = ist.nn_inference(graph, inputs, layers, biases, hidden, output, **how)
    expected = forward(edges, layers, inputs, biases, hidden, output)
    assert found.values == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert found.vertices.tolist() == [v for v, layer in enumerate(layers) if layer == max(layers)]
    assert sum(iteration.active_edges for iteration in found.trace) == graph.arcs, "every edge once, for all inputs"


def layered(sizes, count, seed=5):
    """Edges at random between the layers, low numbers having most; everyone has an edge in."""
    draw = np.random.default_rng(seed)
    starts = np.cumsum([0, *sizes])
    edges = []
    for here, there, next_size in zip(starts[:-2], starts[1:-1], sizes[1:], strict=True):
        u = here + ((there - here) * draw.random(count) ** 3).astype(int)
        v = there + np.append(np.arange(next_size), (next_size * draw.random(count - next_size) ** 2).astype(int))
        edges += zip(u.tolist(), v.tolist(), draw.normal(scale=0.1, size=count).tolist(), strict=True)
    biases = draw.normal(size=starts[-1])
    biases[: sizes[0]] = 0
    return edges, np.repeat(np.arange(len(sizes)), sizes), biases


SIZES = [60, 150, 90, 10]


def test_every_way(tmp_path, monkeypatch, sized):
    edges, layers, biases = layered(SIZES, 1500)
    inputs = np.random.default_rng(2).normal(size=(5, 60))
    expected = forward(edges, layers, inputs, biases)
    original = ist.ingest
    monkeypatch.setattr(
        ist, "ingest", lambda *arguments, **options: original(*arguments, allow_negative=True, **options)
    )
    for graph, how in tight_ways(edges, sum(SIZES), True, tmp_path, sized):
        for given_layers in (SIZES, layers, None):
            assert ist.nn_inference(graph, inputs, given_layers, biases, **how).values == pytest.approx(
                expected, rel=1e-9, abs=1e-12
            )


def test_layers_are_found_by_a_search():
    edges, layers, biases = layered(SIZES, 1500)
    reached = {v for _, v, _ in edges}
    edges += [(0, int(v), 0.0) for v in np.flatnonzero(layers == 1) if v not in reached]
    graph = build(edges, sum(SIZES), True, allow_negative=True)
    inputs = np.eye(60)
    found = ist.nn_inference(graph, inputs, biases=biases)
    assert found.values == pytest.approx(ist.nn_inference(graph, inputs, SIZES, biases).values, rel=1e-9)
    assert sum(iteration.active_edges for iteration in found.trace) == 2 * graph.arcs, "once for the search"


def test_a_neuron_that_no_input_reaches():
    """Its bias still counts, but only who gives the layers can say where it belongs."""
    graph = build([(0, 2, 2.0), (1, 3, 1.0), (2, 4, 3.0), (3, 4, 1.0)], 5, True)
    without = build([(0, 2, 2.0), (2, 4, 3.0), (3, 4, 1.0)], 5, True)
    biases = np.array([0, 0, 0, 0.5, 0])
    for layers in (None, [2, 2, 1]):
        assert ist.nn_inference(graph, [1, 4], layers, biases, output_activation="identity").values.tolist() == [[10.5]]
    assert ist.nn_inference(without, [1, 4], [2, 2, 1], biases, output_activation="identity").values.tolist() == [[6.5]]
    with pytest.raises(
        OptionError, match="no path leads from the first 2 vertices to 3, so its layer is unknown; give layers"
    ):
        ist.nn_inference(without, [1, 4], None, biases)


def test_many_inputs_go_in_parts(sized):
    edges, layers, biases = layered(SIZES, 1500)
    graph = build(edges, sum(SIZES), True, allow_negative=True)
    inputs = np.random.default_rng(2).normal(size=(23, 60))
    sized(inputs_at_once=5)
    found = ist.nn_inference(graph, inputs, SIZES, biases)
    assert found.values == pytest.approx(forward(edges, layers, inputs, biases), rel=1e-9, abs=1e-12)
    assert sum(iteration.active_edges for iteration in found.trace) == 5 * graph.arcs
    assert found.summary()["result"] == {"inputs": 23, "layers": 4, "outputs": 10}


def test_a_budget_bounds_the_inputs_at_once(tmp_path, sized):
    """Fewer at once, the same answers; values of two layers at a time are all that is near."""
    small_sizes(sized)
    sizes = [200, 800, 700, 600, 10]
    edges, layers, biases = layered(sizes, 9000)
    columns = tuple(np.array(column) for column in zip(*edges, strict=True))
    graph = ist.ingest(columns, tmp_path / "g.isthmus", vertices=sum(sizes), allow_negative=True)
    inputs = np.random.default_rng(2).normal(size=(64, 200))
    expected = forward(edges, layers, inputs, biases)
    readings = []
    for memory in ("2MB", "900kB", "400kB"):
        found = ist.nn_inference(graph, inputs, sizes, biases, memory=memory, policy="filter", threads=1)
        facts = found.summary()
        assert found.values == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert facts["memory"]["near_peak"] <= facts["memory"]["budget"]
        readings.append(sum(iteration.active_edges for iteration in found.trace) // graph.arcs)
    assert readings[0] == 1
    assert readings[0] < readings[1] < readings[2]
    with pytest.raises(BudgetError, match="needs at least"):
        ist.nn_inference(graph, inputs, sizes, biases, memory="50kB")
    graph.close()


def test_the_table(tmp_path):
    two = build([(0, 1, 1.0), (0, 2, 3.0)], 3, True)
    result = ist.nn_inference(two, [[1.0], [-1.0]], [1, 2], output_activation="identity")
    assert result.columns == ["class", "output_1", "output_2"]
    assert result.to_arrow().to_pydict() == {
        "input": [0, 1],
        "class": [1, 0],
        "output_1": [1.0, -1.0],
        "output_2": [3.0, -3.0],
    }
    assert {name: values.tolist() for name, values in result.to_numpy().items()} == result.to_arrow().to_pydict()
    assert (len(result), result["class"].tolist(), repr(result)) == (
        2,
        [1, 0],
        "<InferenceResult: 2 inputs, 2 outputs>",
    )
    result.save(tmp_path / "said.csv")
    assert (tmp_path / "said.csv").read_text().splitlines()[1] == "0,1,1,3"
    result.save(tmp_path / "said.npy")
    assert np.load(tmp_path / "said.npy").tolist() == [[1.0, 3.0], [-1.0, -3.0]]


def test_neurons_with_names():
    """Layers in the order of names, which is not that of the network."""
    ends = np.array(["ear", "eye", "eye", "hub"], object), np.array(["hub", "hub", "all", "cat"], object)
    graph = ist.read((*ends, np.array([1.0, 2.0, 5.0, 3.0])))
    layers = {"all": 1, "cat": 2, "ear": 0, "eye": 0, "hub": 1}
    result = ist.nn_inference(graph, [10.0, 1.0], list(layers.values()), output_activation="identity")
    assert result.to_arrow().to_pydict() == {"input": [0], "class": [0], "output_cat": [36.0]}
    with pytest.raises(OptionError, match="the edge from 'eye' to 'all' goes from layer 0 to layer 2"):
        ist.nn_inference(graph, [10.0, 1.0], [2, 2, 0, 0, 1])


def fire_carelessly(x, u, v, w, state, params):
    ranks, values, sums = state[:3]
    inputs = params[0]
    at = (np.int64(ranks[v]) - params[2]) * inputs
    for i in range(inputs):
        sums[at + i] += values[x + i] * w
    return False


class Careless(Inference):
    """The same without atomics."""

    def functions(self, facts):
        return replace(super().functions(facts), edge=fire_carelessly)


def test_threads_lose_no_sum_where_careless_ones_do():
    """Many neurons send to few from two threads: every sum is a whole number, and exact."""
    senders, receivers = 100_000, 4
    sources, targets = np.repeat(np.arange(senders), receivers), np.tile(np.arange(receivers), senders) + senders
    graph = ist.read((sources, targets, np.ones(sources.size)))
    layers = Layers.of([senders, receivers], graph.vertices)

    def exact(kind):
        program = kind(layers, np.ones((2, senders)), np.zeros(graph.vertices), output_activation="identity")
        return bool((ist.run(program, graph, threads=2).raw("outputs") == senders).all())

    end, overlaps = time.monotonic() + PATIENCE, 0
    while overlaps < 3 and time.monotonic() < end:
        overlaps += not exact(Careless)
        assert exact(Inference)
    if not overlaps:
        pytest.skip(f"two threads never overlapped in {PATIENCE} s; one core?")


def test_no_input_at_all():
    result = ist.nn_inference(build([(0, 1, 1.0)], 2, True), np.empty((0, 1)))
    assert (result.values.shape, result.to_arrow().num_rows) == ((0, 1), 0)


def test_an_unweighted_graph_says_so():
    result = ist.nn_inference(build([(0, 2, None), (1, 2, None)], 3, True), [2, 3], output_activation="identity")
    assert result.values.tolist() == [[5.0]]
    assert "the graph has no weights: every edge counts as 1" in result.trace.notes


@pytest.mark.parametrize(
    ("edge", "goes"),
    [
        ((0, 3), "from 0 to 3 goes from layer 0 to layer 2"),
        ((2, 0), "from 2 to 0 goes from layer 1 to layer 0"),
        ((1, 2), "from 1 to 2 goes from layer 1 to layer 1"),
        ((1, 1), "from 1 to 1 goes from layer 1 to layer 1"),
        ((3, 1), "from 3 to 1 goes from layer 2 to layer 1"),
    ],
)
@pytest.mark.parametrize("order", ["natural", "hub"])
def test_edges_that_lead_elsewhere(edge, goes, order):
    graph = build([(0, 1, 1.0), (0, 2, 1.0), (1, 3, 1.0), (2, 3, 1.0), (*edge, 0.0)], 4, True, order=order)
    for inputs in ([1.0], [0.0]):
        with pytest.raises(OptionError, match=f"edges that lead to the next layer: the edge {goes}"):
            ist.nn_inference(graph, inputs, [1, 2, 1])


def test_a_search_does_not_hide_skips():
    graph = build([(0, 1, 1.0), (1, 2, 1.0), (0, 2, 1.0)], 3, True)
    with pytest.raises(OptionError, match="the edge from 1 to 2 goes from layer 1 to layer 1"):
        ist.nn_inference(graph, [1.0])


def test_bad_parameters():
    graph = build([(0, 2, 1.0), (1, 2, 1.0)], 3, True)
    wrong = [
        ({"inputs": [[1.0]], "layers": [2, 1]}, "inputs: expected 2 columns, one per input neuron, got 1"),
        ({"inputs": [1.0, 2.0, 3.0]}, "inputs: expected 1 to 2 columns, one per input neuron, got 3"),
        ({"inputs": np.zeros((1, 1, 2))}, r"inputs: expected numbers, .* got float64 of shape \(1, 1, 2\)"),
        ({"inputs": [["a", "b"]]}, "inputs: expected numbers, a row per input"),
        ({"inputs": [[1.0, np.nan]]}, "inputs: expected finite numbers"),
        ({"inputs": [[1.0, 2.0]] * 600 + [[np.inf, 1.0]]}, "inputs: expected finite numbers"),
        ({"biases": [0.0]}, r"biases: expected 3 finite numbers, one per vertex, got float64 of shape \(1,\)"),
        ({"biases": [0.0, 0.0, np.inf]}, "biases: expected 3 finite numbers"),
        ({"biases": [0.0, 1.0, 0.0]}, "biases: expected 0 for input neurons"),
        ({"layers": [3]}, "layers: expected the sizes of two or more layers, or a layer per vertex"),
        ({"layers": [2.0, 1.0]}, "layers: expected the sizes of two or more layers"),
        ({"layers": [4, -1]}, "layers: expected the sizes of two or more layers"),
        ({"layers": [0, 1]}, "layers: expected a layer for each of 3 vertices, got 2"),
        ({"layers": [0, 0, 2]}, "layers: expected numbers from 0 to 2, each at least once"),
        ({"layers": [0, 0, 0]}, "at least two of them"),
        ({"activation": "softmax"}, "activation: expected one of identity, relu, tanh, sigmoid, got 'softmax'"),
        (
            {"output_activation": "max"},
            "output_activation: expected one of softmax, identity, relu, tanh, sigmoid, got 'max'",
        ),
    ]
    for options, message in wrong:
        with pytest.raises(OptionError, match=message):
            ist.nn_inference(graph, **{"inputs": [1.0, 2.0], **options})
    with pytest.raises(OptionError, match="nn_inference needs a directed graph"):
        ist.nn_inference(build([(0, 1, 1.0)], 2, False), [1.0])
