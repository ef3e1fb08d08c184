"""Options in the caller's own words, and notes that reach Python users as warnings."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.messages import in_shell, option, warn


@pytest.mark.parametrize(
    ("name", "value", "python", "shell"),
    [
        ("header", True, "header=True", "--header"),
        ("max_expansion", None, "max_expansion=", "--max-expansion"),
        ("ids", "string", "ids='string'", "--ids string"),
        ("memory", "12MB", "memory='12MB'", "--memory 12MB"),
        ("in_edges", False, "in_edges=False", "--no-in-edges"),
        ("directed", False, "directed=False", "--undirected"),
        ("weight_dtype", "int64", "weight_dtype='int64'", "--weight-type int64"),
    ],
)
def test_an_option_as_the_caller_writes_it(name: str, value: Any, python: str, shell: str) -> None:
    assert option(name, value) == python
    with in_shell():
        assert option(name, value) == shell
    assert option(name, value) == python


def test_a_note_about_the_answer_is_a_warning_at_the_line_of_the_caller() -> None:
    graph = ist.read((np.array([0, 1]), np.array([1, 2])))
    with pytest.warns(ist.IsthmusWarning, match="the graph has no weights: every edge counts as 1") as told:
        result = ist.sssp(graph, 0)
    assert [warning.filename for warning in told] == [__file__]
    assert "the graph has no weights: every edge counts as 1" in result.trace.notes
    with pytest.warns(ist.IsthmusWarning, match="the graph has no weights") as told, ist.session(graph) as session:
        session.sssp(0)
    assert [warning.filename for warning in told] == [__file__]


def test_warnings_can_be_made_errors() -> None:
    graph = ist.read((np.array([0, 1]), np.array([1, 2])))
    with warnings.catch_warnings(), ist.session(graph) as session:
        warnings.simplefilter("error", ist.IsthmusWarning)
        with pytest.raises(ist.IsthmusWarning):
            session.sssp(0)
        assert session.bfs(0).values.tolist() == [0, 1, 2]  # the session goes on


def test_the_shell_gets_no_warnings(recwarn: pytest.WarningsRecorder) -> None:
    with in_shell():
        warn(["a note that a command prints"])
    assert len(recwarn) == 0
