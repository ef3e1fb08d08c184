"""Which class maintains a program: the one that its own file declares, for the nearest kind (`registry.py`)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import isthmus as ist
from isthmus.programs.algorithms.core_number import CoreNumber
from isthmus.stream.maintain import registry
from isthmus.stream.maintain.cores import MaintainedCores
from isthmus.stream.maintain.registry import maintainer_of, maintains


class HalvedCores(CoreNumber):
    """A kind of its own, derived from one that is maintained."""


def test_the_nearest_kind_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    with ist.stream(ist.generate("path", vertices=4), ["core_number"]) as live:
        program = HalvedCores(False, False)
        assert type(maintainer_of(program, live.session)) is MaintainedCores
        monkeypatch.setattr(registry, "_declared", dict(registry._declared))

        @maintains(HalvedCores, in_memory=True)
        class MaintainedHalves(MaintainedCores):
            pass

        assert type(maintainer_of(program, live.session)) is MaintainedHalves
        assert type(maintainer_of(CoreNumber(False, False), live.session)) is MaintainedCores


def test_no_other_file_imports_a_maintainer() -> None:
    """A class that is declared in its own file needs no second place."""
    folder = Path(registry.__file__).parent
    texts = {path.name: path.read_text() for path in folder.parent.rglob("*.py")}
    declared = [
        (name, found)
        for name, text in texts.items()
        for found in re.findall(r"^@maintains\(.*\)\nclass (\w+)", text, re.MULTILINE)
    ]
    assert len(declared) >= 6
    for own, maintainer in declared:
        derived = [name for name, text in texts.items() if re.search(rf"class \w+\({maintainer}\)", text)]
        imported = [name for name, text in texts.items() if re.search(rf"import .*\b{maintainer}\b", text)]
        assert set(imported) <= {own, *derived}, maintainer
