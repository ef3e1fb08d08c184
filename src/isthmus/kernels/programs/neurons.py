"""The activation functions of neurons, applied to their summed inputs."""

from __future__ import annotations

import math
from typing import Any

from isthmus.kernels.compile.kernel import kernel


@kernel
def fire(first: Any, last: Any, inputs: Any, activation: Any, biases: Any, values: Any) -> Any:
    """Apply bias and activation (0 identity, 1 relu, 2 tanh, 3 sigmoid) to neurons first:last, `inputs` values each."""
    for neuron in range(first, last):
        for at in range(neuron * inputs, (neuron + 1) * inputs):
            x = values[at] + biases[neuron]
            if activation == 1:
                x = max(x, 0.0)
            elif activation == 2:
                x = math.tanh(x)
            elif activation == 3:
                x = 1.0 / (1.0 + math.exp(-x))
            values[at] = x
