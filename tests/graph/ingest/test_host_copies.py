"""Edges in arrays and frames that lie on a GPU, by stand-ins of the libraries' protocols."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import isthmus as ist
from isthmus.errors import GraphFormatError, OptionError
from isthmus.graph.ingest.host_copies import is_gpu_frame, lies_on_gpu, to_host
from isthmus.kernels.compile import cuda_module

SOURCES, TARGETS, WEIGHTS = np.array([0, 1, 2, 0]), np.array([1, 2, 3, 3]), np.array([1.0, 2.0, 4.0, 9.0])


class OnGpu:
    """An array that no function of NumPy can read, as on a GPU."""

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.array.shape,
            "typestr": self.array.dtype.str,
            "data": (self.array.ctypes.data, False),
            "version": 3,
        }

    def __array__(self, *given: Any, **named: Any) -> Any:
        raise TypeError("implicit conversion to a NumPy array is not allowed")


class CuPy(OnGpu):
    def get(self) -> Any:
        return self.array


class Numba(OnGpu):
    def copy_to_host(self) -> Any:
        return self.array


class Torch(OnGpu):
    def cpu(self) -> Any:
        return self.array


class Series(OnGpu):
    """A column of cuDF: its `get` looks a row up."""

    def get(self, row: int) -> Any:
        return self.array[row]

    def to_numpy(self) -> Any:
        return self.array


class Frame:
    """A frame whose columns lie on a GPU."""

    def __init__(self, kind: Any, **columns: Any) -> None:
        self._columns = {name: kind(column) for name, column in columns.items()}
        self.columns = list(columns)

    def __getitem__(self, name: str) -> Any:
        return self._columns[name]


class CuDF(Frame):
    def to_arrow(self) -> Any:
        return pa.table({name: self[name].array for name in self.columns})


def distances(graph: Any) -> list[float]:
    found: list[float] = ist.sssp(graph, 0).filled().tolist()
    return found


@pytest.mark.parametrize("kind", [CuPy, Numba, Torch, Series])
def test_arrays(kind: Any) -> None:
    assert lies_on_gpu(kind(SOURCES)) and not lies_on_gpu(SOURCES)
    assert np.array_equal(to_host(kind(SOURCES)), SOURCES)
    assert distances(ist.read((kind(SOURCES), kind(TARGETS), kind(WEIGHTS)), directed=True)) == [0, 1, 3, 7]
    pairs = ist.read(kind(np.stack([SOURCES, TARGETS], 1)), directed=True)
    assert (pairs.vertices, pairs.edges) == (4, 4)


@pytest.mark.parametrize("frame", [Frame, CuDF])
def test_frames(frame: Any) -> None:
    made = frame(Series, weight=WEIGHTS, source=SOURCES, target=TARGETS)
    assert is_gpu_frame(made)
    assert distances(ist.read(made, directed=True)) == [0, 1, 3, 7]
    assert ist.read(frame(CuPy, a=SOURCES, b=TARGETS, c=WEIGHTS), source="b", target="a", weight="none").edges == 4


def test_batches_of_a_stream() -> None:
    with ist.stream(ist.read(([0], [1])), [ist.BFS(source=0)]) as live:
        live.apply(inserts=(CuPy([1]), CuPy([2])))
        live.apply(inserts=CuPy([[2, 3]]))
        assert live["bfs"].filled().tolist() == [0, 1, 2, 3]


def test_an_array_that_only_has_the_protocol_is_copied_by_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    class Cuda:
        @staticmethod
        def as_cuda_array(array: Any) -> Any:
            return Numba(array.array)

    monkeypatch.setattr(cuda_module, "cuda", lambda: Cuda)
    assert np.array_equal(to_host(OnGpu(SOURCES)), SOURCES)


def test_what_cannot_be_copied_or_is_no_frame_is_told() -> None:
    class Nulls(Series):
        def to_numpy(self) -> Any:
            raise ValueError("column has nulls")

    with pytest.raises(GraphFormatError, match="table on a GPU: cannot copy it to the host: column has nulls"):
        ist.read(Frame(Nulls, source=SOURCES, target=TARGETS))
    assert (
        not is_gpu_frame(SOURCES) and not is_gpu_frame(Frame(np.asarray, a=SOURCES)) and not is_gpu_frame(Frame(Series))
    )
    with pytest.raises(OptionError, match=r"^cannot read edges from Frame"):
        ist.read(Frame(np.asarray, a=SOURCES))
