"""The network that examples/train_digits.py trains reads digits that it has not seen, in memory and from disk."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist

SCRIPT = Path(__file__).parent.parent / "examples" / "train_digits.py"


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """(module, trained network, held-out images, their digits, store, biases and layers as saved)."""
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn, which is not installed")
    spec = importlib.util.spec_from_file_location("train_digits", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["train_digits"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    network, images, wanted = module.trained()
    folder = tmp_path_factory.mktemp("digits")
    graph = module.save(network, images, folder)
    with np.load(folder / "digits.npz", allow_pickle=False) as saved:
        yield network, images, wanted, graph, dict(saved)
    graph.close()
    del sys.modules["train_digits"]


HOW: list[dict[str, Any]] = [
    {},
    {"memory": "1%", "policy": "filter"},
    {"memory": "1%", "policy": "emogi", "threads": 2},
    {"memory": "2MB", "policy": "auto"},
]


@pytest.mark.parametrize("how", HOW, ids=str)
def test_digits_that_it_has_not_seen(digits: Any, how: dict[str, Any]) -> None:
    network, images, wanted, graph, saved = digits
    result = ist.nn_inference(graph, images, saved["layers"], saved["biases"], **how)
    assert len(images) > 500
    assert np.mean(result["class"] == wanted) > 0.9
    assert result.values == pytest.approx(network.layers(images)[-1], rel=1e-9, abs=1e-12)
    moved = result.summary()["transfer"]["bytes"]
    assert (moved > 0) == (how.get("policy", "auto") != "auto")


def test_most_weights_are_gone(digits: Any) -> None:
    """It is a sparse graph, and what training left elsewhere is exactly 0."""
    network, _, _, graph, _ = digits
    everything = sum(weights.size for weights in network.weights)
    assert graph.edges <= 0.21 * everything
    assert sum(np.count_nonzero(weights) for weights in network.weights) <= graph.edges
