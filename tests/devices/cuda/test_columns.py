"""Results of runs on a GPU as other libraries read them there: the CUDA array interface, DLPack, and whose memory it
is.
"""

from __future__ import annotations

import ctypes
import gc
import pickle
from typing import Any

import numpy as np
import pytest
from tests.declared import arguments
from tests.gpus import LazyCard
from tests.programs.test_pure_result import NETWORK, PROGRAMS
from tests.programs.ways import columns, skewed

import isthmus as ist
from isthmus.devices.cuda import device as cuda_device
from isthmus.devices.cuda import dlpack
from isthmus.errors import BudgetError, NotOnGpu, OptionError
from isthmus.kernels.compile import cuda_module
from isthmus.programs.catalogue import ALGORITHMS
from isthmus.runtime.public import function_of


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> LazyCard:
    card = LazyCard()
    monkeypatch.setattr(cuda_module, "found", lambda: ([cuda_module.Found(0, "lazy", (8, 0))], ""))
    monkeypatch.setattr(cuda_device, "open_card", lambda number: card)
    return card


@pytest.fixture
def graph() -> Any:
    return ist.read(columns(skewed()), vertices=400)


def seen(what: Any) -> np.ndarray[Any, Any]:
    """What a library sees through the CUDA array interface. The card's memory is the host's, so it can be read."""
    protocol = what.__cuda_array_interface__
    assert protocol["version"] == 3 and protocol["strides"] is None and protocol["stream"] is None
    dtype, count = np.dtype(protocol["typestr"]), int(np.prod(protocol["shape"]))
    raw = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(protocol["data"][0]) if count else b""
    return np.frombuffer(bytes(raw), dtype).reshape(protocol["shape"])


def test_values_of_the_state_are_handed_over_where_they_lie(card: LazyCard, graph: Any) -> None:
    result = ist.sssp(graph, 1, device="cuda:0")
    assert card.held == {}
    copied = len(card.record_of)
    assert np.array_equal(seen(result), result.filled())
    assert len(card.record_of) == copied  # nothing crossed the link
    array = result.on_gpu("distance")
    assert (len(array), array.shape, array.dtype) == (400, (400,), result.filled().dtype)
    assert "400 x int64 on cuda:0" in repr(array)
    assert array.__cuda_array_interface__["data"][0] != result.filled().ctypes.data
    assert result.on_gpu() is array


def test_memory_lives_as_long_as_the_result_or_what_was_made_of_it(card: LazyCard, graph: Any) -> None:
    result = ist.bfs(graph, 1, device="cuda:0")
    expected = result.filled().copy()
    card.forget()
    assert len(card.kept) == 1  # the distances, and no other array of the state
    lent = np.from_dlpack(result)
    del result
    gc.collect()
    assert len(card.kept) == 1
    assert np.array_equal(lent, expected)
    del lent
    gc.collect()
    assert len(card.kept) == 0 and dlpack.HELD == {}


def test_a_capsule_that_nobody_takes_frees_what_it_holds(card: LazyCard, graph: Any) -> None:
    result = ist.bfs(graph, 1, device="cuda:0")
    given = result.__dlpack__()
    assert len(dlpack.HELD) == 1
    del given
    assert dlpack.HELD == {}


def test_dlpack_says_where_the_memory_is_and_hands_over_the_host_s_on_request(card: LazyCard, graph: Any) -> None:
    card.dlpack_device = (2, 0)
    result = ist.bfs(graph, 1, device="cuda:0")
    assert result.__dlpack_device__() == (2, 0)
    assert np.array_equal(np.from_dlpack(result, device="cpu"), result.filled())
    with pytest.raises(BufferError, match="cannot hand an array over to DLPack device"):
        result.__dlpack__(dl_device=(8, 0))
    with pytest.raises(BufferError, match="copies are made by the library that asks"):
        result.__dlpack__(copy=True)
    assert np.array_equal(np.asarray(result), result.filled())


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int32, np.int64, np.float32, np.float64, np.bool_])
def test_capsules_hold_all_types_and_shapes(kind: Any) -> None:
    class Lender:
        def __init__(self, array: Any) -> None:
            self.array = array

        def __dlpack__(self, **options: Any) -> Any:
            return dlpack.capsule(self.array.ctypes.data, self.array.shape, self.array.dtype, (1, 0), self)

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    array = np.arange(6).reshape(2, 3).astype(kind)
    found = np.from_dlpack(Lender(array))
    assert found.dtype == array.dtype and np.array_equal(found, array)
    del found
    gc.collect()
    assert dlpack.HELD == {}


