"""What a message function may be: every rule that it can break, with the line that breaks it."""

from __future__ import annotations

import ast
import math
import re

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import OptionError, ProgramError
from isthmus.programs.message import Message

HERE = __file__
ODD = 3


def line_of(text: str) -> int:
    """The number of the line of this file that starts with `text`."""
    with open(HERE) as file:
        return next(number for number, line in enumerate(file, 1) if line.strip().startswith(text))


def quoting(text: str, complaint: str) -> str:
    """What an error must look like: file:line, complaint, and the text itself on a line of its own."""
    return rf"test_message\.py:{line_of(text)}: .*{complaint}.*\n    {re.escape(text)}"


@pytest.fixture(scope="module")
def graph():
    return ist.read((np.array([0, 1, 2]), np.array([1, 2, 3]), np.array([5, 3, 9], np.int32)))


def test_whole_numbers_of_more_than_64_bits():
    with pytest.raises(ProgramError, match=r"has 2 \*\* 70, which does not fit 64 bits"):

        @ist.monotone(initial=math.inf)
        def far(value):
            return value + 2**70

    with pytest.raises(ProgramError, match=r"has 1 << 64, which does not fit 64 bits"):

        @ist.monotone(initial=math.inf)
        def shifted(value):
            return value + (1 << 64)

    with pytest.raises(ProgramError, match="has 10000000000000000000000, which does not fit 64 bits"):

        @ist.accumulative()
        def long(delta):
            return delta / 10000000000000000000000


@pytest.mark.parametrize("column", ["vertex", "predecessor", "labels", "", 3])
def test_columns_that_mean_something_else(column):
    with pytest.raises(ProgramError, match="column: expected a name other than vertex, predecessor"):

        @ist.monotone(initial=math.inf, column=column)
        def hops(value):
            return value + 1


def test_columns_that_only_look_like_others(graph):
    @ist.monotone(initial=math.inf, column="distance_km")
    def far(value, weight):
        return value + 0.5 * weight

    assert ist.run(far(source=0), graph).values.tolist() == [0, 2.5, 4, 8.5]


def test_a_threshold_of_zero_ends(graph):
    @ist.accumulative(threshold=0)
    def halved(delta, degree):
        return 0.8 * delta / degree

    ring = ist.read((np.array([0, 1, 2]), np.array([1, 2, 0])))
    assert ist.run(halved(source=0), ring).values.sum() == pytest.approx(5.0)


@pytest.mark.parametrize("number", [2**70, 2**63])
def test_starts_of_more_than_64_bits(number):
    with pytest.raises(ProgramError, match="initial: expected a number"):

        @ist.monotone(initial=number)
        def much(value):
            return value

    with pytest.raises(ProgramError, match="start: expected a number"):

        @ist.monotone(initial=0, combine="max", start=number)
        def more(value):
            return value


def test_unknown_combine():
    with pytest.raises(ProgramError, match=quoting("def summed(value)", "expected one of min, max, got 'sum'")):

        @ist.monotone(initial=0, combine="sum")
        def summed(value):
            return value


def test_a_variable_from_the_function_around_it():
    factor = 2
    with pytest.raises(
        ProgramError, match=quoting("return value * factor", "uses 'factor' from the function around it")
    ):

        @ist.monotone(initial=0)
        def scaled(value):
            return value * factor


def test_a_name_of_the_module():
    with pytest.raises(
        ProgramError, match=quoting("return value * ODD", "thrice uses the name 'ODD', which kernels do not have")
    ):

        @ist.monotone(initial=0)
        def thrice(value):
            return value * ODD


def test_the_line_is_that_of_the_mistake_not_of_the_def():
    with pytest.raises(ProgramError) as caught:

        @ist.monotone(initial=0)
        def several(value, weight):
            total = value + weight
            total = total + 1
            return total + missing  # noqa: F821

    assert str(caught.value).startswith(f"{HERE}:{line_of('return total + missing')}: ")


def test_a_parameter_without_a_default():
    complaint = r"has a parameter 'rate' that needs a number as default \(only weight, degree, vertex need none\)"
    with pytest.raises(ProgramError, match=quoting("def f(value, rate):", complaint)):

        @ist.monotone(initial=0)
        def f(value, rate):
            return value * rate


@pytest.mark.parametrize("default", ["x", None, True, [1]])
def test_a_default_that_is_no_number(default):
    with pytest.raises(ProgramError, match="'rate' that needs a number as default"):

        @ist.monotone(initial=0)
        def f(value, rate=default):
            return value * rate


def test_arguments_that_are_not_plain():
    def star(*values):
        return values[0]

    def named(value, *, rate=1):
        return value * rate

    def slash(value, /, rate=1):
        return value * rate

    for function in (star, named, slash):
        complaint = "has keyword-only, positional-only or star arguments; use plain ones"
        with pytest.raises(ProgramError, match=quoting(f"def {function.__name__}(", complaint)):
            ist.monotone(initial=0)(function)


def test_no_argument_at_all():
    with pytest.raises(ProgramError, match="needs at least one argument, the value of the vertex"):

        @ist.monotone(initial=0)
        def nothing():
            return 1


def test_lambdas_and_builtins():
    with pytest.raises(ProgramError, match=r"test_message\.py:\d+: expected a `def`, got 'ist\.monotone"):
        ist.monotone(initial=0)(lambda value: value)
    # fmt: off
    with pytest.raises(ProgramError, match=r"test_message\.py:\d+: expected a `def`, got 'lambda value"):
        ist.monotone(initial=0)(
            lambda value: value)
    # fmt: on
    with pytest.raises(ProgramError, match="abs: the message must be a `def` in a file or notebook cell"):
        ist.monotone(initial=0)(abs)
    scope = {}
    exec("def typed(value):\n    return value", scope)
    with pytest.raises(ProgramError, match="typed: the message must be a `def` in a file or notebook cell"):
        ist.monotone(initial=0)(scope["typed"])


