"""Compile every kernel of every algorithm for four architectures, without a GPU, and print what the compiler says.

Not a pytest file: `make ptx` runs it. Programs are caught while they run on a modelled device, with the functions and
the types of state that they have there. A kernel that spills registers, or does not compile, is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from tests import cases

import isthmus as ist
from isthmus.devices.cuda.kernels import correction, incremental, lists, measuring, ptx, ranking, rows, skeleton
from isthmus.engines.engine import Side
from isthmus.programs.catalogue import ALGORITHMS
from isthmus.programs.dependencies import Memoised
from isthmus.programs.program import Facts, Program, State
from isthmus.runtime import execute

NUMBER, FLAG = np.int64(0), False
NUMBERS, BYTES = np.empty(1, np.int64), np.empty(1, np.uint8)
VERTICES, REALS = np.empty(1, np.uint32), np.empty(1)
SORTED = (VERTICES, NUMBERS, NUMBERS, NUMBERS, NUMBERS)
LISTS = (NUMBERS, NUMBERS)
OF_VERTICES: dict[str, tuple[Any, ...]] = {
    "sort_range": (*[NUMBER] * 6, BYTES, FLAG, *LISTS, NUMBER, *SORTED),
    "sort_rows": (VERTICES, NUMBERS, NUMBERS, NUMBERS, NUMBER, *SORTED),
    "count_activity": (NUMBER, BYTES, FLAG, *LISTS, NUMBERS, NUMBER, NUMBER, NUMBER, NUMBERS, NUMBERS, NUMBERS),
    "mark_others": (NUMBER, BYTES, FLAG, BYTES, BYTES, NUMBERS),
    "pack_marks": (BYTES, BYTES, NUMBERS),
    "fill": (NUMBERS, NUMBER),
    "take_deltas": (NUMBER, BYTES, FLAG, REALS, REALS, REALS),
}
# Uploaded rows; which lists a cache has chosen and holds.
GIVEN, CACHED = (VERTICES, NUMBERS, NUMBERS, NUMBERS), (BYTES, BYTES, *LISTS)
OF_LISTS: dict[str, tuple[Any, ...]] = {
    "sort_held": (VERTICES, VERTICES, *LISTS, NUMBER, *SORTED),
    "sort_chosen": (*GIVEN, *CACHED, NUMBER, *SORTED),
    "sort_chosen_range": (*[NUMBER] * 6, *CACHED, NUMBER, *SORTED),
    "keep": (NUMBER, NUMBER, *SORTED, NUMBER, VERTICES, VERTICES, REALS, FLAG, VERTICES, REALS),
    "fetch": (NUMBER, NUMBER, *SORTED, NUMBER, NUMBER, VERTICES, VERTICES),
    "copy_lists": (NUMBER, NUMBERS, NUMBERS, NUMBERS, VERTICES, VERTICES),
    "take": (NUMBER, NUMBER, NUMBERS, NUMBERS, VERTICES, VERTICES),
    "put": (NUMBER, NUMBER, NUMBERS, NUMBERS, VERTICES, VERTICES),
    "patch_lists": (
        NUMBERS,
        NUMBERS,
        NUMBERS,
        BYTES,
        NUMBERS,
        NUMBERS,
        VERTICES,
        BYTES,
        NUMBERS,
        VERTICES,
        REALS,
        FLAG,
        VERTICES,
        REALS,
    ),
    "find_staying": (NUMBER, NUMBER, VERTICES, *CACHED, VERTICES, NUMBERS, NUMBERS),
    "place_staying": (
        NUMBER,
        VERTICES,
        NUMBERS,
        NUMBERS,
        *LISTS,
        NUMBER,
        NUMBER,
        VERTICES,
        VERTICES,
        NUMBERS,
        NUMBERS,
        NUMBERS,
    ),
    "find_coming": (NUMBER, NUMBER, *CACHED, NUMBERS, NUMBERS),
    "place_coming": (NUMBER, NUMBER, NUMBERS, NUMBERS, *LISTS, NUMBER, NUMBER, VERTICES, VERTICES),
}
LISTED = (VERTICES, VERTICES, NUMBERS)  # a list of vertices, each once
OF_CORRECTION: dict[str, tuple[Any, ...]] = {
    "orphan_heads": (VERTICES, VERTICES, VERTICES, *LISTED),
    "orphan_children": (NUMBER, NUMBER, *SORTED, NUMBER, NUMBER, VERTICES, VERTICES, VERTICES, *LISTED),
    "give_up": (VERTICES, NUMBERS, VERTICES, FLAG, VERTICES, BYTES, VERTICES, NUMBERS, NUMBER, NUMBERS, NUMBER),
}
ORDER = (NUMBER, NUMBER, NUMBER)


def of_ranking(words: Any) -> dict[str, tuple[Any, ...]]:
    """Kernels that rank lists, with words of this type: HyTGraph's have a byte, Grapin's four."""
    ranked = (NUMBER, words, BYTES, *LISTS, NUMBER, ORDER)  # where a side's keys begin, words, held, lists, the longest
    return {
        "use_rows": (VERTICES, NUMBER, words, NUMBER),
        "use_marked": (NUMBER, BYTES, FLAG, NUMBER, words, NUMBER),
        "end_period": (words,),
        "count_entries": (NUMBER, *ranked, NUMBERS),
        "find_level": (NUMBERS, NUMBER, NUMBERS),
        "entries_on_level": (NUMBER, NUMBER, *ranked, NUMBERS, NUMBERS),
        "mark_candidates": (NUMBER, NUMBER, *ranked, NUMBERS, NUMBERS, BYTES),
        "take_space": (NUMBERS, NUMBERS),
        "count_new": (NUMBER, BYTES, BYTES, *LISTS, NUMBERS),
        "count_held": (VERTICES, VERTICES, words, ORDER, NUMBERS),
        "held_on_level": (VERTICES, VERTICES, words, ORDER, NUMBERS, NUMBERS),
        "mark_cold": (VERTICES, VERTICES, words, ORDER, NUMBERS, NUMBERS, BYTES),
        "heat": (VERTICES, words, np.empty(1, np.uint16)),
        "move_words": (NUMBERS, NUMBERS, words),
    }


MEASURED = {
    "read_lines": (VERTICES, NUMBER, NUMBER, NUMBER, NUMBERS),
    "chase": (VERTICES, NUMBER, NUMBERS),
    "push": (
        NUMBER,
        NUMBER,
        *SORTED,
        NUMBER,
        NUMBER,
        *LISTS,
        VERTICES,
        np.empty(1, np.int32),
        (NUMBERS,),
        (NUMBERS,),
        (NUMBER,),
        BYTES,
    ),
}
EDGES = [(u, v, w) for u, v, w in cases.drawn(1, 40, 200, cases.whole, 2.0)]


@dataclass(frozen=True)
class Kernel:
    """A kernel to compile, and arguments of its types."""

    name: str
    kernel: Any
    arguments: tuple[Any, ...]


def of_vertices() -> Iterator[Kernel]:
    every = (
        (rows, OF_VERTICES),
        (lists, OF_LISTS),
        (correction, OF_CORRECTION),
        (ranking, of_ranking(BYTES)),
        (ranking, of_ranking(VERTICES)),
    )
    for module, kernels in ((each.build(), kernels) for each, kernels in every):
        for name, arguments in kernels.items():
            yield Kernel(name, getattr(module, name), arguments)


def of_measuring() -> Iterator[Kernel]:
    """The kernels by which `isthmus calibrate` measures a GPU."""
    for module in (measuring.build_reading(), measuring.build_pushing()):
        for name in MEASURED.keys() & vars(module).keys():
            yield Kernel(f"measuring: {name}", getattr(module, name), MEASURED[name])


def of_program(program: Program, facts: Facts, state: State, side: Side) -> Iterator[Kernel]:
    weighted = side.weight_width > 0
    module = skeleton.build(program.name, program.text(facts), weighted, program.pulls)
    weights = np.empty(1, side.weight_dtype if weighted else np.int32)
    arguments = (
        NUMBER,
        NUMBER,
        *SORTED,
        NUMBER,
        NUMBER,
        *LISTS,
        np.empty(1, side.target_dtype),
        weights,
        state.arrays,
        state.arrays,
        state.params,
        BYTES,
    )
    for verb in ("push", "seek"):
        if hasattr(module, verb):
            yield Kernel(
                f"{program.name}: {'pull' if program.pulls and verb == 'push' else verb}",
                getattr(module, verb),
                arguments,
            )


def of_maintained(program: Memoised, facts: Facts, state: State, side: Side) -> Iterator[Kernel]:
    """The kernels by which a stream corrects the answers of a program."""
    weighted = side.weight_width > 0
    module = incremental.build(program.name, program.text(facts), weighted)
    targets, weights = np.empty(1, side.target_dtype), np.empty(1, side.weight_dtype if weighted else np.int32)
    sending = (*LISTS, FLAG, state.arrays[0][0], state.arrays, state.params, *LISTED)
    yield Kernel(
        f"{program.name}: hear", module.hear, (NUMBER, NUMBER, *SORTED, NUMBER, NUMBER, targets, weights, *sending)
    )
    yield Kernel(f"{program.name}: send", module.send, (VERTICES, VERTICES, weights, *sending))


OPTIONS: dict[str, tuple[Any, ...]] = {  # an algorithm's own arguments, where it needs some
    "bfs": (1,),
    "sssp": (1,),
    "widest_path": (1,),
    "php": (1,),
    "katz": (0.01,),
    "multi_source_bfs": ([1, 2, 3],),
    "personalized_pagerank": ([1, 2],),
    "circuit": ({0: 1.0, 1: 0.0},),
}
HOW = {"device": "model:rtx2080ti"}


def run_all() -> None:
    """Run every algorithm, and programs of a user's."""
    for name in ALGORITHMS.names():
        if name != "nn_inference":
            getattr(ist, name)(graph(int), *OPTIONS.get(name, ()), **HOW)
    network = ist.read(([0, 1], [2, 2], [0.5, 1.0]), vertices=3)
    ist.nn_inference(network, [[1.0, 2.0]], layers=[2, 1], **HOW)
    ist.pagerank(graph(int), iterations=2, **HOW)
    ist.strongly_connected_components(graph(int, directed=True), **HOW)
    for weight in (int, float):
        ist.sssp(graph(weight), 1, predecessors=True, **HOW)
    for program in (
        cases.odd_steps(1),
        cases.spread(),
        cases.weighted_spread(),
        cases.widest(1),
        cases.largest_ancestor(),
    ):
        ist.run(program, graph(int), **HOW)
    run_streams()


