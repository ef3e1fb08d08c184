"""Modules of programs: one per text, whatever the threads do."""

from __future__ import annotations

import sys
import threading
import uuid
from types import ModuleType

import pytest

from isthmus.kernels.loops import skeleton

SLOW = """
import time
time.sleep(0.05)  # as long as other threads may find the module, and half of it


def source(u, degree, state, params):
    return 0


def edge(x, u, v, w, state, params):
    return False
"""


def built(name: str, functions: str = SLOW) -> ModuleType:
    return skeleton.build(name, functions, False, False, 0)


def test_threads_at_once_get_the_same_whole_module() -> None:
    name, gate = uuid.uuid4().hex, threading.Barrier(6)
    found: list[tuple[ModuleType, bool]] = []

    def first_use() -> None:
        gate.wait()
        module = built(name)
        found.append((module, hasattr(module, "push_range")))

    threads = [threading.Thread(target=first_use) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(built(name), True)] * 6


def test_another_text_is_another_module() -> None:
    assert built("a") is built("a")
    assert built("a") is not built("b")


def test_a_text_that_fails_leaves_no_module() -> None:
    before = set(sys.modules)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError) as failure:
            built("wrong", "1 / 0\n")
        assert "1 / 0" in str(failure.getrepr()), "a traceback quotes the line"
    assert {name for name in set(sys.modules) - before if name.startswith("isthmus_program_")} == set()


def test_no_file_and_no_bytecode() -> None:
    module = built("a")
    assert getattr(module, "__file__", None) is None
    assert module.push_rows.py_func.__code__.co_filename == f"<{module.__name__}>"
