"""`tests/house.py` counts what its rules say, on a small tree, and runs on this one."""

from __future__ import annotations

import collections
from pathlib import Path

import pytest
from tests import house, house_rules, house_runs

SOURCE = Path(__file__).parent.parent / "src"
LOOP = """
class Shift:
    def shift_room(self, card, model=None, *rest, room, **more):
        self._card = card
        if card is None or self._card is not None and model == 3:
            return [x for x in rest if x]
        return isinstance(model, (CudaLink, Worker)) or isinstance(card, places.RamLink) or shifting is None
"""


@pytest.fixture
def tree(tmp_path):
    """Two folders, a file name that stands in both, and a test."""
    texts = {
        "src/isthmus/__init__.py": "",
        "src/isthmus/runtime/__init__.py": "",
        "src/isthmus/runtime/loop.py": LOOP,
        "src/isthmus/devices/loop.py": "x = None if self.card is None else card is model",
        "tests/test_loop.py": "loop._card; self._own; os._exit(1); loop.__doc__\nmonkeypatch."
        + "setattr(loop, 'x', 1)",
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_counts_of_a_small_tree(tree):
    found = {what: count for what, count, _ in house.counts(tree / "src")}
    assert found["source files"] == 4
    assert found["file names that stand twice or more"] == 1
    assert found["folders with more than 20 files"] == 0
    assert found["questions about places"] == 5
    assert found["- of these in devices/"] == 1
    assert found["- isinstance on a class of one place"] == 2
    assert found["`monkeypatch." + "setattr` in tests"] == 1
    assert found["accesses to private attributes in tests"] == 2
    assert found["- of these not of self"] == 1
    assert found["words of metaphor in names"] == 2


def test_a_function_is_measured(tree):
    (loop,) = [
        file for file in house_rules.parsed(tree) if file.path.name == "loop.py" and "runtime" in file.path.parts
    ]
    (function,) = house_rules.functions(loop)
    assert function.parameters == 5
    assert function.lines == 5
    assert function.complexity == 8  # if, or, and, for, if, or, or


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("HereShift", ["here", "shift"]),
        ("_make_room", ["make", "room"]),
        ("FAR_KEEPERS", ["far", "keepers"]),
        ("shifting", ["shifting"]),
    ],
)
def test_words_of_a_name(name, words):
    assert house_rules.parts(name) == words


def test_names_with_metaphors(tree):
    words = house_rules.metaphors(house_rules.parsed(tree / "src"))
    assert words["shift"] == collections.Counter({"Shift": 1, "shift_room": 1})
    assert words["room"] == collections.Counter({"shift_room": 1, "room": 1})


def test_crowded_folders(tmp_path):
    for number in range(house_rules.CROWD + 1):
        (tmp_path / f"file{number}.py").touch()
    (tmp_path / "__init__.py").touch()
    assert house_rules.crowded(house_rules.parsed(tmp_path)) == [f"., {house_rules.CROWD + 1}"]


def test_this_tree_has_functions_and_files():
    rows = list(house.counts(SOURCE))
    assert len(house.table(rows, False).splitlines()) == len(rows)
    assert all(count >= 0 for _, count, _ in rows)


@pytest.mark.timeout(200)
def test_calls_of_an_iteration():
    found = {what: count for what, count, _ in house_runs.calls(SOURCE)}
    assert (
        5
        < found["files, one iteration"]
        <= found["different functions, one iteration"]
        <= found["calls, one iteration"]
    )
    assert found["calls, one iteration"] < found["calls, the rest of the run"]


def test_imports_of_a_search():
    for what, count, names in house_runs.imports(SOURCE):
        assert count == len(names), what
        assert all(name.startswith("isthmus.") for name in names)
