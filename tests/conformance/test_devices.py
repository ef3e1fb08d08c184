"""A device of another package is asked as ours are: `test_conformance.py` runs on it, and it sees all reads.

Tests `devices/device.py`, `devices/cpu.py` and `devices/choose.py`.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from tests.recorder import Recorder

import isthmus as ist

RECIPES = ("filter", "subway", "emogi", "hytgraph", "auto")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with ist.generate("rmat", tmp_path_factory.mktemp("d") / "g.isthmus", scale=15, weights="1:9", seed=2) as graph:
        yield graph


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("algorithm", ["bfs", "sssp", "pagerank"])
def test_a_device_that_is_handed_in_sees_every_byte(store: Any, recipe: str, algorithm: str) -> None:
    device, source = Recorder(), () if algorithm == "pagerank" else (0,)
    result = getattr(ist, algorithm)(store, *source, policy=recipe, memory="10%", device=device)
    expected = getattr(ist, algorithm)(store, *source, policy=recipe, memory="10%")
    assert abs(result.filled() - expected.filled()).max() <= (1e-6 if algorithm == "pagerank" else 0)
    assert sum(size for _, _, size in device.reads) == result.summary()["transfer"]["bytes"] > 0
    assert {name for name, _, _ in device.reads} <= {"out.targets", "out.weights", "in.targets"}
    assert result.summary()["device"] == "recorder"


def test_a_session_has_one_device(store: Any) -> None:
    device = Recorder()
    with ist.session(store, memory="10%", policy="filter", device=device) as session:
        moved = sum(session.bfs(vertex).summary()["transfer"]["bytes"] for vertex in (0, 1))
    assert sum(size for _, _, size in device.reads) == moved


def test_edges_that_fit_are_loaded_without_its_link(store: Any) -> None:
    device = Recorder()
    ist.bfs(store, 0, device=device)
    assert device.reads == []


@pytest.mark.parametrize("memory", [None, "10%"])
def test_a_run_on_the_processor_loads_nothing_of_a_gpu(store: Any, memory: str | None) -> None:
    code = (
        "import sys; import isthmus as ist\n"
        f"ist.bfs(ist.open({str(store.path)!r}), 0, memory={memory!r})\n"
        "print([n for n in sys.modules if n.startswith('isthmus') and any(w in n for w in ('cuda', 'gpu', 'card'))])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
