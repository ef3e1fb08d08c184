"""A neural network as a graph: train one to read handwritten digits, prune it, store it, and ask it from disk.

    python examples/train_digits.py [FOLDER]

The network of 64 pixels, two hidden layers and 10 digits is trained with plain NumPy on scikit-learn's digits. Only
its heaviest weights are kept: they become the edges of a graph, `digits.isthmus`; `digits.npz` has the biases and the
sizes of the layers, `held_out.npy` the images that were not trained on. With a folder they stay for the command line:

    isthmus run nn_inference FOLDER/digits.isthmus --inputs FOLDER/held_out.npy --biases FOLDER/digits.npz -o said.csv
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import isthmus as ist

SIZES = [64, 128, 64, 10]
KEPT = 0.2  # of the weights
TRAINED = 1200  # images; the others are held out


@dataclass
class Network:
    """Weights between the layers, biases of each layer after the first, and which weights may differ from 0."""

    weights: list[Any]
    biases: list[Any]
    masks: list[Any]

    @classmethod
    def random(cls, sizes: list[int], draw: np.random.Generator) -> Network:
        weights = [draw.normal(0, np.sqrt(2 / a), (a, b)) for a, b in pairwise(sizes)]
        return cls(weights, [np.zeros(size) for size in sizes[1:]], [np.ones(w.shape) for w in weights])

    def layers(self, images: Any) -> list[Any]:
        """The values of every layer: relu in the hidden ones, shares of certainty in the last."""
        values = [images]
        for weights, biases in zip(self.weights, self.biases, strict=True):
            sums = values[-1] @ weights + biases
            values.append(np.maximum(sums, 0))
        powers = np.exp(sums - sums.max(axis=1, keepdims=True))
        values[-1] = powers / powers.sum(axis=1, keepdims=True)
        return values

    def train(
        self, images: Any, digits: Any, epochs: int, draw: np.random.Generator, rate: float = 0.05, batch: int = 40
    ) -> None:
        """Stochastic gradient descent on cross-entropy with momentum."""
        speeds = [np.zeros_like(w) for w in self.weights]
        for _ in range(epochs):
            for some in np.array_split(draw.permutation(len(images)), len(images) // batch):
                values = self.layers(images[some])
                slope = (values[-1] - np.eye(SIZES[-1])[digits[some]]) / len(some)
                for layer in reversed(range(len(self.weights))):
                    gradient = values[layer].T @ slope
                    below = (slope @ self.weights[layer].T) * (values[layer] > 0)
                    speeds[layer] = 0.9 * speeds[layer] - rate * gradient
                    self.weights[layer] += speeds[layer] * self.masks[layer]
                    self.biases[layer] -= rate * slope.sum(axis=0)
                    slope = below

    def prune(self, kept: float) -> None:
        """Keep the heaviest weights of every layer; the others stay 0 in further training."""
        for layer, weights in enumerate(self.weights):
            self.masks[layer] = np.abs(weights) >= np.quantile(np.abs(weights), 1 - kept)
            self.weights[layer] = weights * self.masks[layer]

    def edges(self) -> tuple[Any, Any, Any]:
        """Sources, targets and weights; neurons are numbered layer by layer."""
        starts = np.cumsum([0, *SIZES])
        found = [
            (starts[layer] + u, starts[layer + 1] + v, self.weights[layer][u, v])
            for layer, mask in enumerate(self.masks)
            for u, v in [np.nonzero(mask)]
        ]
        sources, targets, weights = (np.concatenate(column) for column in zip(*found, strict=True))
        return sources, targets, weights.astype(np.float32)


def trained() -> tuple[Network, Any, Any]:
    """A pruned network, and the images and digits that it has not seen."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        sys.exit("the digits come with scikit-learn: pip install 'isthmus[digits]'")
    draw = np.random.default_rng(1)
    images, digits = load_digits(return_X_y=True)
    order = draw.permutation(len(images))
    images, digits = images[order] / 16, digits[order]
    network = Network.random(SIZES, draw)
    network.train(images[:TRAINED], digits[:TRAINED], 30, draw)
    network.prune(KEPT)
    network.train(images[:TRAINED], digits[:TRAINED], 15, draw)
    # as they are stored.
    network.weights = [weights.astype(np.float32).astype(np.float64) for weights in network.weights]
    return network, images[TRAINED:], digits[TRAINED:]


def save(network: Network, images: Any, folder: Path) -> ist.Graph:
    """Write the store, the biases and the images."""
    np.savez(
        folder / "digits.npz", biases=np.concatenate([np.zeros(SIZES[0]), *network.biases]), layers=np.array(SIZES)
    )
    np.save(folder / "held_out.npy", images)
    options: dict[str, Any] = {
        "vertices": sum(SIZES),
        "weight_dtype": "float32",
        "allow_negative": True,
        "overwrite": True,
    }
    return ist.ingest(network.edges(), folder / "digits.isthmus", **options)


def main(folder: Path) -> None:
    network, images, digits = trained()
    with save(network, images, folder) as graph, np.load(folder / "digits.npz") as saved:
        print(
            f"{graph.edges} of {sum(w.size for w in network.weights)} weights are left, {len(images)} images are "
            f"held out"
        )
        for how in ({}, {"memory": "1%", "policy": "filter"}):
            result = ist.nn_inference(graph, images, saved["layers"], saved["biases"], **how)
            right, moved = np.mean(result["class"] == digits), result.summary()["transfer"]["bytes"]
            print(f"{right:.1%} read correctly, {'from disk' if how else 'in memory'}; {moved:,} bytes moved")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
