"""Kernels that are yet to be compiled."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from isthmus.devices.cuda.kernels import lists, needed, ranking, rows
from isthmus.devices.cuda.kernels.head import written


def test_all_kernels_that_are_named_exist() -> None:
    for text, names in needed.WITH_A_CACHE:
        assert all(f"def {name}_share(" in text.TEXT for name in names)


def test_a_new_process_compiles_all_of_them_and_a_later_run_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def has(text: Any, compiled: bool) -> None:
        """Let this process have a module, with kernels that were launched, or not."""
        names = [name for each, names in needed.WITH_A_CACHE if each is text for name in names]
        module = SimpleNamespace(**{name: SimpleNamespace(overloads={1: 2} if compiled else {}) for name in names})
        monkeypatch.setitem(sys.modules, written(text.NAME, text.TEXT, True)[0], module)

    for text in (rows, lists, ranking):
        monkeypatch.delitem(sys.modules, written(text.NAME, text.TEXT, True)[0], raising=False)
    assert (needed.uncompiled(True), needed.uncompiled(False)) == (5, 26)
    has(rows, False)
    assert (needed.uncompiled(True), needed.uncompiled(False)) == (5, 26)
    has(rows, True)
    assert (needed.uncompiled(True), needed.uncompiled(False)) == (0, 20)
    has(lists, True)
    has(ranking, True)
    assert needed.uncompiled(False) == 0
