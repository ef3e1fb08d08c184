"""Programs that cannot be kept current are refused, with an example: by samples, and by Z3 where it is installed
(`stream/maintain/symbolic.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.stream.maintain import symbolic


@ist.monotone(initial=np.inf, combine="min", start=0)
def shortcut(length, weight):  # type: ignore[no-untyped-def]
    return length + weight - 2


@ist.monotone(initial=np.inf, combine="min", start=0)
def turning(length, weight):  # type: ignore[no-untyped-def]
    return length + weight if length < 7 else length + 2 * weight if length > 9 else length + 30 * weight


@ist.monotone(initial=0, combine="max", start=1.0)
def reliability(chance, weight):  # type: ignore[no-untyped-def]
    return chance * min(weight, 1.0)


@ist.monotone(initial=np.inf, combine="min", start=0)
def hidden(length, weight):  # type: ignore[no-untyped-def]
    """Fails only between 1000.25 and 1000.5, which no sample hits."""
    return length - 1.0 if length > 1000.25 and length < 1000.5 else length + weight


@ist.monotone(initial="vertex", combine="max")
def falling(label):  # type: ignore[no-untyped-def]
    return label - 1


@ist.accumulative()
def squared(delta, degree):  # type: ignore[no-untyped-def]
    return 0.1 * delta * delta / degree


@ist.accumulative()
def constant(delta, weight, more=0.5):  # type: ignore[no-untyped-def]
    return 0.1 * delta * weight + more


@ist.accumulative()
def clipped(delta):  # type: ignore[no-untyped-def]
    return min(0.1 * delta, 7e7)


@pytest.fixture(params=["samples", "Z3"])
def judge(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "Z3":
        pytest.importorskip("z3", reason="Z3 is an extra: pip install isthmus[z3]")
    else:
        monkeypatch.setattr(symbolic, "installed", lambda: False)
    yield request.param


def graph(*weights: float) -> Any:
    return ist.read((np.arange(len(weights)), np.arange(1, len(weights) + 1), np.array(weights)), directed=True)


def refused(program: Any, on: Any, text: str) -> None:
    with pytest.raises(ist.ProgramError, match=re.escape(text)) as found:
        ist.stream(on, [program])
    assert "test_qualification.py:" in str(found.value) and "    def " in str(found.value), "with file, line and text"


def test_a_value_that_improves_along_a_cycle(judge: str) -> None:
    refused(
        shortcut(source=0),
        graph(1.0, 3.0),
        "shortcut(0.0, weight=1.0) = -1.0 is better than 0.0; messages must never be better",
    )
    with ist.stream(graph(2.0, 3.0), [shortcut(source=0)]) as live:  # with these weights nothing improves
        assert live["shortcut"].filled().tolist() == [0, 0, 1]


def test_messages_out_of_order(judge: str) -> None:
    with pytest.raises(ist.ProgramError, match="messages must keep the order of values") as found:
        ist.stream(graph(1.0, 2.0, 3.0), [turning(source=0)])
    low, first, high, second = (
        float(x)
        for x in re.search(
            r"turning\((.*?), .*?\) = (.*?) and turning\((.*?), .*?\) = (.*?):", str(found.value)
        ).groups()
    )  # type: ignore[union-attr]
    assert low < high and first > second


def test_messages_that_are_not_linear(judge: str) -> None:
    refused(squared(), graph(1.0), "but squared(")
    refused(
        constant(),
        graph(1.0),
        "constant(0.0, weight=1.0, more=0.5) = 0.5, expected 0: messages must be linear in the delta",
    )
    with ist.stream(graph(1.0), [constant(more=0.0)]) as live:
        assert live["constant"].values.tolist() == [1.0, 1.1]


def test_programs_that_qualify(judge: str) -> None:
    """Chances are multiplied: better than their start for negative chances, which cannot come up."""
    with ist.stream(graph(0.5, 0.25), [reliability(source=0), falling()]) as live:
        assert live["reliability"].filled().tolist() == [1, 0.5, 0.125]


def test_only_z3_finds_rare_values() -> None:
    pytest.importorskip("z3", reason="Z3 is an extra: pip install isthmus[z3]")
    with pytest.raises(ist.ProgramError, match=r"hidden\(1000\.\d+, weight=.*\) = 999\.\d+ is better than 1000\."):
        ist.stream(graph(1.0, 3.0), [hidden(source=0)])
    with pytest.raises(ist.ProgramError, match=r"clipped\(.*messages must be linear"):
        ist.stream(graph(1.0), [clipped()])


def test_weights_of_later_batches(judge: str) -> None:
    with ist.stream(graph(2.0, 3.0), [shortcut(source=0)]) as live:
        live.apply(inserts=[(0, 3, 9.0)])
        with pytest.raises(
            ist.BatchError, match=r"shortcut cannot be kept current with these weights: .* = -1\.5 is better than 0\.0"
        ):
            live.apply(inserts=[(3, 0, 0.5)])
        assert live.number == 1
        live.apply(inserts=[(3, 0, 2.5)])
        assert live.number == 2


def test_algorithms_that_are_not_maintained() -> None:
    for name in (
        "label_propagation",
        "betweenness_centrality",
        "minimum_spanning_forest",
        "strongly_connected_components",
    ):
        with pytest.raises(
            ist.OptionError, match=rf"{name} cannot be kept current: .*run isthmus\.{name} on live\.graph"
        ) as found:
            ist.stream(graph(1.0), [name])
        assert "A stream maintains bfs, sssp, weakly_connected_components, pagerank" in str(found.value)
        assert "core_number" in str(found.value)


def test_every_algorithm_says_whether_it_is_maintained() -> None:
    from isthmus.programs.catalogue import ALGORITHMS

    for name in ALGORITHMS.names():
        assert (ALGORITHMS[name].live is None) != (ALGORITHMS[name].not_live is None), name


def test_programs_of_their_own_kind() -> None:
    from isthmus.programs.algorithms.label_propagation import LabelPropagation

    with pytest.raises(
        ist.ProgramError, match=r"only for programs declared with isthmus\.monotone or isthmus\.accumulative"
    ):
        ist.stream(graph(1.0), [LabelPropagation.__new__(LabelPropagation)])


SUMS: list[Any] = [(lambda a, w: max(a, w), 5), (lambda a, w: abs(w - a) + 1, 4), (lambda a, w: (a + w) / 2, 3.5)]


@pytest.mark.parametrize(("message", "expected"), SUMS)
def test_symbols_compute_as_numbers_do(message: Any, expected: float) -> None:
    pytest.importorskip("z3", reason="Z3 is an extra: pip install isthmus[z3]")
    assert symbolic.installed()
    term = symbolic.as_term(message, symbolic.z3.RealVal(2), symbolic.z3.RealVal(5))
    assert symbolic.satisfying([], [symbolic.z3.simplify(term)]) == [expected]
    with pytest.raises(symbolic.NotArithmetic):
        symbolic.as_term(lambda a: np.sqrt(a), symbolic.z3.Real("a"))
