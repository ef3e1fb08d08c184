"""Numbers as callers give them, and every algorithm that takes one."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus import checks
from isthmus.cli.shell_options import parse_numbers
from isthmus.errors import OptionError

NO_NUMBERS: list[Any] = ["0.5", None, True, math.nan, 1j, [1], Decimal("0.5")]


@pytest.fixture(scope="module")
def graph() -> Any:
    return ist.read((np.array([0, 1, 2, 3]), np.array([1, 2, 0, 3]), np.array([1, 2, 3, 1], np.int32)), directed=False)


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_what_is_no_number(value: Any) -> None:
    for check in (
        checks.between_0_and_1,
        checks.above_0,
        checks.finite_above_0,
        lambda name, given: checks.whole(name, given, 0),
    ):
        with pytest.raises(OptionError, match=r"^x: expected a "):
            check("x", value)


def test_numbers_of_every_kind() -> None:
    assert checks.whole("x", np.uint8(7), 0) == 7 and type(checks.whole("x", np.uint8(7), 0)) is int
    assert checks.between_0_and_1("x", np.float32(0.5)) == 0.5
    assert checks.above_0("x", math.inf) == math.inf
    for name, bad in (("between 0 and 1", 1), ("between 0 and 1", 0)):
        with pytest.raises(OptionError, match=name):
            checks.between_0_and_1("x", bad)
    with pytest.raises(OptionError, match="x: expected a finite number above 0, got inf"):
        checks.finite_above_0("x", math.inf)
    with pytest.raises(OptionError, match=r"x: expected a whole number, got 1\.5"):
        checks.whole("x", 1.5, 0)
    with pytest.raises(OptionError, match="x: expected at most 8, got 9"):
        checks.whole("x", 9, 0, 8)


@pytest.mark.parametrize("bad", [[0], 0, {0: "1"}, {0: None}, {0: 1j}, {0: 10**400}, {0: math.inf}])
def test_numbers_by_vertex(graph: Any, bad: Any) -> None:
    with pytest.raises(OptionError, match="fixed: expected a "):
        ist.circuit(graph, fixed=bad)
    with pytest.raises(OptionError, match="currents: expected a "):
        ist.circuit(graph, fixed={0: 1}, currents=bad)
    with pytest.raises(OptionError, match="personalization: expected a "):
        ist.pagerank(graph, personalization=bad)


@pytest.mark.parametrize(
    ("algorithm", "given", "numbers"),
    [
        ("pagerank", {}, ("alpha", "tol", "max_iter", "iterations")),
        ("personalized_pagerank", {"sources": [0]}, ("alpha", "tol", "max_iter")),
        ("katz", {}, ("alpha", "beta", "tol", "max_iter")),
        ("php", {"source": 0}, ("alpha", "tol")),
        ("circuit", {"fixed": {0: 1}}, ("tol", "max_iter")),
        ("sssp", {"source": 0}, ("cutoff",)),
        ("bfs", {"source": 0}, ("threads",)),
    ],
)
def test_no_algorithm_takes_words_for_numbers(
    graph: Any, algorithm: str, given: dict[str, Any], numbers: tuple[str, ...]
) -> None:
    for name in numbers:
        for value in ("1", [1], math.nan):
            with pytest.raises(OptionError, match=f"^{name}: expected "):
                getattr(ist, algorithm)(graph, **given, **{name: value})


def test_sums_and_squares_that_outgrow_a_double(graph: Any) -> None:
    small, large = (ist.katz(graph, alpha=0.1, beta=beta) for beta in (1.0, 1e308))
    assert np.allclose(small.values, large.values) and np.linalg.norm(large.values) == pytest.approx(1)
    network = ist.read((np.array([0, 1]), np.array([2, 2]), np.array([1.0, 1.0])), directed=True)
    notes = ist.nn_inference(network, [[1e308, 1e308]], layers=[2, 1], output_activation="identity").trace.notes
    assert any("some outputs are not finite" in note for note in notes)


def test_a_vertex_twice_on_the_command_line(graph: Any) -> None:
    with pytest.raises(OptionError, match="expected every vertex once, got 1 twice"):
        parse_numbers(["1=2", "1=3"], graph, "VOLTS")


def test_too_many_threads(graph: Any) -> None:
    with pytest.raises(OptionError, match="threads: expected at most 1,024, got 100,000,000"):
        ist.bfs(graph, 0, threads=10**8)
