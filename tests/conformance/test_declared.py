"""Every algorithm of the catalogue is held to something, those that other packages add as well.

Some have an oracle in the tests (`test_conformance.py`, `test_more.py`, `test_layered.py`), which go every way there.
Any other goes every way here, and each answer has to agree with the one in memory. Nothing is listed: an algorithm that
is declared is tried with the arguments that its declaration names.
"""

from __future__ import annotations

import itertools
from typing import Annotated, Any

import numpy as np
import pytest
from tests import cases as kinds
from tests.conformance import test_layered, test_more
from tests.declared import arguments, compare, unchecked

from isthmus.programs.algorithm import Algorithm, Answer, Option, Runner, algorithm
from isthmus.programs.catalogue import ALGORITHMS
from isthmus.runtime.public import function_of

NAMES = ("skewed", "skewed-real", "grid", "path", "loops-and-parallels", "no-edges", "strings")
CASES = {case.name: case for case in kinds.cases() if case.name in NAMES}
ORACLES = {*test_more.MORE, *(program.algorithm for program in kinds.ALGORITHMS), test_layered.ALGORITHM}
# Every recipe on every far memory; threads and orders change from one to the next.
EVERY = [
    (*pair, "10%" if pair[1] != "memory" else None, 1 + i % 2, ("natural", "hub")[i // 2 % 2])
    for i, pair in enumerate(itertools.product(kinds.RECIPES, kinds.FARS))
]
SOME = EVERY[:: len(kinds.FARS) + 1]  # every recipe; the far memories take turns


@pytest.fixture(scope="module", autouse=True)
def stores(tmp_path_factory: pytest.TempPathFactory) -> None:
    for case in CASES.values():
        case.build(tmp_path_factory.mktemp("stores"))


def without_oracle() -> list[str]:
    return [name for name in ALGORITHMS.names() if name not in ORACLES]


def test_no_algorithm_goes_unchecked() -> None:
    assert unchecked(ORACLES, CASES.values()) == [], (
        "give it an oracle, or its parameters a `sample` for tests to try it with"
    )


@pytest.mark.parametrize("name", ALGORITHMS.names())
def test_no_run_changes_a_graph_in_memory(name: str) -> None:
    """Its arrays are not marked read-only: kernels would be compiled twice."""
    graph = CASES["skewed-real"].graphs["natural memory"]
    before = {section: graph.store.read(section).copy() for section in graph.store.manifest.sections}
    given = arguments(ALGORITHMS[name], graph.snapshot)
    if given is not None:
        function_of(ALGORITHMS[name])(graph, **given)
    assert before and all(np.array_equal(graph.store.read(section), array) for section, array in before.items())


@pytest.mark.parametrize("name", ALGORITHMS.names())
def test_answers_agree_by_what_is_declared_of_their_columns(name: str) -> None:
    """With or without an oracle; where a declaration says that no graph of these will do, its oracle has others."""
    ways = EVERY if name in without_oracle() else SOME
    assert compare(name, CASES["skewed"], ways) == len(ways) or unchecked((), CASES.values()) == [name]


# Algorithms that somebody adds.


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> Any:
    def add(part: Algorithm) -> str:
        monkeypatch.setitem(ALGORITHMS, part.name, part)
        return part.name

    return add


@algorithm
def ancestor(run: Runner, most: Annotated[int, Option("", sample=lambda graph: 7)]) -> Answer:
    """Right everywhere."""
    assert most == 7
    return run(kinds.largest_ancestor())


@algorithm
def wrong_from_far(run: Runner) -> Answer:
    """Another answer where edges do not fit."""
    answer = run(kinds.largest_ancestor())
    if not run.fits(kinds.largest_ancestor()):
        answer.columns["value"] = answer.columns["value"] + 1
    return answer


@algorithm
def nobody_knows(run: Runner, what: int) -> Answer:
    """Nothing says what to call it with."""
    return run(kinds.largest_ancestor())


@pytest.mark.parametrize("case", NAMES)
def test_every_way_gives_the_answer_in_memory(case: str, added: Any) -> None:
    """Of algorithms without an oracle: one that this test adds, and those of other packages."""
    assert added(ancestor) in without_oracle()
    for name in without_oracle():
        known = arguments(ALGORITHMS[name], CASES[case].graphs["natural memory"].snapshot)
        ways = SOME if name == ancestor.name else EVERY
        assert compare(name, CASES[case], ways) == (0 if known is None else len(ways))


def test_an_algorithm_that_is_added_goes_every_way(added: Any) -> None:
    name = added(ancestor)
    assert without_oracle() == [name]
    assert compare(name, CASES["grid"], EVERY) == len(EVERY) == len(kinds.RECIPES) * len(kinds.FARS)
    assert unchecked(ORACLES, CASES.values()) == []


def test_a_wrong_answer_is_found(added: Any) -> None:
    name = added(wrong_from_far)
    with pytest.raises(AssertionError, match=r"wrong_from_far on skewed, .*: value of vertex .* is \d+ against \d+"):
        compare(name, CASES["skewed"], EVERY)


def test_an_algorithm_that_nothing_can_try_is_found(added: Any) -> None:
    name = added(nobody_knows)
    assert unchecked(ORACLES, CASES.values()) == [name]
    assert compare(name, CASES["grid"], EVERY) == 0
