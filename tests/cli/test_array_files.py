"""Array files for `isthmus run nn_inference`: the same answer as by its function, and mistakes in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.cli.in_process import caller

import isthmus as ist

BIASES = np.array([0.0, 0.0, 0.5, -4.0, 0.25])
INPUTS = np.array([[1.0, 2.0], [-3.0, 0.5], [0.0, 0.0]])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    edges = np.array([0, 1, 1, 2, 3]), np.array([2, 2, 3, 4, 4]), np.array([1.0, -2.0, 3.0, 1.5, 2.0])
    ist.ingest(edges, tmp_path / "g.isthmus", allow_negative=True).close()
    np.save(tmp_path / "x.npy", INPUTS)
    np.savez(tmp_path / "b.npz", biases=BIASES, layers=np.array([2, 2, 1]))
    np.savez(tmp_path / "only.npz", biases=BIASES)
    return tmp_path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path) -> Any:
    monkeypatch.chdir(folder)
    return caller(capsys, monkeypatch, "run", "nn_inference", "g.isthmus")


@pytest.mark.parametrize(
    "network", [["--biases", "b.npz"], ["--biases", "only.npz", "--layers", "2, 2,1"], ["--biases", "only.npz"]]
)
def test_the_same_answer(network: list[str], call: Any, folder: Path) -> None:
    words = [
        "--inputs",
        "x.npy",
        *network,
        "--activation",
        "tanh",
        "--output-activation",
        "identity",
        "-o",
        "said.parquet",
        "--json",
    ]
    done = call(*words, "--memory", "10%", "--policy", "filter")
    assert done.code == 0, done.err
    facts = done.json
    assert (facts["algorithm"], facts["policy"], facts["result"]) == (
        "nn_inference",
        "filter",
        {"inputs": 3, "layers": 3, "outputs": 1},
    )
    with ist.open(folder / "g.isthmus") as graph:
        expected = ist.nn_inference(graph, INPUTS, [2, 2, 1], BIASES, "tanh", "identity").to_arrow()
    found = pq.read_table(folder / "said.parquet")
    assert found.schema == expected.schema
    assert found["output_4"].to_pylist() == pytest.approx(expected["output_4"].to_pylist(), rel=1e-12)


def test_for_people(call: Any) -> None:
    done = call("--inputs", "x.npy")
    assert done.code == 0
    assert "nn_inference on g.isthmus" in done.out
    assert "outputs" in done.out


MISTAKES = [
    ([], 2, "--inputs"),
    (["--inputs", "none.npy"], 2, "none.npy: No such file or directory"),
    (["--inputs", "text.npy"], 3, "text.npy: expected a NumPy file (.npy or .npz)"),
    (["--inputs", "empty.npy"], 3, "empty.npy: expected a NumPy file (.npy or .npz)"),
    (["--inputs", "objects.npy"], 3, "objects.npy: expected a NumPy file (.npy or .npz)"),
    (["--inputs", "b.npz"], 3, "b.npz: expected one array (.npy), got an archive of several"),
    (
        ["--inputs", "x.npy", "--biases", "x.npy"],
        3,
        "x.npy: expected an archive (.npz) with an array 'biases', got a single array",
    ),
    (["--inputs", "x.npy", "--biases", "other.npz"], 3, "other.npz: expected an array 'biases', got bias"),
    (["--inputs", "x.npy", "--biases", "objects.npz"], 3, "objects.npz: cannot read its arrays"),
    (["--inputs", "x.npy", "--layers", "2,x"], 2, "layers: expected sizes such as 64,32,10, got '2,x'"),
    (["--inputs", "x.npy", "--layers", "2,2"], 2, "layers: expected sizes that add up to 5 vertices, got [2, 2]: 4"),
    (
        ["--inputs", "x.npy", "--activation", "max"],
        2,
        "activation: expected one of identity, relu, tanh, sigmoid, got 'max'",
    ),
]


@pytest.mark.parametrize(("words", "code", "message"), MISTAKES)
def test_mistakes(words: list[str], code: int, message: str, call: Any, folder: Path) -> None:
    (folder / "text.npy").write_text("1 2 3\n")
    (folder / "empty.npy").touch()
    np.save(folder / "objects.npy", np.array([{}, 1], object), allow_pickle=True)
    np.savez(folder / "objects.npz", biases=np.array([{}, 1], object))
    np.savez(folder / "other.npz", bias=BIASES)
    done = call(*words)
    assert done.code == code and message in " ".join(done.err.split())
