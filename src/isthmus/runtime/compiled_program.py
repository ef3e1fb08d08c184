"""The kernels of a program, compiled or found on disk."""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.engines.engine import Side
from isthmus.errors import ProgramError
from isthmus.kernels.loops import skeleton
from isthmus.programs.program import Facts, Program


def compile_program(program: Program, facts: Facts, state: Any, side: Side) -> Any:
    """The program's loops, compiled or found on disk."""
    weighted = side.weight_width > 0
    text = program.text(facts)
    module = skeleton.build(program.name, text, weighted, program.pulls, program.prefetched_array, program.live)
    nothing = np.empty(0, np.int64)
    weights = np.empty(0, side.weight_dtype if weighted else np.int32)
    none = np.zeros(1, np.int64)
    marks, queue = np.empty(0, np.uint8), np.empty(0, np.uint32)
    targets = np.empty(0, side.target_dtype)
    own = program.loops(state) or ()
    try:
        for loop in [
            *(getattr(module, name) for name in ("push_rows", "seek_rows") if hasattr(module, name)),
            *own[:1],
        ]:
            loop(
                np.empty(0, np.uint32),
                nothing,
                nothing,
                nothing,
                none[0],
                none[0],
                none[0],
                *facts.lists.arrays,
                targets,
                weights,
                state.arrays,
                state.arrays,
                state.params,
                marks,
                queue,
                none[0],
            )
        for loop in [
            *(getattr(module, name) for name in ("push_range", "seek_range") if hasattr(module, name)),
            *own[1:],
        ]:
            loop(
                none[0],
                none[0],
                none[0],
                none[0],
                none[0],
                none[0],
                marks,
                False,
                *facts.lists.arrays,
                targets,
                weights,
                state.arrays,
                state.arrays,
                state.params,
                marks,
                queue,
                none[0],
            )
    except skeleton.Failure as error:
        raise ProgramError(program.explain(skeleton.reason(error))) from error
    return module
