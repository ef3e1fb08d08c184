"""A slice of the campaign of the memory promise: string ids of 2 kB, and a graph of vertices without edges."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults import memory


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("memory")
    memory.write_names(folder / "names.txt", 5000)
    words = ["generate", "uniform", "--vertices", "4000000", "--edges", "1000", "-o", "isolated.isthmus"]
    assert memory.measured(words, folder).code == 0
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ["ingest", "names.txt", "--ids", "string", "-o", "names.isthmus", "--overwrite"],
        ["run", "core_number", "isolated.isthmus", "-o", "out.parquet"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_the_budget_that_a_command_asks_for_is_enough(folder: Path, words: list[str]) -> None:
    megabytes = memory.least_budget(words, folder)
    assert megabytes is not None
    words = [*words, "--memory", f"{megabytes}MB"]
    memory.measured(words, folder)  # compiles, which takes memory of its own
    outcome = memory.measured(words, folder)
    assert outcome.code == 0, outcome.printed
    assert outcome.peak < megabytes * 1e6 + memory.BESIDE
