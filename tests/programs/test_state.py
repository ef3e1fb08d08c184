"""The arena of a program's arrays: by name, moved by a device, taken for results; and no program holds one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.programs.test_pure_result import NETWORK, PROGRAMS, STEPS, graph

import isthmus as ist
from isthmus.errors import ProgramError
from isthmus.programs.algorithms.nn_inference import Inference, Layers

__all__ = ["graph"]


def test_arrays_have_names_and_an_order() -> None:
    values, residual = np.zeros(3), np.ones(3)
    state = ist.State({"values": values, "residual": residual}, None)
    assert state.arrays == (values, residual) and state["residual"] is residual
    state["values"], state["residual"] = state["residual"], state["values"]
    assert state.arrays[0] is residual and state.arrays[1] is values
    state.add("count", np.zeros(1))
    assert len(state.arrays) == 3 and state["count"].size == 1
    with pytest.raises(ProgramError, match=r"^state: expected one of values, residual, count, got 'deltas'"):
        state["deltas"]


def test_arrays_without_names_are_found_by_their_place() -> None:
    state = ist.State((np.zeros(3),), None)
    assert state.given(state.arrays[0]) is not state.arrays[0]
    with pytest.raises(ProgramError, match="expected one of no names, got 'values'"):
        state["values"]


def test_a_device_replaces_every_array_and_nothing_else() -> None:
    start, extra = np.array([0]), {"other": np.zeros(2)}
    state = ist.State({"a": np.zeros(2), "b": np.ones(2)}, start, (1,), extra)
    before = state.arrays
    state.place(np.copy)
    assert [array.tolist() for array in state.arrays] == [[0, 0], [1, 1]]
    assert not any(np.may_share_memory(a, b) for a, b in zip(before, state.arrays, strict=True))
    assert state.start is start and state.extra is extra


def test_another_state_has_the_same_names() -> None:
    state = ist.State({"a": np.zeros(2)}, None, (1,), {"x": 1})
    other = state.like((np.ones(2), np.ones(3)), np.array([1]))
    assert other["a"].sum() == 2 and len(other.arrays) == 2 and other.params == (1,) and other.extra == {"x": 1}


def test_while_a_run_goes_on_everything_is_a_copy() -> None:
    values = np.arange(3.0)
    state = ist.State({"values": values}, None)
    for got in (state.given("values"), state.take("values"), state.take(values)):
        assert got.tolist() == [0, 1, 2] and not np.may_share_memory(got, values)
    for got in (state.memory_like("values"), state.room(values)):
        assert (got.shape, got.dtype) == (values.shape, values.dtype) and not np.may_share_memory(got, values)
    assert state["values"] is values and not state.taken


@pytest.mark.parametrize("way", ["take", "memory_like", "room"])
def test_what_is_taken_has_left_the_arena(way: str) -> None:
    values, residual = np.arange(3.0), np.zeros(3)
    state = ist.State({"values": values, "residual": residual}, None)
    state.over = True
    assert state.given("values") is values
    assert getattr(state, way)("values") is values
    assert state.taken == [values] and state["residual"] is residual
    for again in (
        lambda: state["values"],
        lambda: state.given("values"),
        lambda: state.take(values),
        lambda: state.arrays[0].size,
        lambda: state.arrays[0][1],
    ):
        with pytest.raises(ProgramError, match=r"^state: this array was taken for the result"):
            again()


def test_who_takes_a_part_takes_the_whole() -> None:
    values = np.arange(3.0)
    state = ist.State({"values": values}, None)
    state.over = True
    state.take(values[1:])
    assert len(state.taken) == 1 and state.taken[0] is values
    with pytest.raises(ProgramError, match="was taken"):
        state["values"]


def arrays_in(value: Any, seen: set[int]) -> list[np.ndarray[Any, Any]]:
    """All arrays that can be reached from a value: in lists, tuples, dictionaries and objects of Isthmus."""
    if isinstance(value, np.ndarray):
        return [value]
    if id(value) in seen:
        return []
    seen.add(id(value))
    if isinstance(value, dict):
        inside = list(value.values())
    elif isinstance(value, list | tuple | set):
        inside = list(value)
    elif type(value).__module__.startswith("isthmus.programs"):
        inside = list(vars(value).values()) if hasattr(value, "__dict__") else []
    else:
        return []
    return [array for each in inside for array in arrays_in(each, seen)]


class Watched:
    """Looks, after `begin` and after each iteration, for arrays of the state that the program holds beside it.

    Inputs, which a program was given as arguments, may be part of its state; these must not change.
    """

    def __init__(self, program: Any) -> None:
        self.program, self.looks = program, 0
        self.inputs = [(array, array.copy()) for array in arrays_in(program.given, set())]
        begin = program.begin

        def begun(facts: Any) -> Any:
            self.state = begin(facts)
            self.look()
            return self.state

        program.begin = begun

    def look(self, _: Any = None) -> None:
        self.looks += 1
        held = arrays_in([{**vars(self.program), "given": None}, self.state.extra], set())
        for name, array in zip(self.state.names, self.state.arrays, strict=True):
            if not any(array is given for given, _ in self.inputs):
                assert not any(np.may_share_memory(array, each) for each in held), name
        assert all(np.array_equal(array, before, equal_nan=True) for array, before in self.inputs)


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_program_holds_an_array_of_its_state(name: str, graph: Any) -> None:
    program = PROGRAMS[name](graph)
    watched = Watched(program)
    ist.run(program, graph, watch=watched.look, **STEPS)
    assert watched.looks > 1


def test_no_network_holds_an_array_of_its_state() -> None:
    program = Inference(Layers.of([2, 2, 1], 5), np.ones((3, 2)), np.zeros(5))
    watched = Watched(program)
    ist.run(program, ist.read(NETWORK), watch=watched.look, **STEPS)
    assert watched.looks > 2
