"""How a program's functions become the text of kernels, and every rule that they can break."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import ProgramError
from isthmus.kernels.compile.atomics import atomic_add as add
from isthmus.programs.functions import Functions, unrolled
from isthmus.programs.message import Message

HERE = __file__
PHASE, LEAST, NEVER, MINUS = 3, np.uint32(7), -math.inf, -1
HUGE = 2**70
NAMES = ["a", "list"]


def nothing_sent(u, degree, state, params):
    return 0


def twice(x):
    """Said twice."""
    return 2 * x


def text_of(edge):
    """The text of `edge` and what it uses, without that of `nothing_sent`."""
    text = Functions(nothing_sent, edge).text()
    front = "@called\ndef source(u, degree, state, params):\n    return 0\n\n\n"
    assert text.startswith(front)
    return text.removeprefix(front)


def line_of(text: str) -> int:
    with open(HERE) as file:
        return next(number for number, line in enumerate(file, 1) if line.strip().startswith(text))


def quoting(text: str, complaint: str) -> str:
    return rf"test_functions\.py:{line_of(text)}: .*{complaint}.*\n    {re.escape(text)}"


def test_numbers_become_literals_of_their_type():
    def edge(x, u, v, w, state, params):
        return params[0] == PHASE or state[0][v] < LEAST or x == NEVER or MINUS**2

    returned = "return params[0] == 3 or state[0][v] < np.uint32(7) or x == -np.inf or (-1) ** 2"
    assert text_of(edge) == f"@called\ndef edge(x, u, v, w, state, params):\n    {returned}\n"


def test_functions_stand_in_front_of_those_that_call_them():
    def edge(x: float, u: int, v: int, w: float, state: object, params: object) -> bool:
        """Docstrings, comments and annotations go."""
        more: float = twice(twice(x))  # once
        add(state[0], v, np.float64(more))
        return False

    assert text_of(edge) == (
        "@called\ndef twice(x):\n    return 2 * x\n\n\n@called\ndef edge(x, u, v, w, state, params):\n"
        "    more = twice(twice(x))\n    atomic_add(state[0], v, np.float64(more))\n    return False\n"
    )


def test_two_functions_of_one_name():
    def other():
        def twice(x):
            return x + x

        return twice

    two = other()

    def edge(x, u, v, w, state, params):
        return two(x) == twice(x)

    text = text_of(edge)
    first, second = re.search(r"return (\w+)\(x\) == (\w+)\(x\)", text).groups()
    assert first != second
    assert f"def {first}(x):\n    return x + x\n" in text
    assert f"def {second}(x):\n    return 2 * x\n" in text


def test_a_function_is_specialised_by_what_is_around_it():
    def made(width, kind):
        def edge(x, u, v, w, state, params):
            return kind(x) == width

        return edge

    assert "return np.int64(x) == 4" in text_of(made(4, np.int64))
    assert "return np.float64(x) == 8" in text_of(made(8, np.float64))
    assert text_of(made(4, np.int64)) == text_of(made(4, np.int64))


def test_unrolled_loops_are_written_out():
    width = 2

    def edge(x, u, v, w, state, params):
        for s in unrolled(width):
            add(state[0], v + s, x[s])
        return tuple(x[s] + u for s in unrolled(width + 0)) if w else tuple(x[s] for s in unrolled(width))

    with pytest.raises(
        ProgramError, match=quoting("return tuple(x[s] + u for s", r"expected `for name in unrolled\(count\)`")
    ):
        text_of(edge)

    def other(x, u, v, w, state, params):
        for s in unrolled(width):
            add(state[0], v + s, x[s])
        return tuple(x[s] + u for s in unrolled(width))

    written = (
        "atomic_add(state[0], v + 0, x[0])\n    atomic_add(state[0], v + 1, x[1])\n    return (x[0] + u, x[1] + u)\n"
    )
    assert text_of(other).endswith(written)


def test_messages_get_what_they_ask_for():
    def spread(delta, vertex, share=0.5, weight=1, floor=0):
        return max(share * delta / weight, floor)

    message = Message.of(spread)

    def edge(x, u, v, w, state, params):
        return message(x, w, missing, u, params) > 0  # noqa: F821  # nobody asks for the degree

    assert "return message(x, u, params[0], w, params[1]) > 0" in text_of(edge)


def test_names_that_kernels_do_not_have():
    def listed(x, u, v, w, state, params):
        return NAMES

    with pytest.raises(
        ProgramError, match=quoting("return NAMES", "listed uses 'NAMES', which is list .*expected a number")
    ):
        text_of(listed)

    def unknown(x, u, v, w, state, params):
        return missing_everywhere  # noqa: F821

    with pytest.raises(
        ProgramError, match=quoting("return missing_everywhere", "uses the name 'missing_everywhere', which is not")
    ):
        text_of(unknown)

    def huge(x, u, v, w, state, params):
        return x < HUGE

    with pytest.raises(ProgramError, match=quoting("return x < HUGE", "does not fit 64 bits")):
        text_of(huge)

    def hiding(x, u, v, w, state, params):
        atomic_add = w
        return add(state[0], v, atomic_add)

    with pytest.raises(
        ProgramError, match=quoting("return add(state[0], v, atomic_add)", "has a variable 'atomic_add'")
    ):
        text_of(hiding)


def test_functions_of_another_shape():
    def short(x, u, v):
        return False

    with pytest.raises(
        ProgramError,
        match=quoting("def short(x, u, v)", r"has 3 arguments; expected edge\(x, u, v, w, state, params\)"),
    ):
        text_of(short)
    with pytest.raises(
        ProgramError, match="functions: expected source and edge, or nothing, sent and received; edge missing"
    ):
        Functions(nothing_sent).text()
    with pytest.raises(
        ProgramError, match="functions: expected a plain function as edge, got builtin_function_or_method"
    ):
        text_of(abs)
    with pytest.raises(ProgramError, match=r"test_functions\.py:\d+: expected a `def`"):
        text_of(lambda x, u, v, w, state, params: False)


def test_a_program_that_returns_text():
    class Old(ist.Program):
        def reads_weights(self):
            return False

        def functions(self, facts):
            return "@called\ndef source(u, degree, state, params): ..."

        def begin(self, facts):
            return ist.State((np.zeros(facts.vertices),), None)

        def result(self, state, facts):
            return {}

    with pytest.raises(ProgramError, match=r"program: functions: expected isthmus\.Functions, got str"):
        ist.run(Old(), ist.read((np.array([0]), np.array([1]))))
