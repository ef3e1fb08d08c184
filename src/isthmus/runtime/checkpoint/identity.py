"""Identifies a run by a text: the same in every process for the same graph, algorithm and arguments, and different for
others.
"""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from isthmus.errors import OptionError
from isthmus.graph.store.sealed_json import digest
from isthmus.programs.algorithm import Algorithm
from isthmus.programs.message import Message
from isthmus.programs.program import Program

LONG = 300  # letters; a longer text is replaced by its beginning and its checksum


def described(algorithm: Algorithm, args: tuple[Any, ...], named: dict[str, Any]) -> str:
    """The text that identifies a run: 'bfs(source=7)'. A program run by itself has its own name."""
    program = next((value for value in (*args, *named.values()) if isinstance(value, Program)), None)
    if program is not None:
        if program.max_iter == 1:
            raise one_pass(program)
        return description(program)
    usual = {parameter.name: description(parameter.default) for parameter in algorithm.parameters}
    texts = {name: description(value) for name, value in {**dict(zip(usual, args, strict=False)), **named}.items()}
    unusual = ", ".join(f"{name}={text}" for name, text in texts.items() if text != usual.get(name))
    return f"{algorithm.name}({shortened(unusual)})"


def one_pass(program: Program) -> OptionError:
    return OptionError(
        f"{program.name} is one pass over the edges, so there is no moment between iterations to write a checkpoint"
    )


def description(value: Any) -> str:
    """A text that is the same for the same value in another process."""
    if isinstance(value, Program):
        given, named = value.given
        parts = [*map(description, given), *(f"{name}={description(item)}" for name, item in named.items())]
        return f"{value.name}({shortened(', '.join(parts))})"
    if isinstance(value, Message):
        return f"{value.name}:{digest(value.text.encode())[:8]}"
    if value is None or value is inspect.Parameter.empty or isinstance(value, bool | int | float | str | bytes | range):
        return repr(value)
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, set | frozenset):
        return description(sorted(map(description, value)))
    if isinstance(value, list | tuple):
        return shortened(f"[{', '.join(map(description, value))}]")
    if isinstance(value, dict):
        return shortened(f"{{{', '.join(f'{description(key)}: {description(item)}' for key, item in value.items())}}}")
    if is_dataclass(value):
        return f"{type(value).__name__}{[description(getattr(value, each.name)) for each in fields(value)]}"
    if hasattr(value, "__array__") and np.asarray(value).dtype.kind in "biufc":
        array = np.ascontiguousarray(value)
        return f"{array.dtype}{list(array.shape)}:{digest(array.reshape(-1).view(np.uint8))}"
    raise OptionError(
        f"checkpoint: expected arguments that Isthmus can recognise in another process, got a {type(value).__name__}"
    )


def shortened(text: str) -> str:
    return text if len(text) <= LONG else f"{text[:100]}...:{digest(text.encode())}"