def test_columns_that_do_not_lie_there_are_copied_once(card: LazyCard, graph: Any, tmp_path: Any) -> None:
    labels = ist.weakly_connected_components(graph, device="cuda:0")
    assert np.array_equal(seen(labels), labels.filled())
    store = ist.ingest(columns(skewed()), tmp_path / "hub.isthmus", order="hub", vertices=400)
    result = ist.sssp(store, 1, device="cuda:0", predecessors=True)
    expected = ist.sssp(graph, 1).filled()
    assert np.array_equal(seen(result), expected)
    copied = len(card.record_of)
    assert np.array_equal(seen(result), expected)
    assert len(card.record_of) == copied
    with pytest.raises(OptionError, match=r"^on_gpu: column predecessor has values that a GPU's arrays cannot hold"):
        result.on_gpu("predecessor")
    assert card.held == {}
    card.fails_at = card.taken
    with pytest.raises(BudgetError, match="not enough GPU memory"):
        ist_labels(labels)


def ist_labels(result: Any) -> Any:
    """A column that was not asked for before."""
    result.gpu._made.clear()
    return result.on_gpu()


def test_strings_are_refused(card: LazyCard) -> None:
    graph = ist.read((["a", "b"], ["b", "c"]))
    result = ist.weakly_connected_components(graph, device="cuda:0")
    with pytest.raises(OptionError, match=r"^on_gpu: column"):
        result.on_gpu()


def test_results_of_the_processor_have_no_array_there(card: LazyCard, graph: Any) -> None:
    result = ist.bfs(graph, 1, device="cpu")
    assert not hasattr(result, "__cuda_array_interface__")
    assert result.__dlpack_device__() == (1, 0)
    with pytest.raises(OptionError, match=r"^on_gpu: this run was not on a GPU; run it with device='cuda:0'"):
        result.on_gpu()
    with pytest.raises(OptionError, match=r"^on_gpu: bfs has no column 'length'; it has distance"):
        result.on_gpu("length")


def test_a_pickled_result_is_on_the_host_alone(card: LazyCard, graph: Any) -> None:
    result = ist.bfs(graph, 1, device="cuda:0")
    other = pickle.loads(pickle.dumps(result))
    assert not hasattr(other, "__cuda_array_interface__")
    assert np.array_equal(other.filled(), result.filled())


def alike(result: Any) -> None:
    """What the card hands over is what the host has, in every column."""
    for name in result.columns:
        filled = result.filled(name)
        if filled.dtype.kind in "biuf":
            assert np.array_equal(seen(result.on_gpu(name)), filled, equal_nan=filled.dtype.kind == "f"), name


OPTIONS: dict[str, list[dict[str, Any]]] = {
    "bfs": [{"predecessors": True}, {"depth_limit": 2}],
    "sssp": [{"predecessors": True}],
    "pagerank": [{"iterations": 4}, {"dangling": {1: 1.0}}, {"weight": True}, {"personalization": {1: 1.0}}],
    "katz": [{"normalized": False}],
    "php": [{"weight": True}],
    "personalized_pagerank": [{"weight": True}],
    "circuit": [{"currents": {3: 0.5}}],
}  # beside the usual ones


@pytest.mark.parametrize("order", ["natural", "hub"])
@pytest.mark.parametrize("name", [name for name in ALGORITHMS.names() if name != "nn_inference"])
def test_every_algorithm_hands_over_what_the_host_has(name: str, order: str, card: LazyCard, tmp_path: Any) -> None:
    edges = columns(skewed(lambda draw: draw.randint(1, 9)))
    graph = ist.ingest(edges, tmp_path / "g.isthmus", order=order, vertices=400)
    given = arguments(ALGORITHMS[name], graph.snapshot)
    assert given is not None
    for more in ({}, *OPTIONS.get(name, [])):
        result = function_of(ALGORITHMS[name])(graph, **{**given, **more}, device="cuda:0")
        assert result.summary()["device"] == "cuda:0"
        alike(result)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_hands_over_what_the_host_has(name: str, card: LazyCard, graph: Any) -> None:
    program = PROGRAMS[name](weighted := ist.read(columns(skewed(lambda draw: draw.randint(1, 9))), vertices=400))
    try:
        result = ist.run(program, weighted, device="cuda:0")
    except NotOnGpu:
        assert name in ("pagerank, pulling", "pagerank, weights")  # in place, by loops of the processor
        return
    alike(result)


def test_a_network_hands_over_what_the_host_has(card: LazyCard) -> None:
    result = ist.nn_inference(ist.read(NETWORK), np.ones((3, 2)), [2, 2, 1], device="cuda:0")
    assert np.array_equal(seen(result.on_gpu()), result.filled())


def test_an_algorithm_of_several_passes_keeps_the_memory_of_the_last_alone(card: LazyCard, graph: Any) -> None:
    result = ist.betweenness_centrality(graph, k=3, device="cuda:0")
    card.forget()
    gc.collect()
    assert len(card.kept) <= 1
    assert np.allclose(seen(result), result.filled())


def test_an_empty_result(card: LazyCard) -> None:
    result = ist.pagerank(ist.read(([], []), vertices=0), device="cuda:0")
    assert seen(result).shape == (0,)