def run_streams() -> None:
    """Monotone programs that are kept current: they also write parents."""
    for weight in (int, float):
        columns = [np.array(each) for each in zip(*{(u, v): (u, v, w) for u, v, w in EDGES}.values(), strict=True)]
        simple = ist.read((*columns[:2], columns[2].astype(np.int32 if weight is int else np.float64)), directed=True)
        wanted = [ist.SSSP(source=1), ist.BFS(source=1), ist.WeaklyConnectedComponents(), ist.WidestPath(source=1)]
        with ist.stream(simple, wanted, **HOW) as live:
            live.apply(deletes=(columns[0][:5], columns[1][:5]))


def graph(weight: type, directed: bool = False) -> Any:
    columns = [np.array([edge[k] for edge in EDGES]) for k in range(2)]
    return ist.read(
        (*columns, np.array([edge[2] for edge in EDGES], np.int32 if weight is int else np.float64)), directed=directed
    )


def of_programs() -> Iterator[Kernel]:
    """The kernels of all programs, each once."""
    found: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    compiled = execute.compile_program

    def caught(program: Program, facts: Facts, state: State, side: Side) -> Any:
        key = program.text(facts), side.weight_width > 0, tuple(array.dtype.str for array in state.arrays)
        found.setdefault(
            key, (program, facts, state.like(state.arrays), side)
        )  # a result takes arrays out of the state
        return compiled(program, facts, state, side)

    execute.compile_program = caught
    try:
        run_all()
    finally:
        execute.compile_program = compiled
    for program, facts, state, side in found.values():
        yield from of_program(program, facts, state, side)
        if isinstance(program, Memoised):
            yield from of_maintained(program, facts, state, side)


def main() -> int:
    print(f"{'kernel':44} {'architecture':12} {'registers':>9} {'spills':>6} {'stack':>5} {'occupancy':>9}")
    bad = 0
    for each in (*of_vertices(), *of_measuring(), *of_programs()):
        for capability in ptx.RESIDENT:
            built = ptx.build(each.name, each.kernel, each.arguments, capability)
            print(
                f"{built.kernel:44} {built.architecture:12} {built.registers:9} {built.spill_bytes:6} "
                f"{built.stack_bytes:5} "
                f"{built.occupancy:9.0%}",
                flush=True,
            )
            bad += built.spill_bytes > 0
    print(f"{bad} kernels spill registers" if bad else "no kernel spills registers")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
