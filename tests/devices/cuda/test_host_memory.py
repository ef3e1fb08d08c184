"""Far arrays for kernels: held once, where they lie if that is possible, and freed."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.gpus import LazyCard

import isthmus as ist
from isthmus.devices.cuda import device as cuda_device
from isthmus.devices.cuda.host_memory import FarMemory
from isthmus.devices.cuda.kernels.skeleton import LINE
from isthmus.graph.store.files import BLOCK, aligned_empty
from isthmus.kernels.compile import cuda_module
from isthmus.link import whole_arrays


@pytest.fixture
def card() -> LazyCard:
    return LazyCard()


@pytest.fixture
def far(card: LazyCard) -> Iterator[FarMemory]:
    far = FarMemory(card)
    yield far
    far.close()
    assert card.held == {}


def of(count: int) -> Any:
    array = aligned_empty(count, np.uint32)
    array[:] = np.arange(count)
    return array


def test_an_array_in_memory_is_page_locked_where_it_lies(far: FarMemory, card: LazyCard) -> None:
    array = of(1000)
    shared = far.lock("targets", array, False)
    assert np.shares_memory(shared.host, array) and np.shares_memory(shared.device, array)
    assert far.holds("targets", False) and not far.holds("targets", True)
    assert far.of_name("targets", False) is shared
    assert sum(held.nbytes for held in card.held.values()) == array.nbytes


@pytest.mark.parametrize("managed", [False, True])
def test_what_does_not_begin_at_a_line_is_copied_and_so_is_what_becomes_managed(far: FarMemory, managed: bool) -> None:
    array = of(1000)[0 if managed else 1 :]
    assert managed or array.ctypes.data % LINE
    shared = far.lock("targets", array, managed)
    assert not np.shares_memory(shared.host, array)
    assert np.array_equal(shared.device.view(np.uint32), array)


def test_what_somebody_else_has_page_locked_is_copied(far: FarMemory, card: LazyCard) -> None:
    array = of(1000)
    other = FarMemory(card)
    other.lock("targets", array, False)
    shared = far.lock("targets", array, False)
    assert not np.shares_memory(shared.host, array) and np.array_equal(shared.host.view(np.uint32), array)
    other.close()


@pytest.mark.parametrize("managed", [False, True])
@pytest.mark.parametrize("size", [0, 40, 3 * BLOCK])
def test_a_file_is_read_into_whole_blocks(far: FarMemory, size: int, managed: bool) -> None:
    def fill(memory: Any) -> None:
        assert (not size or memory.ctypes.data % BLOCK == 0) and memory.size == -(-size // BLOCK) * BLOCK
        memory[:] = 7

    shared = far.read("targets", size, fill, managed)
    assert (shared.host == 7).all() and shared.host.size == size
    assert shared.device.size == max(size, 8)  # a device has no empty arrays


def test_a_file_that_cannot_be_read_takes_no_memory(far: FarMemory, card: LazyCard) -> None:
    def fill(memory: Any) -> None:
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="gone"):
        far.read("targets", 100, fill, False)
    assert card.held == {} and not far.holds("targets", False)


def test_others_are_let_go(far: FarMemory, card: LazyCard) -> None:
    for name in ("targets", "weights"):
        far.lock(name, of(100), False)
    far.lock("weights", of(100), True)
    far.keep_only({("weights", False)})
    assert (
        not far.holds("targets", False)
        and far.holds("weights", False)
        and not far.holds("weights", True)
        and len(card.held) == 1
    )


@pytest.mark.parametrize(("policy", "managed"), [("filter", False), ("emogi", False), ("unified", True)])
def test_the_host_holds_edges_once(tmp_path: Path, policy: str, managed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that are allocated at once while a run moves edges, beside those that the same run takes on 100 times fewer
    edges.
    """
    monkeypatch.setattr(whole_arrays, "THROUGH", 1 << 16)
    peaks = {}
    for edges in (4_000, 400_000):
        with ist.generate("uniform", tmp_path / f"{edges}.isthmus", vertices=2000, edges=edges) as graph:
            for kind in ("file", "memory"):
                held = graph if kind == "file" else ist.read(graph.path)
                card = LazyCard()
                with monkeypatch.context() as patch:
                    patch.setattr(cuda_module, "found", lambda: ([cuda_module.Found(0, "lazy", (8, 0))], ""))
                    patch.setattr(cuda_device, "open_card", lambda number, card=card: card)
                    ist.bfs(held, 0, device="cuda:0", policy=policy, memory="10%")  # compiles
                    tracemalloc.start()
                    ist.bfs(held, 0, device="cuda:0", policy=policy, memory="10%")
                    peaks[edges, kind] = tracemalloc.get_traced_memory()[1]
                    tracemalloc.stop()
                assert card.held == {}
            size = graph.edge_bytes
    for kind in ("file", "memory"):
        more = peaks[400_000, kind] - peaks[4_000, kind]
        copies = 1 if kind == "file" or managed else 0  # a graph in memory holds its own
        assert copies * size * 0.9 <= more <= (copies + 0.5) * size