@pytest.mark.parametrize("initial", ["vertx", None, [1], float("nan"), True])
def test_an_initial_value_that_is_none(initial):
    with pytest.raises(
        ProgramError, match=quoting("def same(value)", "same: initial: expected a number or 'vertex', got")
    ):

        @ist.monotone(initial=initial)
        def same(value):
            return value


def test_sides_and_start_and_threshold():
    def same(value):
        return value

    for sides in ("out", ("up",), (), ["out"]):
        with pytest.raises(ProgramError, match="sides: expected"):
            ist.monotone(initial=0, sides=sides)(same)
    with pytest.raises(ProgramError, match="start: expected a number, got 'a'"):
        ist.monotone(initial=0, start="a")(same)
    for threshold in (-1e-9, float("nan"), "small"):
        with pytest.raises(ProgramError, match="threshold: expected a number of at least 0"):
            ist.accumulative(threshold=threshold)(same)
    with pytest.raises(ProgramError, match="initial: expected a finite number, got inf"):
        ist.accumulative(initial=math.inf)(same)


def test_a_message_that_fails_as_plain_python(graph):
    @ist.monotone(initial=0)
    def fails(value):
        return np.nosuchfunction(value)

    with pytest.raises(
        ProgramError, match=quoting("def fails(value):", "the message of fails fails: AttributeError: .*nosuchfunction")
    ):
        ist.run(fails(), graph)


def test_a_message_that_does_not_compile(graph):
    @ist.monotone(initial=0)
    def text(value):
        return value + len(value.__class__.__name__)

    with pytest.raises(
        ProgramError, match=quoting("def text(value):", "the message of text does not compile: ")
    ) as caught:
        ist.run(text(), graph)
    assert str(caught.value).endswith("    def text(value):\n        return value + len(value.__class__.__name__)")


def test_bytecode_that_numba_does_not_have(graph):
    @ist.monotone(initial=0)
    def shown(value):
        return value + len(f"{value!r:>5}")

    with pytest.raises(ProgramError, match=quoting("def shown(value):", "the message of shown does not compile: ")):
        ist.run(shown(), graph)


@pytest.mark.parametrize("policy", ["auto", "filter"])
def test_a_message_that_returns_no_number(graph, policy):
    def nothing(value):
        return None

    def pair(value):
        return value, value

    def truth(value):
        return value > 1

    def imaginary(value):
        return value * 1j

    for function, kind in ((nothing, "NoneType"), (pair, "tuple"), (truth, "bool"), (imaginary, "complex")):
        complaint = rf"the message of {function.__name__} returns {kind}\w*, expected a number"
        with pytest.raises(ProgramError, match=quoting(f"def {function.__name__}(value)", complaint)):
            ist.run(ist.monotone(initial=0)(function)(), graph, policy=policy, far="ram", memory="10%")


def test_parameters_are_checked():
    @ist.monotone(initial=0, start=1)
    def steps(value, by=1, of=0.5):
        return value + by * of

    for wrong in ("x", True, None, [1]):
        with pytest.raises(OptionError, match="steps: parameter by: expected a number, got"):
            steps(0, by=wrong)
    with pytest.raises(OptionError, match="steps: unknown parameter speed; it has by, of"):
        steps(0, speed=3)
    with pytest.raises(OptionError, match="steps: parameter by: expected a number of 64 bits, got 9223372036854775808"):
        steps(0, by=2**63)
    assert steps(0, by=np.int32(3), of=np.float32(2)).values_given == {"by": 3, "of": 2.0}
    assert [type(v) for v in steps(0, by=np.int32(3), of=2).values_given.values()] == [int, float]


def test_text_for_kernels():
    def message(value: float, weight, scale=2.0) -> float:
        """Said once."""
        return value + weight * scale  # and a comment

    made = Message.of(message)
    assert made.text == "@called\ndef message(value, weight, scale):\n    return value + weight * scale\n"
    given = [ast.Name(name) for name in ("x", "w", "degree", "u", "params")]
    assert [ast.unparse(argument) for argument in made.ordered(given)] == ["x", "w", "params[0]"]
    assert made(1.0, 3.0, 9, 9, (2.0,)) == 7.0
    assert (made.arguments, made.defaults) == (("value", "weight", "scale"), {"scale": 2.0})
    assert made.where == f"{HERE}:{line_of('def message(value: float')}"


def test_a_source_where_there_is_none_to_give(graph):
    @ist.monotone(initial="vertex")
    def smallest(value):
        return value

    with pytest.raises(
        OptionError, match="smallest starts at every vertex; declare it with start= to give it a source"
    ):
        smallest(source=3)

    @ist.monotone(initial=math.inf)
    def hops(value):
        return value + 1

    with pytest.raises(OptionError, match="hops needs a source vertex"):
        ist.run(hops(), graph)
    with pytest.raises(ist.UnknownVertexError, match="no vertex 77 in the graph"):
        ist.run(hops(77), graph)


def test_what_is_no_program(graph):
    with pytest.raises(
        OptionError, match=r"expected a program, got function; decorate a message with @isthmus\.monotone"
    ):
        ist.run(test_what_is_no_program, graph)
